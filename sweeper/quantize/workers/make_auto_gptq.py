# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = [
#     "auto-gptq==0.7.1",
#     "transformers==4.45.2",
#     "peft==0.10.0",
#     "torch==2.13.0",
#     "numpy>=2,<3",
# ]
# ///
"""GPTQ checkpoints with AutoGPTQ, the classic. Its loader works on machines with CUDA only."""

from __future__ import annotations

import logging
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import worker_protocol
from worker_protocol import Worker

sys.path.append(str(Path(__file__).resolve().parent / "side"))
import quantize_common as common
import quantize_folder as folder

GROUP_SIZES = (common.PER_CHANNEL, 32, 64, 128)
BITS = (4, 8)
LAYER_STARTED = re.compile(r"Start quantizing layer (\d+)/(\d+)")


def main(worker: Worker, request: common.Request) -> dict[str, Any]:
    common.require("bits", request.bits, BITS, "AutoGPTQ")
    common.require("group_size", request.group_size, GROUP_SIZES, "AutoGPTQ")
    # It can do without symmetry, but no engine of today reads that.
    common.require("symmetric", request.symmetric is not False, (True,), "AutoGPTQ")
    worker.phase("import")
    import auto_gptq

    if common.device(request) != "cuda":
        common.refuse_without_cuda("AutoGPTQ loads a model for quantizing only onto a GPU")

    worker.phase("load")
    source = folder.fetch(request.model, request.revision)
    with tempfile.TemporaryDirectory() as work:
        path = str(folder.for_old_transformers(source, Path(work)))
        model, tokenizer = load(auto_gptq, path, request)
        common.check_shapes(model.model, request.group_size, multiple_in=32, multiple_out=32)
        texts = common.calibration(request, tokenizer)
        common.seed_everything(request.seed)
        worker.phase("quantize")
        show_progress(worker)
        examples = [{"input_ids": text, "attention_mask": [1] * len(text)} for text in texts]
        model.quantize(examples, cache_examples_on_gpu=False)
        worker.phase("save")
        model.save_quantized(str(request.out), use_safetensors=True)
    folder.drop_additions(request.out, source)
    config = {
        "quant_method": "gptq",
        "bits": request.bits,
        "group_size": request.group_size,
        "sym": True,
        "desc_act": bool(request.act_order),
        "checkpoint_format": "gptq",
        "lm_head": False,
    }
    folder.finish(request.out, source, config, dtype="float16")
    return {
        "versions": common.versions("auto-gptq", "transformers", "torch"),
        "layers": model.config.num_hidden_layers,
        "device": "cuda",
        "samples": len(texts),
        "tokens": sum(map(len, texts)),
    }


def load(auto_gptq: Any, path: str, request: common.Request) -> tuple[Any, Any]:
    """The model, on the CPU (AutoGPTQ moves each layer by itself), and its tokenizer."""
    from transformers import AutoTokenizer

    config = auto_gptq.BaseQuantizeConfig(
        bits=request.bits,
        group_size=request.group_size,
        sym=True,
        desc_act=bool(request.act_order),
        model_file_base_name="model",
    )
    model = auto_gptq.AutoGPTQForCausalLM.from_pretrained(
        path, config, trust_remote_code=request.trust_remote_code
    )
    tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=request.trust_remote_code)
    return model, tokenizer


def show_progress(worker: Worker) -> None:
    """AutoGPTQ tells its layers to its log alone, so that is where they are read."""

    class Layers(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if found := LAYER_STARTED.match(record.getMessage()):
                worker.progress(int(found[1]) - 1, int(found[2]), "layers")

    log = logging.getLogger("auto_gptq")
    log.setLevel(logging.INFO)
    log.addHandler(Layers())


if __name__ == "__main__":
    worker_protocol.run(common.quantizing(main))
