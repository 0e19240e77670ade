"""What an engine asks of the other groups, and what comes with it by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.config.identity import differences, study_identity
from sweeper.errors import ConfigError

THERE = ["engine=openai", "engine.base_url=http://10.0.0.5:8000/v1"]

REFUSED = [
    (["engine=openai"], "needs its address", "engine.base_url=http://"),
    (["engine=openai", "engine.base_url=''"], "needs its address", "engine.base_url=http://"),
    (["engine=openai", "engine.base_url=10.0.0.5:8000"], "no http or https", "engine.base_url="),
    (["engine=vllm", "engine.base_url=http://x"], "starts a server of its own", "engine=openai"),
    ([*THERE, "space=gpu"], "space.parameters.quantization", "space=none"),
    ([*THERE, "space.fixed.enforce_eager=true"], "space.fixed.enforce_eager", "space=none"),
    ([*THERE, "engine.args.max_num_seqs=4"], "engine.args.max_num_seqs", "leave engine.args"),
    ([*THERE, "engine.env.OMP_NUM_THREADS=4"], "engine.env.OMP_NUM_THREADS", "leave engine.env"),
    ([*THERE, "model.dtype=float16"], "model.dtype", "leave model.dtype out"),
    ([*THERE, "profile=gpu"], "only load and workload can be varied", "space=none"),
    (["engine=vllm_offline", "load=closed"], "takes whole batches", "load=batch"),
    (["engine=vllm_offline", "quality=agreement"], "over HTTP", "quality=none"),
    (
        ["engine=vllm_offline", "workload.kind=conversation", "workload.turns=2"],
        "between its turns",
        "engine=vllm",
    ),
    (["engine=vllm_offline", "workload.beam_width=2"], "no beam search", "beam_width=1"),
    (["load=batch"], "load.kind=batch", "engine=vllm_offline"),
    (["engine=mock", "load.kind=batch"], "engine=mock is driven", "engine=vllm_offline"),
    (["engine=simulate", "quality=agreement"], "writes nothing", "quality=none"),
    (["engine=simulate", "load=ramp"], "no load.kind=ramp", "load=closed"),
    (["engine=simulate", "load=burst"], "no load.arrivals=gamma", "load=constant"),
    (["engine=simulate", "load=slo", "load.goodput.ttft_ms=9"], "percentiles alone", "select.slo"),
]


@pytest.mark.parametrize(("overrides", "said", "remedy"), REFUSED, ids=str)
def test_refused_at_once(overrides: list[str], said: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose(overrides)
    assert said in caught.value.message
    assert remedy in caught.value.remedy


def test_a_server_elsewhere_brings_what_goes_with_it() -> None:
    cfg = compose(THERE)
    assert (cfg.space.name, cfg.quality.kind, cfg.model.name) == ("none", "none", "served")
    assert (cfg.space.parameters, cfg.space.fixed, cfg.engine.args) == ({}, {}, {})
    assert cfg.model.facts == {}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_it_does_not_matter_what_this_machine_has(device: str) -> None:
    assert compose(THERE, device_kind=device) == compose(THERE)


def test_what_the_user_says_goes_before_what_the_engine_brings() -> None:
    cfg = compose([*THERE, "model=qwen7b", "load=quick", "quality=agreement", "workload=chat"])
    assert (cfg.model.name, cfg.load.name, cfg.workload.name) == ("qwen7b", "quick", "chat")
    assert cfg.quality.kind == "agreement"


@pytest.mark.parametrize(("device", "space"), [("cpu", "cpu"), ("cuda", "gpu")])
def test_batches_without_a_server_follow_the_device(device: str, space: str) -> None:
    cfg = compose(["engine=vllm_offline"], device_kind=device)
    assert (cfg.load.kind, cfg.quality.kind, cfg.space.name) == ("batch", "none", space)
    other = compose([], device_kind=device)
    assert (cfg.budget, cfg.workload, cfg.space) == (other.budget, other.workload, other.space)
    assert cfg.engine.args == other.engine.args


def test_an_engine_of_the_users_own_file_brings_the_same(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: openai\nbase_url: http://x\n")
    assert compose([f"engine={mine}"]).space.name == "none"
    assert compose(["engine.name=vllm_offline"]).load.kind == "batch"


def test_the_address_is_part_of_what_a_study_is() -> None:
    def identity(*overrides: str) -> dict[str, object]:
        cfg = compose(["engine=openai", *overrides])
        return study_identity(cfg, model={"name": "m"}, engine={"name": "openai"}, hardware={})

    one = identity("engine.base_url=http://one:8000")
    assert differences(one, identity("engine.base_url=http://ONE:8000/v1/")) == []
    assert differences(one, identity("engine.base_url=http://two:8000")) == [
        "engine.base_url: http://one:8000 → http://two:8000"
    ]
    named = identity("engine.base_url=http://one:8000", "engine.served_model=x")
    assert differences(one, named) == ["engine.served_model: absent → x"]


def test_other_engines_identity_says_nothing_of_addresses() -> None:
    identity = study_identity(compose([]), model={}, engine={"name": "vllm"}, hardware={})
    assert set(identity["engine"]) == {"name", "args", "env"}
