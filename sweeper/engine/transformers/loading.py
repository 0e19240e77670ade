"""The model in memory, and what it says of itself. Imports torch and transformers when asked."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.engine.transformers.deployment import Deployment, RefusedError

GIB = 1024**3


@dataclass(frozen=True)
class LoadedModel:
    """A causal language model, ready.

    Attributes:
        model: on its device, in evaluation mode.
        tokenizer: its tokenizer.
        device: `cpu` or `cuda`.
        eos_ids: end-of-sequence tokens.
        pad_id: token that fills a batch up.
        vocab_size: rows of its embedding.
        max_model_len: most tokens of prompt and output together.
        memory_gib: its weights and buffers.
        load_s: seconds from the first import to here.
        random_weights: whether the weights were drawn instead of read.
    """

    model: Any
    tokenizer: Any
    device: str
    eos_ids: tuple[int, ...]
    pad_id: int
    vocab_size: int
    max_model_len: int
    memory_gib: float
    load_s: float
    random_weights: bool


def load(settings: Mapping[str, Any], deployment: Deployment) -> LoadedModel:
    """Read, or draw, the model that the settings name.

    Raises:
        RefusedError: the deployment cannot work on this device or with this model.
    """
    started = time.monotonic()
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    options = settings["options"]
    device = _device(options["device"])
    _check_device(deployment, device)
    common = {
        "trust_remote_code": bool(settings["trust_remote_code"]),
        **({"revision": settings["revision"]} if settings.get("revision") else {}),
    }
    path = settings["model"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, **common)
    if options["random_weights"]:
        model = _drawn(path, deployment, device, int(options["weights_seed"]), common)
    else:
        model = _read(path, deployment, device, common)
    model.eval()
    eos_ids = _eos_ids(model, tokenizer)
    pad_id = _pad_id(tokenizer, eos_ids)
    # What a checkpoint suggests for decoding must not add to what a request asks for.
    model.generation_config = transformers.GenerationConfig(pad_token_id=pad_id)
    if device == "cuda":
        torch.cuda.synchronize()
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        device=device,
        eos_ids=eos_ids,
        pad_id=pad_id,
        vocab_size=model.get_input_embeddings().num_embeddings,
        max_model_len=_length(model, deployment),
        memory_gib=_bytes(model) / GIB,
        load_s=time.monotonic() - started,
        random_weights=bool(options["random_weights"]),
    )


def effective(loaded: LoadedModel, deployment: Deployment) -> dict[str, Any]:
    """Arguments in effect, as far as the loaded model itself tells them."""
    import torch
    import transformers

    model = loaded.model
    facts: dict[str, Any] = {
        "dtype": str(model.dtype).removeprefix("torch."),
        "attn_implementation": str(model.config._attn_implementation).removeprefix("paged|"),
        "max_model_len": loaded.max_model_len,
        "batching": deployment.batching,
        "compile": deployment.compile,
        "speculative": deployment.speculative,
        "random_weights": loaded.random_weights,
        "device": loaded.device,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    packed = getattr(model.config, "quantization_config", None)
    if packed is not None:
        facts["quantization"] = f"{_quantization_method(packed)}, unpacked"
    if loaded.device == "cpu":
        facts["cpu_threads"] = torch.get_num_threads()
    else:
        facts["device_name"] = torch.cuda.get_device_name(0)
    return facts


def _quantization_method(packed: Any) -> str:
    """The format that config.json names, which the library hands on as an object or as read."""
    named = packed.get("quant_method") if isinstance(packed, Mapping) else packed.quant_method
    return str(getattr(named, "value", named))


def _device(asked: str) -> str:
    import torch

    if asked != "auto":
        return asked
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_device(deployment: Deployment, device: str) -> None:
    if deployment.compile and device == "cpu":
        raise RefusedError("compile needs a GPU: on a CPU the library compiles no generation")


def _read(path: str, deployment: Deployment, device: str, common: Mapping[str, Any]) -> Any:
    import transformers

    wanted: dict[str, Any] = {**common, "dtype": deployment.dtype}
    if deployment.attn_implementation is not None:
        wanted["attn_implementation"] = deployment.attn_implementation
    if device != "cpu" and importlib.util.find_spec("accelerate") is not None:
        wanted["device_map"] = {"": device}  # weights go to the device as they are read
    model = transformers.AutoModelForCausalLM.from_pretrained(path, **wanted)
    return model.to(device)


def _drawn(
    path: str, deployment: Deployment, device: str, seed: int, common: Mapping[str, Any]
) -> Any:
    """Weights drawn on the device, in the precision they are used in; nothing is read or kept."""
    import torch
    import transformers

    if list(Path(path).glob("*.safetensors")):
        raise RefusedError(f"random_weights with a model that has weights: {path}")
    config = transformers.AutoConfig.from_pretrained(path, **common)
    named = deployment.dtype if deployment.dtype != "auto" else getattr(config, "dtype", None)
    dtype = getattr(torch, str(named or "float32").removeprefix("torch."))
    wanted: dict[str, Any] = {"dtype": dtype}
    if deployment.attn_implementation is not None:
        wanted["attn_implementation"] = deployment.attn_implementation
    torch.manual_seed(seed)
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config, **wanted)


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    named = getattr(model.generation_config, "eos_token_id", None)
    if named is None:
        named = tokenizer.eos_token_id
    if named is None:
        return ()
    return tuple(int(token) for token in (named if isinstance(named, list | tuple) else [named]))


def _pad_id(tokenizer: Any, eos_ids: tuple[int, ...]) -> int:
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id)
    return eos_ids[0] if eos_ids else 0


def _length(model: Any, deployment: Deployment) -> int:
    config = model.config.get_text_config()
    own = getattr(config, "max_position_embeddings", None)
    asked = deployment.max_model_len
    if own is not None and asked is not None and asked > own:
        raise RefusedError(f"max_model_len={asked} is above the model's own {own} positions")
    length = own if asked is None else asked
    if length is None:
        raise RefusedError("the model's config.json states no longest length: set max_model_len")
    return int(length)


def _bytes(model: Any) -> int:
    """Bytes of weights and buffers; tied ones once."""
    tensors = {t.data_ptr(): t for t in (*model.parameters(), *model.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
