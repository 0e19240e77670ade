from __future__ import annotations

import shlex
from dataclasses import asdict

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.reproduce import commands, from_scratch
from tests.factories import study

SLO = "select.slo.ttft_p95_ms=500.0"
APART = {"study", "studies_dir", "cache_dir", "tracking", "record", "export", "launcher"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([], ["profile=cpu"]),
        (
            ["model=qwen7b", "engine=mock", "hardware=h100_80gb"],
            ["profile=gpu", "engine=mock", "hardware=h100_80gb", "model=qwen7b"],
        ),
        (
            ["objective=slo", "select.slo.ttft_p95_ms=500", "load.concurrency=[1,8]"],
            [
                "profile=cpu",
                "objective=slo",
                "load.concurrency=[1,8]",
                "select.slo.ttft_p95_ms=500.0",
            ],
        ),
        (["space.parameters.block_size=[16,32]", "~space.parameters.speculative"], None),
        (["model.path='/models/x y'", "+engine.env.NAME='it is \"so\"'"], None),
        (["model=qwen7b", "~engine.args.gpu_memory_utilization", "quantize=[awq,w8a8]"], None),
    ],
)
def test_what_is_typed_composes_the_same_configuration(
    asked: list[str], expected: list[str] | None
) -> None:
    cfg = compose(asked, validate=False)
    typed = [word for text in from_scratch(cfg) for word in shlex.split(text)]
    if expected is not None:
        assert typed == expected
    # On a machine of another kind too.
    again = compose(typed, validate=False, device_kind="cuda")
    assert {k: v for k, v in asdict(again).items() if k not in APART} == {
        k: v for k, v in asdict(cfg).items() if k not in APART
    }


def test_each_step_names_the_study_and_its_promise() -> None:
    cfg = compose(["select.slo.e2e_p95_ms=1000", "studies_dir='/data/my studies'"])
    slo = SelectConfig(slo=SloConfig(e2e_p95_ms=1000))
    found = recommend(points_frame(study()), slo)
    typed = [command for _, command in commands(cfg, "tiny", found, deployable=True)]
    assert typed[0].startswith("python -m sweeper profile=cpu ")
    assert typed[0].endswith(" study=tiny-again")
    assert typed[1] == "python -m sweeper resume study=tiny studies_dir='/data/my studies'"
    assert typed[3].endswith("select.slo.e2e_p95_ms=1000 verify=true")
    assert not any("verify" in c for _, c in commands(cfg, "tiny", found, deployable=False))
    assert len(commands(cfg, "tiny", None, deployable=True)) == 2


def test_no_secret_is_typed() -> None:
    token = "hf_" + "aB3dE" * 7
    cfg = compose([f"+engine.env.HF_TOKEN={token}"], validate=False)
    assert token not in " ".join(from_scratch(cfg))
