"""What types cannot say is checked, and each refusal names its key and a remedy."""

from __future__ import annotations

import pytest

from sweeper.config.checks import CHOICES, check
from sweeper.config.compose import compose
from sweeper.config.fields import leaf_keys
from sweeper.errors import ConfigError

REFUSED = [
    (["study=a/b"], "slash"),
    (["study=.."], "begins with"),
    (["study=.hidden"], "begins with"),
    (["study="], "empty"),
    (["study='a b'"], "character"),
    ([f"study={'x' * 101}"], "101"),
    (["studies_dir="], "studies_dir"),
    (["model.name="], "model.name"),
    (["budget.launches=0"], "budget.launches"),
    (["budget.launches=-1"], "budget.launches"),
    (["budget.minutes=0"], "budget.minutes"),
    (["budget.minutes=inf"], "finite"),
    (["budget.minutes=nan"], "finite"),
    (["budget.launches=null"], "no limit"),
    (["budget.money=5"], "price"),
    (["load.concurrency=[]"], "empty"),
    (["load.concurrency=[0,1]"], "below 1"),
    (["load.concurrency=[4,1]"], "increasing"),
    (["load.concurrency=[4,4]"], "increasing"),
    (["load.requests_per_stream=0"], "requests_per_stream"),
    (["load.warmup_requests_per_stream=-1"], "negative"),
    (["load.request_timeout_s=0"], "request_timeout_s"),
    (["engine.start_timeout_s=-1"], "start_timeout_s"),
    (["workload.input_tokens=0"], "input_tokens"),
    (["workload.output_tokens=1"], "two tokens"),
    (["workload.kind=poem"], "workload.kind"),
    (["space.fixed.max_model_len=32"], "max_model_len=32"),
    (["objective=slo"], "promise"),
    (["objective.kind=best"], "objective.kind"),
    (["objective.concurrency=7"], "objective.concurrency=7"),
    (["objective.latency_metric=e2e_p95"], "e2e_p95"),
    (["objective.throughput_metric=tokens"], "tokens"),
    (["objective=metrics", "objective.metrics=[]"], "empty"),
    (["objective=metrics", "objective.metrics=[ttft_p95_ms]"], "sign"),
    (["objective=metrics", "objective.metrics=[-ttft]"], "ttft"),
    (["objective=metrics", "objective.metrics=[+quality]", "quality=none"], "+quality"),
    (["launcher.kind=foo"], "launcher.kind"),
    (["sampler.kind=annealing"], "sampler.kind"),
    (["quality.kind=lm"], "quality.kind"),
    (["quality.max_prompts=0"], "max_prompts"),
    (["select.prefer=fun"], "select.prefer"),
    (["select.slo.min_quality=90"], "min_quality"),
    (["select.slo.ttft_p95_ms=0"], "ttft_p95_ms"),
    (["select.slo.e2e_p99_ms=-1"], "e2e_p99_ms"),
    (["select.slo.min_requests_per_s=0"], "min_requests_per_s"),
    (["select.slo.min_goodput_share=99"], "min_goodput_share"),
    (["select.slo.min_goodput_share=0.9"], "no goodput was measured"),
    (["objective=slo", "select.slo.min_requests_per_s=2"], "promise"),
    (["tracking.uri=./mlruns"], "mlruns"),
    (["tracking.uri=file:///x"], "file"),
    (["hardware.kind=cuda"], "memory"),
    (["hardware.kind=tpu"], "hardware.kind"),
    (["hardware.compute_capability=[9]"], "compute_capability"),
    (["export.port=70000"], "port"),
    (["export.targets=[]"], "targets"),
]


@pytest.mark.parametrize(("overrides", "said"), REFUSED, ids=[" ".join(r[0])[:60] for r in REFUSED])
def test_refused(overrides: list[str], said: str) -> None:
    cfg = compose(overrides, validate=False)  # it is the check that refuses, nothing before it
    with pytest.raises(ConfigError) as caught:
        check(cfg)
    assert said in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("key", [key for key in leaf_keys() if key.endswith(".kind")])
def test_every_kind_has_its_table(key: str) -> None:
    assert key in CHOICES
    nearly = f"{CHOICES[key][0][:-1]}x"
    with pytest.raises(ConfigError, match=key) as caught:
        check(compose([f"{key}={nearly}"], validate=False))
    assert f"did you mean {CHOICES[key][0]}?" in caught.value.remedy


@pytest.mark.parametrize(
    "overrides",
    [
        ["study=qwen7b-chat_2.1"],
        ["objective=slo", "select.slo.tpot_p95_ms=20"],
        ["objective=point", "objective.concurrency=4"],
        ["objective=metrics", "objective.metrics=[+quality,-ttft_p95_ms]"],
        ["budget.money=5", "hardware.price_per_hour=2.5"],
        ["tracking.uri=http://localhost:5000"],
        ["tracking.uri=sqlite:////tmp/mlflow.db"],
        ["space.fixed.max_model_len=40"],
    ],
)
def test_allowed(overrides: list[str]) -> None:
    compose(overrides)
