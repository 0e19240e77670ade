"""Asks the engine's interpreter what it has, and imports torch there, within a time limit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from sweeper.doctor.engine_checks import EMBEDDED, VISION
from sweeper.doctor.facts import EngineFacts
from sweeper.doctor.needs import Needs
from sweeper.engine.process import inherited_environment

ASKED_FOR = ("torch", *VISION, "transformers", *EMBEDDED)
IMPORTED = ("torch", *VISION)
MAX_SAID = 300

# Each answer is a line of its own, so that what was told before the time was over counts. What is
# cheap comes first; the engine itself is last, and only where that was asked for.
_PROBE = """
import json, sys
import importlib.metadata as metadata, pathlib, platform, sysconfig, warnings
def say(**what):
    print(json.dumps(what), flush=True)
names, modules = sys.argv[1].split(","), sys.argv[2].split(",")
versions, pins = {}, {}
for name in names:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        continue
    versions[name] = found.version
    for line in found.requires or ():
        if line.replace(" ", "").startswith("torch==") and ";" not in line:
            pins[name] = line
say(version=platform.python_version(), versions=versions, torch_pins=pins,
    headers=pathlib.Path(sysconfig.get_path("include"), "Python.h").is_file())
def facts_of_torch(torch):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.is_available()
        sees = torch.cuda.device_count() if torch.cuda.is_available() else 0
        archs = torch.cuda.get_arch_list() if sees else []
    return {"torch_cuda": torch.version.cuda, "torch_sees": sees, "torch_archs": archs,
            "torch_says": str(said[0].message) if said else ""}
for name in modules:
    if name not in versions and name != "vllm":
        continue
    try:
        module = __import__(name)
        say(imported=name, error="", **(facts_of_torch(module) if name == "torch" else {}))
    except BaseException as error:
        say(imported=name, error=f"{type(error).__name__}: {error}")
"""


def look(python: str | None, needs: Needs, *, limit_s: float, deep: bool) -> EngineFacts | None:
    """What the engine's interpreter says; None where the engine needs none.

    Args:
        python: path of the interpreter; None is the tuner's own.
        needs: of the engine.
        limit_s: how long to wait for the imports.
        deep: also import the engine.
    """
    if not needs.packages:
        return None
    interpreter = python or sys.executable
    names = (*ASKED_FOR, *(package.name for package in needs.packages))
    modules = (*IMPORTED, *(["vllm"] if deep and needs.compiler else []))
    command = [interpreter, "-c", _PROBE, ",".join(names), ",".join(modules)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            env=inherited_environment(),
            check=False,
        )
        said, error = done.stdout, _last_line(done.stderr)
    except subprocess.TimeoutExpired as late:
        said, error = late.stdout or b"", f"it said nothing within {limit_s:g} s"
    except OSError as refused:
        return EngineFacts(interpreter, error=refused.strerror or str(refused))
    return read(interpreter, said.decode("utf-8", "replace").splitlines(), error, limit_s)


def read(python: str, lines: Sequence[str], error: str, limit_s: float) -> EngineFacts:
    """Facts from what the probe printed. Pure.

    Args:
        python: path of the interpreter.
        lines: of its output; whatever an import prints is passed over.
        error: what is to be said if it told nothing.
        limit_s: how long it was given.
    """
    told: dict[str, Any] = {}
    imported: dict[str, str] = {}
    for answer in _answers(lines):
        name = answer.pop("imported", None)
        if name is not None:
            imported[str(name)] = " ".join(str(answer.pop("error", "")).split())[:MAX_SAID]
        told |= {key: value for key, value in answer.items() if key in _KEYS}
    if "version" not in told:
        return EngineFacts(python, error=error or "it said nothing")
    told["torch_archs"] = tuple(told.get("torch_archs", ()))
    return EngineFacts(python, imported=imported, limit_s=limit_s, **told)


_KEYS = (
    "version",
    "versions",
    "torch_pins",
    "headers",
    "torch_cuda",
    "torch_sees",
    "torch_says",
    "torch_archs",
)


def _answers(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict):
            yield answer


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:MAX_SAID] if lines else ""
