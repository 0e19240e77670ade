"""What the quantizing workers share: requests, pieces of text, shapes, a library's errors."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def common(side_folders: None) -> Any:
    import quantize_common

    return quantize_common


@pytest.fixture
def protocol(side_folders: None) -> Any:
    import worker_protocol

    return worker_protocol


def worker_of(protocol: Any, **request: Any) -> Any:
    return protocol.Worker(request, io.BytesIO())


class Model:
    """Modules by name, with the features of linear layers."""

    def __init__(self, **features: tuple[int, int]) -> None:
        self._features = features

    def named_modules(self) -> Any:
        yield "model", SimpleNamespace()
        for name, (inputs, outputs) in self._features.items():
            linear = SimpleNamespace(in_features=inputs, out_features=outputs)
            yield name.replace("__", "."), linear


def test_a_request_takes_defaults_for_what_is_null(common: Any, protocol: Any) -> None:
    worker = worker_of(protocol, model="m", out="/o", texts=None, samples=None, bits=4, seed=7)
    request = common.Request.of(worker)
    assert request.out == Path("/o")
    assert (request.texts, request.samples, request.bits, request.seed) == (None, 128, 4, 7)


@given(
    lengths=st.lists(st.integers(0, 40), max_size=12),
    samples=st.integers(1, 20),
    tokens=st.integers(1, 15),
)
def test_pieces_repeat_nothing_and_keep_within_what_was_asked(
    lengths: list[int], samples: int, tokens: int
) -> None:
    import quantize_common

    marks = iter(range(10_000))
    texts = [[next(marks) for _ in range(length)] for length in lengths]
    found = quantize_common.pieces(texts, samples, tokens)
    used = [mark for piece in found for mark in piece]
    assert len(used) == len(set(used))
    assert len(found) <= samples and all(1 <= len(piece) <= tokens for piece in found)
    beginnings = [text[:tokens] for text in texts if text]
    assert found[: len(beginnings)] == beginnings[:samples]
    whole = sum(-(-length // tokens) for length in lengths)
    assert len(found) == min(samples, whole)


def test_calibration_wants_enough_tokens(common: Any, protocol: Any, tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps({"text": "a b c"}) + "\n", encoding="utf-8")

    def tokenizer(text: str) -> dict[str, list[int]]:
        return {"input_ids": list(range(len(text.split())))}

    request = common.Request(model="m", out=tmp_path, texts=texts)
    with pytest.raises(protocol.WorkerError, match="give 3 tokens, at least 64") as caught:
        common.calibration(request, tokenizer)
    assert caught.value.kind == "calibration"

    texts.write_text(json.dumps({"text": "word " * 100}) + "\n\n", encoding="utf-8")
    request = common.Request(model="m", out=tmp_path, texts=texts, samples=2, tokens=40)
    assert [len(piece) for piece in common.calibration(request, tokenizer)] == [40, 40]


@pytest.mark.parametrize("content", [None, ""])
def test_no_texts_are_told(common: Any, protocol: Any, tmp_path: Path, content: str | None) -> None:
    path = None if content is None else tmp_path / "texts.jsonl"
    if path is not None:
        path.write_text("", encoding="utf-8")
    with pytest.raises(protocol.WorkerError) as caught:
        common.read_texts(path)
    assert caught.value.kind == "calibration"


@pytest.mark.parametrize(
    ("name", "features", "told"),
    [
        ("model__layers__0__mlp__down_proj", (96, 64), "96 input features.* group size 64"),
        ("model__layers__0__mlp__down_proj", (192, 48), "48 output features.* of 32"),
        ("model__layers__0__self_attn__k_proj", (0x40 * 3 + 32, 64), "224 input features"),
    ],
)
def test_shapes_that_cannot_be_packed_are_refused(
    common: Any, protocol: Any, name: str, features: tuple[int, int], told: str
) -> None:
    with pytest.raises(protocol.WorkerError, match=told) as caught:
        common.check_shapes(Model(**{name: features}), 64, multiple_in=32, multiple_out=32)
    assert caught.value.kind == "unsupported"
    assert name.replace("__", ".") in caught.value.message


def test_shapes_of_what_stays_unquantized_do_not_matter(common: Any) -> None:
    model = Model(
        lm_head=(100, 49),
        model__layers__3__mlp__gate=(128, 7),
        model__layers__3__mlp__shared_expert_gate=(128, 1),
        visual__blocks__0__fc=(100, 7),
        model__layers__3__mlp__up_proj=(128, 256),
    )
    common.check_shapes(model, 128, multiple_in=32, multiple_out=64)
    assert [name for name, *_ in common.quantized_linears(model)] == ["model.layers.3.mlp.up_proj"]


@pytest.mark.parametrize("group_size", [None, -1])
def test_without_groups_only_packing_matters(common: Any, group_size: int | None) -> None:
    common.check_shapes(Model(layers__0__o_proj=(96, 96)), group_size, 32, 32)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "memory"),
        (TypeError("persimmon isn't supported yet."), "unsupported"),
        (ValueError("... but Transformers does not recognize this architecture"), "unsupported"),
        (ValueError("AWQ: CUDA is not available."), "no_cuda"),
    ],
)
def test_a_librarys_words_get_a_class(
    common: Any, protocol: Any, error: Exception, kind: str
) -> None:
    with pytest.raises(protocol.WorkerError) as caught, common.errors_in_our_words():
        raise error
    assert caught.value.kind == kind
    assert str(error) in caught.value.message


def test_an_unknown_error_stays_what_it_is(common: Any) -> None:
    with pytest.raises(ValueError, match="seven"), common.errors_in_our_words():
        raise ValueError("seven is no number of heads")


def test_what_torch_may_see_is_settled_first(
    common: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "before")
    common.prepare(common.Request(model="some/hub-id", out=tmp_path, device="auto"))
    assert (environ("CUDA_VISIBLE_DEVICES"), environ("HF_HUB_OFFLINE")) == ("before", "before")
    common.prepare(common.Request(model=str(tmp_path), out=tmp_path, device="cpu"))
    assert (environ("CUDA_VISIBLE_DEVICES"), environ("HF_HUB_OFFLINE")) == ("", "1")


def environ(name: str) -> str:
    import os

    return os.environ[name]


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_tool_logs_into_its_folder_goes_with_the_work(
    common: Any, protocol: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "as before")  # so that what `prepare` sets does not stay
    (tmp_path / "out").mkdir()
    (tmp_path / "model").mkdir()
    seen = []

    def main(worker: Any, request: Any) -> dict[str, Any]:
        Path("tool.log").write_text("chatter")
        seen.append(request)
        if fails:
            raise KeyError("unforeseen")
        return {}

    worker = worker_of(protocol, model="model", out="out")
    if fails:
        with pytest.raises(KeyError):
            common.quantizing(main)(worker)
    else:
        common.quantizing(main)(worker)
    assert (seen[0].model, seen[0].out) == (str(tmp_path / "model"), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [], "its log is gone"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out"]
    assert Path.cwd() == tmp_path
