"""The model's folder that goes into a quantizing worker, and the checkpoint's that comes out.

Tools rewrite what they do not understand: an old library saves a tokenizer or a config.json with
what it knew of it. So the checkpoint takes from the tool its weights alone; every other file is the
original's, and config.json is the original's with a quantization_config.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker_protocol import WorkerError

_WEIGHTS_INDEX = "model.safetensors.index.json"
_SUFFIXES = {".json", ".jinja", ".model", ".txt", ".tiktoken", ".py"}
_NOT_COPIED = {"config.json", "quantize_config.json", "quant_config.json", "sweeper_manifest.json"}
_QUANTIZED = {"qweight", "qzeros", "scales", "g_idx"}
_OLD_TOKENIZER = "PreTrainedTokenizerFast"


def fetch(model: str, revision: str | None) -> Path:
    """Folder of the model: the one named, or the hub's, downloaded.

    Raises:
        WorkerError: `failed` if it is neither.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision))
    except Exception as error:
        raise WorkerError(
            "failed", f"{model} is no folder here and could not be fetched from the hub: {error}"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one if there is no such file."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    assert isinstance(found, dict)
    return found


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def config_for_old(config: dict[str, Any]) -> dict[str, Any]:
    """A config.json in the words of transformers 4.

    Version 5 gathers what concerns rotary embeddings in `rope_parameters`, which version 4 passes
    over: it would compute with its default base, and calibrate on wrong activations.
    """
    old = dict(config)
    if "dtype" in old:
        old["torch_dtype"] = old.pop("dtype")
    rope = dict(old.pop("rope_parameters", None) or {})
    if rope:
        if "rope_theta" in rope:
            old["rope_theta"] = rope.pop("rope_theta")
        if rope.get("rope_type", "default") != "default":
            old["rope_scaling"] = rope
    return old


def for_old_transformers(model: Path, work: Path) -> Path:
    """A folder of links to the model's files that transformers 4 can read. Theirs is untouched.

    Args:
        model: folder of the model.
        work: folder to make it in, empty or missing.
    """
    work.mkdir(parents=True, exist_ok=True)
    for path in model.iterdir():
        if path.is_file():
            (work / path.name).symlink_to(path.resolve())
    replace_json(work / "config.json", config_for_old(read_json(model / "config.json")))
    tokenizer = read_json(model / "tokenizer_config.json")
    if tokenizer.get("tokenizer_class") == "TokenizersBackend":
        tokenizer["tokenizer_class"] = _OLD_TOKENIZER
        tokenizer.pop("backend", None)
        replace_json(work / "tokenizer_config.json", tokenizer)
    return work


def replace_json(path: Path, content: dict[str, Any]) -> None:
    """Put a file of its own in the place of a link."""
    path.unlink(missing_ok=True)
    write_json(path, content)


def finish(
    out: Path, model: Path, quantization: dict[str, Any], *, dtype: str | None = None
) -> None:
    """Make a whole checkpoint of what a tool saved in `out`.

    Args:
        out: holds the tool's safetensors files; anything else in it is removed.
        model: folder of the unquantized model.
        quantization: for config.json, `quantization_config`.
        dtype: of the weights that were not quantized, where it is not the original's.

    Raises:
        WorkerError: `failed` if there are no weights.
    """
    weights = sorted(out.glob("*.safetensors"))
    if not weights:
        raise WorkerError("failed", f"the tool left no safetensors files in {out}")
    keep = {path.name for path in weights} | {_WEIGHTS_INDEX}
    for path in out.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in model.iterdir():
        if path.is_file() and _belongs_to_checkpoint(path.name):
            shutil.copyfile(path, out / path.name)
    config = read_json(model / "config.json")
    if dtype is not None:
        config["dtype" if "dtype" in config else "torch_dtype"] = dtype
    write_json(out / "config.json", {**config, "quantization_config": quantization})


def _belongs_to_checkpoint(name: str) -> bool:
    if name in _NOT_COPIED or name.endswith(".index.json") or name.startswith((".", "README")):
        return False
    return Path(name).suffix in _SUFFIXES or name.startswith(("LICENSE", "NOTICE"))


def stored_dtype(model: Path) -> str | None:
    """Floating point type of the model's weights by its config.json, such as ``bfloat16``."""
    config = read_json(model / "config.json")
    for part in (config, config.get("text_config") or {}):
        if name := part.get("dtype") or part.get("torch_dtype"):
            return str(name)
    return None


def cast_weights(out: Path, dtype: str) -> None:
    """Store what a tool saved in 32 bits in the model's own type; integers stay what they are."""
    import torch

    def cast(tensors: dict[str, Any]) -> dict[str, Any]:
        wanted = getattr(torch, dtype)
        return {
            name: tensor.to(wanted) if tensor.dtype is torch.float32 else tensor
            for name, tensor in tensors.items()
        }

    _rewrite(out, cast)


def drop_additions(out: Path, model: Path) -> None:
    """Take out what a tool saved beyond the model's own tensors and their quantized forms.

    Some save the output layer although it is the embeddings over again, and a bias of zeros for
    every layer without one.
    """
    own = {name for path in model.glob("*.safetensors") for name in _names(path)}
    if not own:  # weights of another format, whose names are not read here
        return
    _rewrite(
        out,
        lambda tensors: {
            name: tensor
            for name, tensor in tensors.items()
            if name in own or name.rpartition(".")[2] in _QUANTIZED
        },
    )


def _names(path: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as source:
        return list(source.keys())


def _rewrite(out: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Apply a change to the tensors of each safetensors file in a folder."""
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    for path in sorted(out.glob("*.safetensors")):
        with safe_open(path, framework="pt") as source:
            metadata = source.metadata()
        changed = path.with_suffix(".changed")
        save_file(change(load_file(path)), changed, metadata=metadata)
        changed.replace(path)
