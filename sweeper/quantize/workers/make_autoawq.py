# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#     "autoawq==0.2.9",
#     "transformers==4.51.3",
#     "torch==2.13.0",
#     "accelerate>=1.0",
#     "safetensors>=0.4",
# ]
# ///
"""AWQ checkpoints with AutoAWQ: 4 bits with zero points, on a GPU or (slowly) on the CPU."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import worker_protocol
from worker_protocol import Worker

sys.path.append(str(Path(__file__).resolve().parent / "side"))
import quantize_common as common
import quantize_folder as folder

GROUP_SIZES = (32, 64, 128)
AT_ONCE = 16
"""Samples in one forward pass: memory grows with it."""


def main(worker: Worker, request: common.Request) -> dict[str, Any]:
    common.require("bits", request.bits or 4, (4,), "AutoAWQ")
    common.require("group_size", request.group_size, GROUP_SIZES, "AutoAWQ")
    common.require("symmetric", bool(request.symmetric), (False,), "AutoAWQ")
    common.require("act_order", bool(request.act_order), (False,), "AutoAWQ")
    device = common.device(request)

    worker.phase("load")
    source = folder.fetch(request.model, request.revision)
    with tempfile.TemporaryDirectory() as work:
        model, tokenizer = load(folder.for_old_transformers(source, Path(work)), device, request)
        # The search for clipping takes 64 outputs at a time.
        common.check_shapes(model.model, request.group_size, multiple_in=32, multiple_out=64)
        texts = common.calibration(request, tokenizer)
        common.seed_everything(request.seed)
        worker.phase("quantize")
        quantize(worker, model, tokenizer, texts, request)
        worker.phase("save")
        # On the CPU it was loaded in 32 bits, which is faster there.
        model.model.half()
        model.save_quantized(str(request.out), safetensors=True)
    config = {
        "quant_method": "awq",
        "bits": 4,
        "group_size": request.group_size,
        "zero_point": True,
        "version": "gemm",
        "modules_to_not_convert": model.quant_config.modules_to_not_convert,
    }
    folder.finish(request.out, source, config, dtype="float16")
    return {
        "versions": common.versions("autoawq", "transformers", "torch"),
        "layers": len(model.get_model_layers(model.model)),
        "device": device,
        "samples": len(texts),
        "tokens": sum(map(len, texts)),
    }


def load(path: Path, device: str, request: common.Request) -> tuple[Any, Any]:
    """The model, on the CPU as AutoAWQ wants it (it moves each layer by itself), and its tokenizer.

    Processors compute much faster in 32 than in 16 bits; graphics processors have no such need.
    """
    import torch
    from awq import AutoAWQForCausalLM
    from transformers import AutoTokenizer

    model = AutoAWQForCausalLM.from_pretrained(
        str(path),
        torch_dtype=torch.float16 if device == "cuda" else torch.float32,
        trust_remote_code=request.trust_remote_code,
        device_map=None,
    )
    tokenizer = AutoTokenizer.from_pretrained(
        str(path), trust_remote_code=request.trust_remote_code
    )
    return model, tokenizer


def quantize(
    worker: Worker, model: Any, tokenizer: Any, texts: list[list[int]], request: common.Request
) -> None:
    """Scale, clip and pack, layer by layer.

    AutoAWQ joins the texts and cuts them into blocks of one length, dropping what is left over:
    a block longer than all the texts together would leave nothing.
    """
    from awq.quantize.quantizer import AwqQuantizer

    class Quantizer(AwqQuantizer):  # type: ignore[misc]
        """AutoAWQ's, which also tells how far it is."""

        done = 0

        def _apply_quant(self, module: Any, named_linears: Any) -> None:
            super()._apply_quant(module, named_linears)
            self.done += 1
            worker.progress(self.done, len(self.modules), "layers")

    total = sum(map(len, texts))
    model.quantize(
        tokenizer,
        quant_config={
            "zero_point": True,
            "q_group_size": request.group_size,
            "w_bit": 4,
            "version": "GEMM",
        },
        calib_data=texts,
        max_calib_samples=len(texts),
        max_calib_seq_len=min(request.tokens, total),
        n_parallel_calib_samples=AT_ONCE,
        quantizer_cls=Quantizer,
    )


if __name__ == "__main__":
    worker_protocol.run(common.quantizing(main))
