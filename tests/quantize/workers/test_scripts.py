"""What each worker refuses before it imports anything heavy, and what its environment is."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.quantize.workers.conftest import WORKERS, load_script

SCRIPTS = ("make_autoawq", "make_auto_gptq", "make_gptqmodel", "make_llmcompressor")
WHOLE: dict[str, dict[str, Any]] = {
    "make_autoawq": {"bits": 4, "group_size": 64, "symmetric": False},
    "make_auto_gptq": {"bits": 4, "group_size": 64, "symmetric": True, "act_order": False},
    "make_gptqmodel": {"method": "gptq", "bits": 4, "group_size": 64, "symmetric": True},
    "make_llmcompressor": {"method": "W4A16", "bits": 4, "group_size": 64, "symmetric": True},
}
REFUSED = [
    ("make_autoawq", {"bits": 3}, "bits=3"),
    ("make_autoawq", {"group_size": -1}, "group_size=-1"),
    ("make_autoawq", {"symmetric": True}, "symmetric=True"),
    ("make_autoawq", {"act_order": True}, "act_order=True"),
    ("make_auto_gptq", {"bits": 2}, "bits=2"),
    ("make_auto_gptq", {"group_size": 16}, "group_size=16"),
    ("make_auto_gptq", {"symmetric": False}, "symmetric=False"),
    ("make_gptqmodel", {"method": "qqq"}, "method=qqq"),
    ("make_gptqmodel", {"symmetric": False}, "symmetric=False"),
    ("make_gptqmodel", {"method": "awq", "bits": 8, "symmetric": False}, "bits=8"),
    ("make_gptqmodel", {"method": "awq", "symmetric": False, "act_order": True}, "act_order=True"),
    ("make_llmcompressor", {"method": "NVFP4"}, "method=NVFP4"),
    ("make_llmcompressor", {"group_size": 48}, "group_size=48"),
    ("make_llmcompressor", {"method": "W4A16_AWQ", "act_order": True}, "act_order=True"),
    ("make_llmcompressor", {"method": "W8A8", "bits": 8}, "group_size=64"),
    ("make_llmcompressor", {"method": "FP8_DYNAMIC", "bits": 4, "group_size": None}, "bits=4"),
]


@pytest.mark.parametrize(("script", "changed", "told"), REFUSED)
def test_what_a_tool_or_an_engine_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
    changed: dict[str, Any],
    told: str,
) -> None:
    import quantize_common
    import worker_protocol

    def too_late(*_: Any) -> None:
        pytest.fail("it went on to look for devices or for the model")

    module = load_script(script)
    monkeypatch.setattr(quantize_common, "device", too_late)
    request = quantize_common.Request(
        model="m", out=tmp_path, **{"method": None, **WHOLE[script], **changed}
    )
    with pytest.raises(worker_protocol.WorkerError, match=told) as caught:
        module.main(worker_protocol.Worker({}, io.BytesIO()), request)
    assert caught.value.kind == "unsupported"


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_script_pins_its_tool(script: str) -> None:
    lines = (WORKERS / f"{script}.py").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# /// script"
    block = lines[1 : lines.index("# ///")]
    metadata = tomllib.loads("\n".join(line.removeprefix("# ") for line in block))
    names = [text.split("==")[0].replace("-", "_") for text in metadata["dependencies"]]
    assert script.removeprefix("make_") in names
    assert "torch==2.13.0" in metadata["dependencies"]


def test_progress_of_gptqmodel_counts_computed_layers_only() -> None:
    import worker_protocol

    out = io.BytesIO()
    layers = load_script("make_gptqmodel").Layers(worker_protocol.Worker({}, out), 2)
    for index, packed in ((0, False), (0, True), (1, False), (1, True)):
        layers.layer_complete(layer_idx=index, submodule_finalized=packed)
    assert [line[-1:] for line in out.getvalue().splitlines()] == [b"}", b"}"]
    assert out.getvalue().count(b'"done": 2') == 1


def test_progress_of_auto_gptq_is_read_from_its_log() -> None:
    import logging

    import worker_protocol

    out = io.BytesIO()
    module = load_script("make_auto_gptq")
    log = logging.getLogger("auto_gptq.modeling._base")
    top = logging.getLogger("auto_gptq")
    module.show_progress(worker_protocol.Worker({}, out))
    try:
        log.info("Start quantizing layer 3/12")
        log.info("Quantizing mlp.down_proj in layer 3/12...")
    finally:
        top.handlers.clear()
        top.setLevel(logging.NOTSET)
    assert out.getvalue() == b'{"event": "progress", "done": 2, "of": 12, "what": "layers"}\n'
