"""What transformers and torch are installed, asked of the interpreter they are installed in."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sweeper.engine.interpreter import ask
from sweeper.engine.protocol import EngineFacts
from sweeper.errors import EngineError

PROBE_TIMEOUT_S = 120.0
LEAST_PYTHON = (3, 11)

# torch alone is imported, and that only where it is: nothing else tells whether it sees a GPU.
_PROBE = """
import importlib.metadata as metadata, json, platform, sys
versions = {}
for name in ("transformers", "torch", "tokenizers", "accelerate", "flash-attn"):
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
answer = {"versions": versions, "python": platform.python_version(), "cuda": None, "gpu": None}
if "torch" in versions:
    import torch
    if torch.cuda.is_available():
        answer["cuda"] = str(torch.version.cuda)
        answer["gpu"] = torch.cuda.get_device_name(0)
print(json.dumps(answer))
"""


@dataclass(frozen=True)
class Installation:
    """An installed transformers.

    Attributes:
        facts: part of the study's identity.
        python: interpreter it is installed in.
    """

    facts: EngineFacts
    python: str


def probe(python: str | None, device: str = "auto") -> Installation:
    """Ask an interpreter for its transformers.

    Args:
        python: path of the interpreter; None means the tuner's own.
        device: `auto`, or the one asked for.

    Raises:
        EngineError: the interpreter does not run, is too old, or lacks transformers, torch or the
            device asked for.
    """
    interpreter = python or sys.executable
    answer = ask(interpreter, _PROBE, timeout_s=PROBE_TIMEOUT_S)
    versions: dict[str, str] = answer["versions"]
    missing = [name for name in ("transformers", "torch") if name not in versions]
    if missing:
        raise EngineError(
            f"{' and '.join(missing)} not installed in {interpreter}",
            f"install it (`pip install {' '.join(missing)}`), or name an interpreter that has it: "
            "engine.python=/path/to/python",
        )
    _check_python(interpreter, answer["python"])
    if device == "cuda" and answer["cuda"] is None:
        raise EngineError(
            f"torch {versions['torch']} in {interpreter} sees no GPU",
            "use engine.options.device=auto, or install a build of torch for this GPU and driver",
        )
    details = {**versions, "python": answer["python"]}
    version = details.pop("transformers")
    found = "cpu" if device == "cpu" or answer["cuda"] is None else "cuda"
    if found == "cuda":
        details["cuda"] = answer["cuda"]
    facts = EngineFacts(
        name="transformers",
        version=version,
        distribution="transformers",
        device=found,
        details=details,
    )
    return Installation(facts, interpreter)


def _check_python(interpreter: str, version: str) -> None:
    major, minor, *_ = (int(part) for part in version.split(".")[:2])
    if (major, minor) < LEAST_PYTHON:
        raise EngineError(
            f"{interpreter} is Python {version}, and the server needs 3.11",
            "name a newer interpreter: engine.python=/path/to/python",
        )
