"""One server in a container: image, models, environment, name. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from sweeper.export import machine, secrets
from sweeper.export.bundle import ExportInput
from sweeper.export.vllm_config import own_flags

CONFIG_FOLDER, CONFIG_FILE = "/etc/vllm", "vllm.yaml"
CONFIG_PATH = f"{CONFIG_FOLDER}/{CONFIG_FILE}"
HOME, USER, USER_ID, GROUP_ID = "/home/vllm", "vllm", 2000, 0
"""The user that vLLM's images have for those who will not run as root."""
COMMAND = ("vllm", "serve")
HEALTH = "/health"
_NAME_CHARS = 30
"""Leaves room in 63 for what KServe, Knative and Helm put around a name."""
_MODEL_FLAGS = ("tokenizer", "hf_config_path")
_DRAFT_PLACES = ("model", "tokenizer")


@dataclass(frozen=True)
class Contained:
    """A deployment as it is inside a container.

    Attributes:
        source: with every folder of this machine renamed to where the container has it, listening
            on all of the container's addresses.
        mounts: folder of this machine → where the container has it.
    """

    source: ExportInput
    mounts: Mapping[str, str]


def contained(source: ExportInput, root: str | None = None) -> Contained:
    """The deployment with its models under `root`; None keeps every folder's own path."""
    mounts: dict[str, str] = {}

    def moved(value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("/"):
            return value
        if value not in mounts:
            mounts[value] = value if root is None else _free(root, value, mounts)
        return mounts[value]

    model = moved(source.model_path)
    flags = dict(source.flags)
    for name in _MODEL_FLAGS:
        if name in flags:
            flags[name] = moved(flags[name])
    draft = flags.get("speculative_config")
    if isinstance(draft, Mapping):
        places = {name: moved(draft[name]) for name in _DRAFT_PLACES if name in draft}
        flags["speculative_config"] = {**draft, **places}
    inside = replace(source, model_path=model, flags=flags, host="0.0.0.0")
    return Contained(inside, mounts)


def _free(root: str, folder: str, taken: Mapping[str, str]) -> str:
    """A place under `root` with the folder's own last name, numbered where that is taken."""
    base = _slug(PurePosixPath(folder).name, keep="._") or "model"
    used = set(taken.values())
    names = [base, *(f"{base}-{count}" for count in range(2, len(used) + 3))]
    return next(f"{root}/{name}" for name in names if f"{root}/{name}" not in used)


def other_files(source: ExportInput) -> list[str]:
    """Flags that name further files of the machine it was measured on."""
    return [
        name
        for name, value in own_flags(source).items()
        if name not in _MODEL_FLAGS and isinstance(value, str) and value.startswith("/")
    ]


def name_of(source: ExportInput) -> str:
    """A name that Kubernetes takes for anything: lower case, digits and hyphens, from a letter.

    Where the model's name had to be changed or cut, a few digits of its hash tell it from others.
    """
    served = source.served_name
    slug = _slug(served)[:_NAME_CHARS].strip("-")
    if slug and slug == served:
        return f"vllm-{slug}"
    digits = hashlib.sha256(served.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"vllm-{slug}-{digits}" if slug else f"vllm-model-{digits}"


def _slug(text: str, keep: str = "") -> str:
    return re.sub(rf"[^a-z0-9{keep}]+", "-", text.lower()).strip("-._")


def environment(source: ExportInput) -> dict[str, str]:
    """Variables of the server, with a home that any user may write to."""
    return {"HOME": HOME, "USER": USER, **source.public_env}


def notes(source: ExportInput) -> list[str]:
    """What is to be known of the container, for a comment."""
    told = [source.measured_on.image_note, *machine.notes(source)]
    if files := other_files(source):
        told.append(f"Mount the files that these flags name: {', '.join(files)}.")
    if lost := secrets.lost_flags(source):
        told.append(f"Secret flags were left out, give them yourself: {', '.join(lost)}.")
    return [line for line in told if line]
