"""The real toolchains: each makes, or clearly refuses, a checkpoint of a two-layer model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sweeper.quantize.calibration import write_texts
from sweeper.quantize.recipe import Recipe
from sweeper.quantize.tools import tool
from sweeper.toolchain.worker import EndKind, WorkerEnd, WorkerJob, run_worker

pytestmark = pytest.mark.e2e

LAYERS = 2
HIDDEN, INTERMEDIATE, KEYS = 256, 512, 128
FEATURES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN, KEYS),
    "self_attn.v_proj": (HIDDEN, KEYS),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (HIDDEN, INTERMEDIATE),
    "mlp.up_proj": (HIDDEN, INTERMEDIATE),
    "mlp.down_proj": (INTERMEDIATE, HIDDEN),
}
GROUP = 64
RECIPE = Recipe("tiny", "", calibration="builtin", calibration_samples=8, calibration_tokens=64)
MADE_WITHIN_S = 180.0
UNQUANTIZED = {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"}


class Worked:
    """A worker's end, its events, and what it left."""

    def __init__(self, end: WorkerEnd, events: list[Mapping[str, Any]], out: Path) -> None:
        self.end = end
        self.events = events
        self.out = out

    @property
    def quantization(self) -> dict[str, Any]:
        config = json.loads((self.out / "config.json").read_text(encoding="utf-8"))
        return dict(config["quantization_config"])

    def tensors(self) -> dict[str, Any]:
        from safetensors.torch import load_file

        return {k: v for path in self.out.glob("*.safetensors") for k, v in load_file(path).items()}


def work(name: str, model: Path, tmp_path: Path, **fields: Any) -> Worked:
    out, texts = tmp_path / "out", tmp_path / "texts.jsonl"
    out.mkdir()
    write_texts(RECIPE, texts)
    request = {
        "model": str(model),
        "out": str(out),
        "texts": str(texts),
        "samples": RECIPE.calibration_samples,
        "tokens": RECIPE.calibration_tokens,
        "device": "cpu",
        "seed": 0,
        **fields,
    }
    events: list[Mapping[str, Any]] = []
    job = WorkerJob(tool(name).script, request, tmp_path / "worker.log", MADE_WITHIN_S)
    return Worked(run_worker(job, events.append), events, out)


def assert_made(worked: Worked, model: Path, smaller_than: float) -> dict[str, Any]:
    """What holds for every checkpoint; returns its tensors.

    Args:
        smaller_than: share of the unquantized weights' bytes.
    """
    end = worked.end
    assert end.kind is EndKind.DONE, end.message
    assert end.result["layers"] == LAYERS
    assert end.result["device"] == "cpu"
    assert 0 < end.result["samples"] <= 8 and 0 < end.result["tokens"] <= 8 * 64
    assert end.result["versions"]["torch"].startswith("2.13.0")
    progress = [event for event in worked.events if event["event"] == "progress"]
    assert progress and progress[-1]["done"] == progress[-1]["of"]
    assert weight_bytes(worked.out) < smaller_than * weight_bytes(model)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        assert (worked.out / name).read_bytes() == (model / name).read_bytes()
    tensors = worked.tensors()
    for name in UNQUANTIZED:
        assert tensors[name].dtype.is_floating_point and tensors[name].element_size() == 2, name
    for layer in range(LAYERS):
        for linear in FEATURES:
            assert str(tensors[weight_name(tensors, layer, linear)].dtype) in {
                "torch.int32",
                "torch.int8",
            }
    return tensors


def weight_name(tensors: Mapping[str, Any], layer: int, linear: str) -> str:
    stem = f"model.layers.{layer}.{linear}."
    found = [stem + end for end in ("qweight", "weight_packed", "weight") if stem + end in tensors]
    assert len(found) == 1, f"{stem}*: {found}"
    return found[0]


def weight_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def test_autoawq(tiny_llama: Path, tmp_path: Path) -> None:
    fields = {"bits": 4, "group_size": GROUP, "symmetric": False}
    # Its search for clipping takes a time in proportion to the tokens.
    worked = work("autoawq", tiny_llama, tmp_path, samples=4, tokens=32, **fields)
    tensors = assert_made(worked, tiny_llama, smaller_than=0.6)
    assert_awq(worked, tensors)


def assert_awq(worked: Worked, tensors: Mapping[str, Any]) -> None:
    told = worked.quantization
    assert told["quant_method"] == "awq"
    assert (told["bits"], told["group_size"], told["zero_point"]) == (4, GROUP, True)
    for linear, (inputs, outputs) in FEATURES.items():
        stem = f"model.layers.1.{linear}"
        assert tensors[f"{stem}.qweight"].shape == (inputs, outputs // 8)
        assert tensors[f"{stem}.qzeros"].shape == (inputs // GROUP, outputs // 8)
        assert tensors[f"{stem}.scales"].shape == (inputs // GROUP, outputs)


def test_llmcompressor_w4a16(tiny_llama: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    fields = {"bits": 4, "group_size": GROUP, "symmetric": True, "act_order": True}
    worked = work("llmcompressor", tiny_llama, tmp_path, method="W4A16", **fields)
    tensors = assert_made(worked, tiny_llama, smaller_than=0.6)
    (group,) = worked.quantization["config_groups"].values()
    told = group["weights"]
    assert (told["num_bits"], told["group_size"], told["symmetric"]) == (4, GROUP, True)
    # The kinds that order columns at run time are no longer read by engines.
    assert told["actorder"] in {"static", "weight"}
    original = load_file(tiny_llama / "model.safetensors")
    for linear, (inputs, outputs) in FEATURES.items():
        stem = f"model.layers.0.{linear}"
        assert tensors[f"{stem}.weight_packed"].shape == (outputs, inputs // 8)
        assert tensors[f"{stem}.weight_scale"].shape == (outputs, inputs // GROUP)
        assert "bfloat16" in str(tensors[f"{stem}.weight_scale"].dtype)
        weight = unpacked(tensors[f"{stem}.weight_packed"], tensors[f"{stem}.weight_scale"])
        wanted = original[f"{stem}.weight"].float()
        assert float((weight - wanted).norm() / wanted.norm()) < 0.2, linear


def unpacked(packed: Any, scale: Any) -> Any:
    """Weights, shape (out, in): eight offset four-bit numbers lie in a word, the first lowest."""
    import torch

    shifts = torch.arange(0, 32, 4, dtype=torch.int32)
    whole = ((packed.unsqueeze(-1) >> shifts) & 15).flatten(1) - 8
    return whole.float() * scale.float().repeat_interleave(GROUP, dim=1)


def test_llmcompressor_w8a8(tiny_llama: Path, tmp_path: Path) -> None:
    fields = {"method": "W8A8", "bits": 8, "symmetric": True, "act_order": False}
    worked = work("llmcompressor", tiny_llama, tmp_path, **fields)
    tensors = assert_made(worked, tiny_llama, smaller_than=0.8)
    (group,) = worked.quantization["config_groups"].values()
    assert (group["weights"]["num_bits"], group["weights"]["strategy"]) == (8, "channel")
    inputs_told = group["input_activations"]
    assert (inputs_told["num_bits"], inputs_told["dynamic"]) == (8, True)
    for linear, (inputs, outputs) in FEATURES.items():
        stem = f"model.layers.1.{linear}"
        assert tensors[f"{stem}.weight"].shape == (outputs, inputs)
        assert tensors[f"{stem}.weight_scale"].shape == (outputs, 1)


def test_llmcompressor_w4a8(tiny_llama: Path, tmp_path: Path) -> None:
    fields = {"method": "W4A8", "bits": 4, "group_size": GROUP, "symmetric": True}
    worked = work("llmcompressor", tiny_llama, tmp_path, **fields)
    tensors = assert_made(worked, tiny_llama, smaller_than=0.8)
    (group,) = worked.quantization["config_groups"].values()
    assert (group["weights"]["num_bits"], group["weights"]["group_size"]) == (4, GROUP)
    inputs_told = group["input_activations"]
    assert (inputs_told["num_bits"], inputs_told["dynamic"]) == (8, True)
    for linear, (inputs, outputs) in FEATURES.items():
        stem = f"model.layers.1.{linear}"
        # Engines want this one unpacked: a weight a byte.
        weight = tensors[f"{stem}.weight"]
        assert weight.shape == (outputs, inputs)
        assert int(weight.min()) >= -8 and int(weight.max()) <= 7
        assert tensors[f"{stem}.weight_scale"].shape == (outputs, inputs // GROUP)


def test_gptqmodel_makes_both_formats(tiny_llama: Path, tmp_path: Path) -> None:
    for method in ("gptq", "awq"):
        (tmp_path / method).mkdir()
    fields = {"method": "gptq", "bits": 4, "group_size": GROUP, "symmetric": True}
    gptq = work("gptqmodel", tiny_llama, tmp_path / "gptq", **fields)
    tensors = assert_made(gptq, tiny_llama, smaller_than=0.6)
    told = gptq.quantization
    assert (told["quant_method"], told["bits"], told["group_size"]) == ("gptq", 4, GROUP)
    assert (told["sym"], told["desc_act"]) == (True, False)
    for linear, (inputs, outputs) in FEATURES.items():
        stem = f"model.layers.1.{linear}"
        assert tensors[f"{stem}.qweight"].shape == (inputs // 8, outputs)
        assert tensors[f"{stem}.scales"].shape == (inputs // GROUP, outputs)
    fields |= {"method": "awq", "symmetric": False}
    awq = work("gptqmodel", tiny_llama, tmp_path / "awq", **fields)
    assert_awq(awq, assert_made(awq, tiny_llama, smaller_than=0.6))


def test_auto_gptq_is_there_and_says_that_it_needs_a_gpu(tiny_llama: Path, tmp_path: Path) -> None:
    fields = {"bits": 4, "group_size": GROUP, "symmetric": True, "act_order": False}
    worked = work("auto_gptq", tiny_llama, tmp_path, **fields)
    # Its environment was made, and it was imported: that comes before the look for a GPU.
    assert {"event": "phase", "name": "import"} in worked.events
    assert (worked.end.kind, worked.end.error) == (EndKind.FAILED, "no_cuda")
    assert "NVIDIA GPU" in worked.end.message and "gptqmodel" in worked.end.message
    assert list(worked.out.iterdir()) == []


def test_weights_end_in_the_models_type_without_additions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What workers do to a tool's files; here, because it needs torch."""
    import torch
    from safetensors.torch import load_file, save_file

    workers = tool("auto_gptq").script.parent
    monkeypatch.syspath_prepend(str(workers / "side"))
    monkeypatch.syspath_prepend(str(workers.parents[1] / "toolchain" / "side"))
    import quantize_folder

    own = {"norm.weight": torch.ones(4), "layer.weight": torch.ones(4, 4)}
    made = {
        "norm.weight": torch.full((4,), 1 / 3),
        "layer.qweight": torch.ones(1, 4, dtype=torch.int32),
        "layer.scales": torch.ones(1, 4, dtype=torch.float16),
        "layer.bias": torch.zeros(4),
        "lm_head.weight": torch.ones(8, 4),
    }
    for folder, tensors in (("model", own), ("out", made)):
        (tmp_path / folder).mkdir()
        save_file(tensors, tmp_path / folder / "model.safetensors", metadata={"format": "pt"})
    quantize_folder.drop_additions(tmp_path / "out", tmp_path / "model")
    quantize_folder.cast_weights(tmp_path / "out", "bfloat16")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.safetensors"}
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert {name: str(tensor.dtype) for name, tensor in found.items()} == {
        "norm.weight": "torch.bfloat16",
        "layer.qweight": "torch.int32",
        "layer.scales": "torch.float16",
    }
    assert torch.equal(found["norm.weight"], made["norm.weight"].to(torch.bfloat16))


def test_a_shape_that_does_not_divide_is_refused_by_name(tiny_llama: Path, tmp_path: Path) -> None:
    """Arithmetic refuses it before a worker starts; a worker that is asked says why too."""
    odd = tmp_path / "odd"
    odd.mkdir()
    for path in tiny_llama.iterdir():
        (odd / path.name).symlink_to(path)
    config = json.loads((odd / "config.json").read_text(encoding="utf-8"))
    (odd / "config.json").unlink()
    config |= {"intermediate_size": 480}
    (odd / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shrink(odd / "model.safetensors", 480)
    fields = {"method": "W4A16", "bits": 4, "group_size": GROUP, "symmetric": True}
    worked = work("llmcompressor", odd, tmp_path, **fields)
    assert (worked.end.kind, worked.end.error) == (EndKind.FAILED, "unsupported")
    assert "model.layers.0.mlp.down_proj has 480 input features" in worked.end.message


def shrink(weights: Path, intermediate: int) -> None:
    """Cut the feed-forward layers of a model down."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(weights)
    weights.unlink()
    for name, tensor in tensors.items():
        if "down_proj" in name:
            tensors[name] = tensor[:, :intermediate].contiguous()
        elif "mlp." in name:
            tensors[name] = tensor[:intermediate].contiguous()
    save_file(tensors, weights, metadata={"format": "pt"})
