"""The weight files of a model folder: which there are, how large, and whether they changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from sweeper.errors import ModelError

_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_PATTERNS = ("*.safetensors", "*.bin", "*.pt")
_DESCRIPTIONS = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_SAMPLE_BYTES = 1 << 20


def weight_files(folder: Path) -> list[Path]:
    """Files with weights, in order; empty if there are none.

    Raises:
        ModelError: an index names a file that is not there (an interrupted copy or download).
    """
    for name in _INDEXES:
        if (folder / name).is_file():
            return _indexed(folder, folder / name)
    for pattern in _PATTERNS:
        if found := sorted(folder.glob(pattern)):
            return found
    return []


def size_bytes(files: list[Path]) -> int | None:
    """Bytes of all files together, None for no file at all."""
    return sum(file.stat().st_size for file in files) if files else None


def fingerprint(folder: Path, files: list[Path]) -> str:
    """Short digest that changes when the model does, without reading every byte of it.

    Covers the descriptions in full, and of each weight file its name, size, first and last MiB
    (a safetensors file begins with a table of its tensors; reading 15 GB at each start is slow).
    """
    digest = hashlib.sha256()
    for name in _DESCRIPTIONS:
        path = folder / name
        if path.is_file():
            digest.update(name.encode() + b"\0" + path.read_bytes())
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_SAMPLE_BYTES))
            file.seek(max(0, size - _SAMPLE_BYTES))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:32]


def _indexed(folder: Path, index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{index} cannot be read: {error!r}", "copy or download the model again"
        ) from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"{folder} lacks {len(missing)} of {len(names)} weight files, {missing[0]} first",
            "the copy or download was interrupted: do it again",
        )
    return [folder / name for name in names]
