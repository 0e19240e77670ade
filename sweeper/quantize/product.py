"""What a toolchain made, looked at before it is believed: config, weights, scales, tokenizer.

A tool that says "done" may have written another precision than it was asked for, half of the
shards, or scales that are no numbers. Each of these loads in an engine, and some of them run fast.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.errors import ModelError
from sweeper.models.weights import weight_files
from sweeper.quantize.recipe import PER_CHANNEL, Recipe

_MAX_HEADER_BYTES = 100 << 20
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "*.tiktoken")
_SCALES = ("scales", "weight_scale")

# Bits of a float that are all ones in infinity and NaN, by what safetensors calls the type.
_EXPONENTS = {"F16": ("<u2", 0x7C00), "BF16": ("<u2", 0x7F80), "F32": ("<u4", 0x7F800000)}


@dataclass(frozen=True)
class Fault:
    """What is wrong with a product.

    Attributes:
        cause: one line.
        for_good: whether the same request would be answered the same again.
    """

    cause: str
    for_good: bool = False


@dataclass(frozen=True)
class Precision:
    """How a checkpoint says that it is quantized; None where it does not say."""

    method: str
    bits: int | None = None
    group_size: int | None = None
    symmetric: bool | None = None


def fault_of(folder: Path, recipe: Recipe, method: str) -> Fault | None:
    """What keeps a folder from being the checkpoint that a recipe asks for, None if nothing does.

    Args:
        folder: what the tool filled.
        recipe: what it was asked for.
        method: the `quant_method` that an engine is to find in config.json.
    """
    try:
        told = precision_of(_config(folder))
        return (
            _disagreement(told, recipe, method) or _fault_of_weights(folder) or _untokenized(folder)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        return Fault(f"it cannot be read: {' '.join(str(problem).split()) or repr(problem)}")
    except ModelError as problem:
        return Fault(problem.message)


def precision_of(config: Mapping[str, Any]) -> Precision:
    """What a config.json says of its quantization. Pure.

    Raises:
        ValueError: it says nothing.
    """
    told = config.get("quantization_config")
    if not isinstance(told, Mapping):
        raise ValueError("config.json has no quantization_config")
    method = str(told.get("quant_method", ""))
    return _READERS.get(method, _flat)(method, told)


def safetensors_header(path: Path) -> dict[str, dict[str, Any]]:
    """The table of a safetensors file: name → dtype, shape and place of each tensor.

    The file begins with eight bytes, little-endian: the length of a JSON object that follows. The
    tensors come after it, without a gap to the end of the file.

    Raises:
        ValueError: it is none, or it was cut off.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= min(size - 8, _MAX_HEADER_BYTES):
            raise ValueError(f"{path.name} is no whole safetensors file")
        table = json.loads(file.read(length))
    table.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in table.values()), default=0)
    if size != 8 + length + end:
        raise ValueError(f"{path.name} has {size} bytes, its table says {8 + length + end}")
    return dict(table)


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError("there is no config.json") from error
    if not isinstance(config, Mapping):
        raise ValueError("config.json is no object")
    return config


def _flat(method: str, told: Mapping[str, Any]) -> Precision:
    """AWQ and GPTQ state one precision for all layers, at the top."""
    symmetric = told.get("sym")
    if symmetric is None and "zero_point" in told:
        symmetric = not told["zero_point"]
    return Precision(method, told.get("bits", told.get("w_bit")), told.get("group_size"), symmetric)


def _grouped(method: str, told: Mapping[str, Any]) -> Precision:
    """compressed-tensors states one precision a group of layers; a recipe makes one group."""
    weights = [group.get("weights") or {} for group in told["config_groups"].values()]
    first = weights[0]
    size = first.get("group_size")
    if size is None and first.get("strategy") == "channel":
        size = PER_CHANNEL
    return Precision(method, first.get("num_bits"), size, first.get("symmetric"))


_READERS: Mapping[str, Callable[[str, Mapping[str, Any]], Precision]] = {
    "awq": _flat,
    "gptq": _flat,
    "compressed-tensors": _grouped,
}


def _disagreement(told: Precision, recipe: Recipe, method: str) -> Fault | None:
    pairs = {
        "quant_method": (method, told.method),
        "bits": (recipe.bits, told.bits),
        "group_size": (recipe.group_size, told.group_size),
        "symmetric": (recipe.symmetric, told.symmetric),
    }
    for name, (asked, found) in pairs.items():
        if None not in (asked, found) and asked != found:
            return Fault(f"its config.json says {name} {found}, asked for was {asked}", True)
    return None


def _fault_of_weights(folder: Path) -> Fault | None:
    files = weight_files(folder)
    others = [path.name for path in files if path.suffix != ".safetensors"]
    if not files or others:
        return Fault(f"its weights are {', '.join(others)}, no safetensors" if others else
                     "it has no weights", True)  # fmt: skip
    tables = {path: safetensors_header(path) for path in files}
    names = {name for table in tables.values() for name in table}
    missing = sorted(_indexed(folder) - names)
    if missing:
        return Fault(f"{len(missing)} tensors of its index are in no file, {missing[0]} first")
    for path, table in tables.items():
        for name in _broken_scales(path, table):
            return Fault(f"scale {name} in {path.name} is not finite", True)
    return None


def _indexed(folder: Path) -> set[str]:
    """Tensors that an index promises; none without one."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return set()
    return set(json.loads(index.read_text(encoding="utf-8"))["weight_map"])


def _broken_scales(path: Path, table: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Names of scales that hold NaN or infinity. Reads the scales alone: a few per cent."""
    import numpy as np

    scales = [name for name in table if name.endswith(_SCALES)]
    with path.open("rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
        for name in scales:
            kind = _EXPONENTS.get(table[name]["dtype"])
            if kind is None:
                continue
            first, last = table[name]["data_offsets"]
            file.seek(begin + first)
            bits = np.frombuffer(file.read(last - first), dtype=kind[0])
            if ((bits & kind[1]) == kind[1]).any():
                yield name


def _untokenized(folder: Path) -> Fault | None:
    if any(True for pattern in _TOKENIZERS for _ in folder.glob(pattern)):
        return None
    return Fault("it has no tokenizer")
