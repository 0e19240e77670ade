"""The engine's interpreter: the engine, torch, and whether the parts fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sweeper.doctor.facts import EngineFacts, Facts
from sweeper.doctor.finding import Finding, ok, problem, unknown, warning
from sweeper.doctor.needs import Package, Release
from sweeper.engine.surroundings import DEVICES, LIBRARIES

VISION = ("torchvision", "torchaudio", "torchcodec")
EMBEDDED = ("gguf", "accelerate")
"""What the conversion of the embedded model needs beside torch."""
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)")
_PIN = re.compile(r"==\s*(\d+(?:\.\d+)*)")


def interpreter(facts: Facts) -> Iterator[Finding]:
    """Whether there is an interpreter that answers."""
    engine = facts.engine
    if engine is None:
        return
    if engine.error:
        yield problem(
            "interpreter",
            f"{engine.python} cannot be asked: {engine.error}",
            "give a Python interpreter that runs: engine.python=/path/to/bin/python",
        )
        return
    yield ok("interpreter", f"{engine.python}, Python {engine.version}")
    yield from _packages(facts, engine)
    yield from _parts(facts, engine)


def _packages(facts: Facts, engine: EngineFacts) -> Iterator[Finding]:
    known = facts.wanted.needs.packages
    there = [package for package in known if package.name in engine.versions]
    if not known:
        return
    if not there:
        names = " or ".join(package.name for package in known)
        yield problem(
            "engine",
            f"{names} is not installed in {engine.python}",
            "make setup, or pip install 'sweeper[vllm]' with a GPU and 'sweeper[cpu]' without; or "
            "name an interpreter that has it: engine.python=/path/to/bin/python",
        )
    elif len(there) > 1:
        names = " and ".join(f"{p.name} {engine.versions[p.name]}" for p in there)
        yield problem(
            "engine",
            f"{names} are both installed, and each overwrites the other's files",
            f"pip uninstall -y {' '.join(p.name for p in there)}, then install the one you want",
        )
    else:
        yield _version(there[0], engine.versions[there[0].name])
        yield from _build(facts, there[0], engine)


def _version(package: Package, version: str) -> Finding:
    release = release_of(version)
    name = f"{package.name} {version}"
    begin, end = package.tested
    tested = f"{_dotted(begin)} to below {_dotted(end)}"
    if release is None:
        return unknown("engine", f"{name}: the version says no release; {tested} is tested")
    if release < package.least:
        return problem(
            "engine",
            f"{name} is older than anything that can be started ({_dotted(package.least)})",
            f"install a tested release: pip install '{_tested_pin(package)}'",
        )
    if begin <= release < end:
        return ok("engine", f"{name}, a tested release")
    age = "older" if release < begin else "newer"
    return warning(
        "engine",
        f"{name} is {age} than what is tested ({tested}): flags and messages may have changed",
        f"for the tested one: pip install '{_tested_pin(package)}'; a study refuses flags that "
        "the installed one does not have before its first launch",
    )


def _build(facts: Facts, package: Package, engine: EngineFacts) -> Iterator[Finding]:
    """A build for a device that is not here, or not for the one that is."""
    version = engine.versions[package.name]
    device = package.device or ("cpu" if "cpu" in version else None)
    name = f"{package.name} {version}"
    if device == "cpu" and facts.on_gpu:
        yield problem(
            "engine build",
            f"{name} runs on the processor only, and a GPU is here",
            "install the build for GPUs: make setup EXTRA=vllm; or measure the CPU: hardware=cpu",
        )
    elif device is None and package.name.startswith("vllm") and not facts.devices.visible:
        yield problem(
            "engine build",
            f"{name} is a build for GPUs, and none can be used here",
            "mend what is said of the GPU, or install the build for processors: "
            "make setup EXTRA=cpu",
        )


def _parts(facts: Facts, engine: EngineFacts) -> Iterator[Finding]:
    if not facts.wanted.needs.torch:
        return
    if "torch" not in engine.versions:
        yield problem(
            "torch",
            f"torch is not installed in {engine.python}",
            "install the engine anew: it brings the torch it was built for",
        )
        return
    yield from _torch(facts, engine)
    yield from _vision(engine)
    yield from _embedded(facts, engine)
    yield from _whole_engine(engine)
    yield from _compiler(facts, engine)


def _torch(facts: Facts, engine: EngineFacts) -> Iterator[Finding]:
    version = engine.versions["torch"]
    error = engine.imported.get("torch")
    if error is None:
        yield unknown(
            "torch",
            f"torch {version} was not imported within {engine.limit_s:g} s",
            "the first import reads some GB from the disk: ask again, or with limit_s=120",
        )
    elif error:
        yield problem("torch", f"torch {version} cannot be imported: {error}", _remedy(error))
    elif facts.on_gpu:
        yield from _torch_on_gpu(facts, engine, version)
    else:
        built = f"built for CUDA {engine.torch_cuda}" if engine.torch_cuda else "a build for CPUs"
        yield ok("torch", f"torch {version} can be imported, {built}")


def _torch_on_gpu(facts: Facts, engine: EngineFacts, version: str) -> Iterator[Finding]:
    offered, built = release_of(facts.devices.cuda or ""), release_of(engine.torch_cuda or "")
    if built is None:
        yield problem(
            "torch",
            f"torch {version} was built without CUDA, and a GPU is here",
            "install the engine anew for GPUs (make setup EXTRA=vllm); a torch that something "
            "else pulled in has replaced its own",
        )
    elif offered is not None and built[0] > offered[0]:
        yield problem(
            "torch",
            f"torch {version} was built for CUDA {engine.torch_cuda}, and driver "
            f"{facts.devices.driver} offers CUDA {facts.devices.cuda}",
            f"update the driver to one that offers CUDA {built[0]} or later, or install an engine "
            f"built for CUDA {offered[0]}",
        )
    elif engine.torch_sees == 0:
        said = engine.torch_says or "it does not say why"
        yield problem("torch", f"torch {version} sees no GPU: {said}", _remedy(said))
    elif unknown_archs := _not_built_for(facts, engine):
        yield problem(
            "torch",
            f"torch {version} has no code for {unknown_archs} (it has "
            f"{', '.join(engine.torch_archs)})",
            "install an engine whose torch was built for this GPU, usually the newest release",
        )
    else:
        yield ok("torch", f"torch {version} for CUDA {engine.torch_cuda} sees the GPU")


def _not_built_for(facts: Facts, engine: EngineFacts) -> str:
    """Capabilities of the GPUs that torch has neither code nor older portable code for."""
    compiled = {arch.rpartition("_")[2].rstrip("af") for arch in engine.torch_archs}
    majors = {int(arch[:-1]) for arch in compiled if arch.isdigit()}
    if not majors:
        return ""
    there = {gpu.capability for gpu in facts.devices.gpus if gpu.capability is not None}
    portable = any(arch.startswith("compute_") for arch in engine.torch_archs)
    lacking = {
        (major, minor)
        for major, minor in there
        if major not in majors and not (portable and major > max(majors))
    }
    return ", ".join(f"sm_{major}{minor}" for major, minor in sorted(lacking))


def _vision(engine: EngineFacts) -> Iterator[Finding]:
    """torchvision and its kin: not needed for text, and fatal where they belong to another torch.

    What failed to import is a fact; else what the metadata asks for, and the builds' tags, tell.
    """
    torch = engine.versions["torch"]
    for name in VISION:
        version = engine.versions.get(name)
        if version is None:
            continue
        error = engine.imported.get(name)
        remove = (
            f"remove it (pip uninstall -y {name}): text models do not need it; or install "
            f"the one that belongs to torch {torch}"
        )
        if error:
            yield problem(
                name, f"{name} {version} cannot be used with torch {torch}: {error}", remove
            )
        elif pinned := _other_torch(engine, name):
            text = f"{name} {version} was made for torch {pinned}, and torch {torch} is installed"
            yield warning(name, text, remove) if error == "" else problem(name, text, remove)
        elif error is None and _tag(version) != _tag(torch):
            yield problem(
                name, f"{name} {version} and torch {torch} are builds for different devices", remove
            )
        else:
            yield ok(name, f"{name} {version} fits torch {torch}")


def _other_torch(engine: EngineFacts, name: str) -> str:
    """The torch that a package was made for, if another one is installed."""
    match = _PIN.search(engine.torch_pins.get(name, ""))
    if match is None or release_of(match.group(1)) == release_of(engine.versions["torch"]):
        return ""
    return match.group(1)


def _embedded(facts: Facts, engine: EngineFacts) -> Iterator[Finding]:
    wanted = facts.wanted
    if wanted.source != "embedded" or wanted.model_here or not wanted.needs.checkpoint:
        return
    missing = [name for name in (*EMBEDDED, "transformers") if name not in engine.versions]
    if missing:
        yield problem(
            "conversion",
            f"{' and '.join(missing)} missing in {engine.python}, which converts the model "
            f"{wanted.model}",
            f"install it there: {engine.python} -m pip install {' '.join(missing)}",
        )


def _whole_engine(engine: EngineFacts) -> Iterator[Finding]:
    """The engine's own import, where that was asked for: it takes many seconds."""
    if "vllm" in engine.imported:
        error = engine.imported["vllm"]
        if error:
            yield problem("engine import", f"import vllm fails: {error}", _remedy(error))
        else:
            yield ok("engine import", "import vllm works")


def _compiler(facts: Facts, engine: EngineFacts) -> Iterator[Finding]:
    if not facts.wanted.needs.compiler or facts.wanted.eager:
        return
    lacks = [] if facts.host.compiler else ["a C compiler"]
    if facts.on_gpu and not engine.headers:
        lacks.append("Python.h")
    if lacks:
        yield warning(
            "compiler",
            f"{' and '.join(lacks)} not found: kernels that are compiled at the start fail",
            "install gcc, g++ and the headers of the interpreter (apt-get install build-essential "
            "python3-dev), or set CC; without: engine.args.enforce_eager=true",
        )
    else:
        yield ok("compiler", f"{facts.host.compiler}")


def _remedy(text: str) -> str:
    """What the diagnosis of engine logs says of the same text."""
    rules = (*LIBRARIES, *DEVICES)
    found = next((rule.remedy for rule in rules if rule.pattern.search(text)), None)
    return found or "install the engine anew, in an environment of its own: make setup"


def release_of(version: str) -> Release | None:
    """``2.13.0+cpu`` → (2, 13, 0); None for what begins with no number."""
    match = _RELEASE.match(version.strip())
    return None if match is None else tuple(int(part) for part in match.group(1).split("."))


def _tag(version: str) -> str:
    """``cpu`` of ``2.13.0+cpu``; builds without a tag are for CUDA."""
    tag = version.partition("+")[2]
    return "cpu" if tag.startswith("cpu") else "cuda"


def _dotted(release: Release) -> str:
    return ".".join(map(str, release))


def _tested_pin(package: Package) -> str:
    begin, end = package.tested
    return f"{package.name}>={_dotted(begin)},<{_dotted(end)}"
