# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#     "gptqmodel==7.6.0",
#     "torch==2.13.0",
#     "requests",
# ]
# ///
"""GPTQ and AWQ checkpoints with GPTQModel, the maintained successor; on a GPU or the CPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import worker_protocol
from worker_protocol import Worker

sys.path.append(str(Path(__file__).resolve().parent / "side"))
import quantize_common as common
import quantize_folder as folder

GROUP_SIZES = {"gptq": (common.PER_CHANNEL, 32, 64, 128), "awq": (32, 64, 128)}
BITS = {"gptq": (4, 8), "awq": (4,)}
SYMMETRIC = {"gptq": True, "awq": False}


def main(worker: Worker, request: common.Request) -> dict[str, Any]:
    method = request.method or "gptq"
    common.require("method", method, tuple(BITS), "GPTQModel")
    common.require("bits", request.bits, BITS[method], "GPTQModel")
    common.require("group_size", request.group_size, GROUP_SIZES[method], "GPTQModel")
    symmetric = SYMMETRIC[method] if request.symmetric is None else request.symmetric
    common.require("symmetric", symmetric, (SYMMETRIC[method],), f"GPTQModel's {method}")
    act_order = bool(request.act_order)
    if method == "awq":
        common.require("act_order", act_order, (False,), "GPTQModel's awq")

    worker.phase("import")
    # It loads layers with two threads of its pool, but on two cores makes a pool of one.
    threads = max(2, ((os.cpu_count() or 1) + 1) // 2)
    os.environ.setdefault("GPTQMODEL_CPU_WORKERS", str(min(12, threads)))
    from gptqmodel import BACKEND, GPTQModel

    device = common.device(request)
    worker.phase("load")
    source = folder.fetch(request.model, request.revision)
    model = GPTQModel.load(
        str(source),
        quantize_config(method, act_order, device, request),
        trust_remote_code=request.trust_remote_code,
    )
    common.check_shapes(model.model, request.group_size, multiple_in=32, multiple_out=32)
    texts = common.calibration(request, model.tokenizer)
    common.seed_everything(request.seed)
    worker.phase("quantize")
    layers = int(model.model.config.get_text_config().num_hidden_layers)
    model.layer_callback = Layers(worker, layers)
    # The torch kernels pack on any device; others that it might choose refuse to without CUDA.
    backend = BACKEND.GPTQ_TORCH if method == "gptq" else BACKEND.AWQ_TORCH
    model.quantize(texts, batch_size=1, calibration_sort=None, backend=backend)
    worker.phase("save")
    model.save(str(request.out))
    folder.finish(request.out, source, config_of(method, act_order, request))
    return {
        "versions": common.versions("gptqmodel", "transformers", "torch"),
        "layers": layers,
        "device": device,
        "samples": len(texts),
        "tokens": sum(map(len, texts)),
    }


class Layers:
    """Told by GPTQModel of each layer that is done."""

    def __init__(self, worker: Worker, of: int) -> None:
        self.worker = worker
        self.of = of
        self.done = 0

    def layer_complete(self, *, layer_idx: int, submodule_finalized: bool) -> None:
        """It tells twice: when a layer is computed, and (later) when it is packed."""
        if not submodule_finalized:
            self.done = max(self.done, layer_idx + 1)
            self.worker.progress(self.done, self.of, "layers")


def quantize_config(method: str, act_order: bool, device: str, request: common.Request) -> Any:
    from gptqmodel import QuantizeConfig
    from gptqmodel.quantization import FORMAT, METHOD

    shared = {"bits": request.bits, "group_size": request.group_size, "device": device}
    if method == "awq":
        return QuantizeConfig(**shared, sym=False, method=METHOD.AWQ, format=FORMAT.GEMM)
    # `original` packs without compiling anything. Ordering inside groups is off with act_order:
    # they exclude each other.
    return QuantizeConfig(
        **shared,
        sym=True,
        desc_act=act_order,
        act_group_aware=not act_order,
        pack_impl="original",
    )


def config_of(method: str, act_order: bool, request: common.Request) -> dict[str, Any]:
    """`quantization_config`: GPTQModel's own, less what differs from one run to the next."""
    shared = {"quant_method": method, "bits": request.bits, "group_size": request.group_size}
    if method == "awq":
        return {**shared, "zero_point": True, "version": "gemm", "lm_head": False}
    return {
        **shared,
        "sym": True,
        "desc_act": act_order,
        "checkpoint_format": "gptq",
        "lm_head": False,
    }


if __name__ == "__main__":
    worker_protocol.run(common.quantizing(main))
