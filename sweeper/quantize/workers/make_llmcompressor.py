# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#     "llmcompressor==0.14.0.1",
#     "torch==2.13.0",
# ]
# ///
"""compressed-tensors checkpoints with llm-compressor; `SCHEMES` says which."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import worker_protocol
from worker_protocol import Worker

sys.path.append(str(Path(__file__).resolve().parent / "side"))
import quantize_common as common
import quantize_folder as folder

TOOL = "llm-compressor"
IGNORE = [
    "re:.*lm_head",
    # Routers of experts decide too much for the little they weigh.
    "re:.*\\.gate$",
    "re:.*shared_expert_gate$",
    "re:.*router.*",
    "re:.*visual.*",
    "re:.*vision.*",
    "re:.*multi_modal_projector.*",
]
SMOOTHING = 0.8
"""How much of the activations' range moves into the weights (SmoothQuant's alpha)."""


@dataclass(frozen=True)
class Scheme:
    """What one method takes, and the modifiers that carry it out.

    Attributes:
        group_sizes: None alone where there are no groups.
        modifiers: of the request and the type that weights are stored in.
        passes: over the layers, for the progress told.
        stored: how weights lie in the file, None for what the tool takes for the scheme.
    """

    bits: tuple[int, ...]
    group_sizes: tuple[int | None, ...]
    symmetric: tuple[bool, ...]
    act_order: tuple[bool, ...]
    modifiers: Callable[[common.Request, str | None], list[Any]]
    passes: int
    needs_texts: bool = True
    stored: str | None = None


def main(worker: Worker, request: common.Request) -> dict[str, Any]:
    common.require("method", request.method, tuple(SCHEMES), TOOL)
    scheme = SCHEMES[str(request.method)]
    tool = f"{TOOL}'s {request.method}"
    common.require("bits", request.bits or scheme.bits[0], scheme.bits, tool)
    common.require("group_size", request.group_size, scheme.group_sizes, tool)
    symmetric = scheme.symmetric[0] if request.symmetric is None else request.symmetric
    common.require("symmetric", symmetric, scheme.symmetric, tool)
    common.require("act_order", bool(request.act_order), scheme.act_order, tool)

    worker.phase("import")
    from llmcompressor import oneshot

    device = common.device(request)
    worker.phase("load")
    source = folder.fetch(request.model, request.revision)
    dtype = folder.stored_dtype(source) if scheme.needs_texts else None
    model, tokenizer = load(source, device, dtype, request)
    common.check_shapes(model, request.group_size, multiple_in=8, multiple_out=1)
    texts = common.calibration(request, tokenizer) if scheme.needs_texts else []
    common.seed_everything(request.seed)
    layers = int(model.config.get_text_config().num_hidden_layers)
    worker.phase("quantize")
    show_progress(worker, layers, scheme.passes)
    if device == "cpu":
        pin_nothing()
    oneshot(
        model=model,
        processor=tokenizer,
        recipe=scheme.modifiers(request, dtype),
        dataset=batches(texts) if texts else None,
        shuffle_calibration_samples=False,
    )
    worker.phase("save")
    model.save_pretrained(str(request.out), save_compressed=True, quantization_format=scheme.stored)
    config = folder.read_json(request.out / "config.json")["quantization_config"]
    config["config_groups"]["group_0"]["weights"]["scale_dtype"] = None
    if dtype is not None:
        folder.cast_weights(request.out, dtype)
    folder.finish(request.out, source, config)
    return {
        "versions": common.versions("llmcompressor", "compressed-tensors", "transformers", "torch"),
        "layers": layers,
        "device": device,
        "samples": len(texts),
        "tokens": sum(map(len, texts)),
    }


def load(path: Path, device: str, dtype: str | None, request: common.Request) -> tuple[Any, Any]:
    """The model and its tokenizer.

    Processors compute several times faster in 32 than in 16 bits, so that is what they get.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(
        path,
        dtype="float32" if device == "cpu" and dtype is not None else "auto",
        trust_remote_code=request.trust_remote_code,
    )
    tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=request.trust_remote_code)
    return model, tokenizer


def batches(texts: Sequence[list[int]]) -> Any:
    """Texts as llm-compressor takes them unchanged: one a batch, in order, no padding."""
    import torch
    from torch.utils.data import DataLoader

    rows = [
        {
            "input_ids": torch.tensor([text]),
            "attention_mask": torch.ones(1, len(text), dtype=torch.long),
        }
        for text in texts
    ]
    return DataLoader(rows, batch_size=None, shuffle=False)


def show_progress(worker: Worker, layers: int, passes: int) -> None:
    """Tell of each layer whose part of a pass has ended.

    A pass is cut at the decoder's layers, and what follows the last (the norm, the output layer)
    is a part of its own, which does not count; nor does work on the weights alone.
    """
    from llmcompressor.core import LifecycleCallbacks

    ended = LifecycleCallbacks.sequential_epoch_end
    parts = told = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal parts, told
        result = ended(*args, **kwargs)
        parts += 1
        full, rest = divmod(parts, layers + 1)
        done = min(full * layers + rest, passes * layers)
        if done > told:
            told = done
            worker.progress(done, passes * layers, "layers")
        return result

    LifecycleCallbacks.sequential_epoch_end = counted


def pin_nothing() -> None:
    """Pinned memory speeds up copies to a GPU; without one, asking for it is an error."""
    from llmcompressor.pipelines.cache import IntermediatesCache

    IntermediatesCache.pin_memory = lambda *args, **kwargs: None


def weights(request: common.Request, dtype: str | None, **changed: Any) -> Any:
    """Integer weights in groups (or one a channel), as the request says.

    Scales are rounded to the type they will be stored in before anything is quantized with them.
    """
    import torch
    from compressed_tensors.quantization import QuantizationArgs

    groups = request.group_size not in (None, common.PER_CHANNEL)
    chosen: dict[str, Any] = {
        "num_bits": request.bits,
        "type": "int",
        "strategy": "group" if groups else "channel",
        "group_size": request.group_size if groups else None,
        "symmetric": request.symmetric is not False,
        "dynamic": False,
        "scale_dtype": getattr(torch, dtype) if dtype else None,
        **changed,
    }
    return QuantizationArgs(**chosen)


def groups_of(weight_args: Any, input_args: Any = None) -> dict[str, Any]:
    """Every linear layer alike. Explicit, since the schemes with a name fix their group size."""
    from compressed_tensors.quantization import QuantizationScheme

    return {
        "group_0": QuantizationScheme(
            targets=["Linear"], weights=weight_args, input_activations=input_args
        )
    }


def gptq(request: common.Request, weight_args: Any, input_args: Any = None) -> Any:
    """GPTQ. Columns may be ordered once (`static`): engines no longer read the other kinds."""
    from llmcompressor.modifiers.gptq import GPTQModifier

    return GPTQModifier(
        config_groups=groups_of(weight_args, input_args),
        ignore=IGNORE,
        actorder="static" if request.act_order else None,
    )


def w4a16(request: common.Request, dtype: str | None) -> list[Any]:
    return [gptq(request, weights(request, dtype))]


def w4a16_awq(request: common.Request, dtype: str | None) -> list[Any]:
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from llmcompressor.modifiers.transform.awq import AWQModifier

    symmetric = request.symmetric is True
    groups = groups_of(weights(request, dtype, symmetric=symmetric))
    return [AWQModifier(), QuantizationModifier(config_groups=groups, ignore=IGNORE)]


def int8_inputs() -> Any:
    """Activations as 8-bit integers, scaled token by token while serving."""
    from compressed_tensors.quantization import QuantizationArgs

    return QuantizationArgs(num_bits=8, type="int", strategy="token", symmetric=True, dynamic=True)


def w4a8(request: common.Request, dtype: str | None) -> list[Any]:
    return [gptq(request, weights(request, dtype, symmetric=True), int8_inputs())]


def w8a8(request: common.Request, dtype: str | None) -> list[Any]:
    from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier

    weight_args = weights(request, dtype, num_bits=8, symmetric=True)
    return [
        SmoothQuantModifier(smoothing_strength=SMOOTHING),
        gptq(request, weight_args, int8_inputs()),
    ]


def fp8_dynamic(request: common.Request, dtype: str | None) -> list[Any]:
    from llmcompressor.modifiers.quantization import QuantizationModifier

    return [QuantizationModifier(targets="Linear", scheme="FP8_DYNAMIC", ignore=IGNORE)]


_GROUPED = (common.PER_CHANNEL, 32, 64, 128)
_BOTH = (True, False)
SCHEMES = {
    "W4A16": Scheme((4, 8), _GROUPED, _BOTH, _BOTH, w4a16, passes=1),
    "W4A16_AWQ": Scheme((4,), (32, 64, 128), (False, True), (False,), w4a16_awq, passes=1),
    # Engines read this one unpacked, a weight a byte.
    "W4A8": Scheme((4,), _GROUPED, (True,), (False,), w4a8, passes=1, stored="int-quantized"),
    "W8A8": Scheme((8,), (None, common.PER_CHANNEL), (True,), _BOTH, w8a8, passes=2),
    "FP8_DYNAMIC": Scheme((8,), (None,), (True,), (False,), fp8_dynamic, 0, needs_texts=False),
}


if __name__ == "__main__":
    worker_protocol.run(common.quantizing(main))
