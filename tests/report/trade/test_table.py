from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.report.trade.table import LATENCIES, THROUGHPUT, Trade, TradeRow, trade
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point
from tests.report.traded import KEYS, ladder, made, score, traded, traded_study

FOUND = trade(traded_study())


def row(label: str, found: Trade = FOUND, *, baseline: bool = False) -> TradeRow:
    (only,) = [r for r in found.rows if r.label == label and r.is_baseline is baseline]
    return only


def test_the_baseline_leads_then_what_works_by_speed_then_what_does_not() -> None:
    assert [(r.label, r.trial) for r in FOUND.rows] == [
        ("none", 0),
        ("w8a8", 6),
        ("w4a16", 4),
        ("w4a16 group_size=32", 3),
        ("none", 1),
        ("none kv_cache_dtype=fp8", 7),
        ("int8_per_channel_weight_only", 2),
        ("awq", 8),
        ("w4a16_awq", 10),
        ("gptq", 9),
    ]
    assert FOUND.rows[0].is_baseline
    assert FOUND.says_something


def test_scheduling_collapses_into_the_fastest() -> None:
    assert (row("w4a16").trial, row("w4a16").trials) == (4, 2)
    assert row("none").deployment == {"max_num_seqs": 64}


def test_every_figure_is_also_a_multiple_of_the_baselines() -> None:
    speeds = row("w4a16").speeds
    assert FOUND.level == "concurrency 32"
    assert speeds[THROUGHPUT].value == pytest.approx(234)
    assert speeds[THROUGHPUT].ratio == pytest.approx(1.3)
    # Both intervals are ± 3 %.
    assert speeds[THROUGHPUT].ratio_interval == pytest.approx(
        [1.3 * 0.97 / 1.03, 1.3 * 1.03 / 0.97]
    )
    assert [speeds[name].ratio for name in LATENCIES] == pytest.approx([1 / 1.3] * 3)
    single = row("w4a16").single_stream
    assert single is not None
    assert (single.value, single.ratio) == pytest.approx((26, 1.3))
    base = row("none", baseline=True).speeds[THROUGHPUT]
    assert (base.ratio, base.ratio_interval) == (1.0, None)


def test_recipe_tool_and_what_it_cost_to_make() -> None:
    own = row("w4a16 group_size=32")
    assert (own.tool, own.bits, own.group_size) == ("llmcompressor", 4, 32)
    assert (own.made_s, own.reused, own.checkpoint_key) == (92.0, False, KEYS["w4a16"])
    assert row("w4a16").reused
    first = traded(11, deployment={"quantization": "w4a16", "max_num_seqs": 8}, speed=0.5,
                   made_here=made("w4a16", "llmcompressor"))  # fmt: skip
    assert not row("w4a16", trade([*traded_study(), first])).reused
    assert own.checkpoint_gib is not None
    assert own.checkpoint_gib.value == pytest.approx(0.13)
    assert own.checkpoint_gib.ratio == pytest.approx(0.52)
    assert row("int8_per_channel_weight_only").tool == "engine"
    assert row("none").tool == ""
    # Neither was served: what their manifests name as checkpoint is the unquantized model.
    assert row("w4a16_awq").tool == row("gptq").tool == ""
    assert row("w4a16_awq").checkpoint_gib is None


def test_a_checkpoint_of_somebody_else_is_published() -> None:
    found = traded(1, deployment={"quantization": "awq"})
    found.manifest["checkpoint"] = "Org/Model-AWQ"
    assert row("awq", trade([traded(0), found])).tool == "published"


def test_freed_memory_is_told_in_tokens_under_the_same_limit_only() -> None:
    fp8 = row("none kv_cache_dtype=fp8").kv_cache_tokens
    assert fp8 is not None
    assert (fp8.value, fp8.ratio) == pytest.approx((401_000, 2.005))
    # Launched under another limit alone.
    w8a8 = row("w8a8")
    assert w8a8.kv_other_limit
    assert w8a8.kv_cache_tokens is not None
    assert (w8a8.kv_cache_tokens.value, w8a8.kv_cache_tokens.ratio) == (404_000, None)
    # The best was launched under another limit, a slower one under the baseline's.
    study = [o for o in traded_study() if o.number != 4]
    slower = traded(
        11, deployment={"quantization": "w4a16"}, speed=0.5, kv_tokens=210_000,
        made_here=made("w4a16", "llmcompressor"),
    )  # fmt: skip
    w4a16 = row("w4a16", trade([*study, slower]))
    assert w4a16.trial == 5
    assert not w4a16.kv_other_limit
    assert w4a16.kv_cache_tokens is not None
    assert w4a16.kv_cache_tokens.ratio == pytest.approx(1.05)


def test_room_is_compared_with_an_unquantized_launch_of_the_same_limit() -> None:
    limit = {"gpu_memory_utilization": 0.6}
    plain = traded(1, deployment=limit, kv_tokens=400_000)
    ours = traded(2, deployment={"quantization": "w8a8", **limit}, kv_tokens=440_000)
    found = row("w8a8", trade([traded(0), plain, ours]))
    assert found.kv_cache_tokens is not None
    assert found.kv_cache_tokens.ratio == pytest.approx(1.1)


def test_launches_that_differ_in_nothing_else_are_compared_first() -> None:
    plain = traded(1, deployment={"max_num_batched_tokens": 8192}, kv_tokens=180_000, speed=0.9)
    ours = traded(
        2, deployment={"quantization": "w8a8", "max_num_batched_tokens": 8192}, kv_tokens=198_000
    )
    found = row("w8a8", trade([traded(0), plain, ours]))
    assert found.kv_cache_tokens is not None
    assert found.kv_cache_tokens.ratio == pytest.approx(1.1)


def test_memory_of_a_split_model_is_no_multiple_of_a_whole_one() -> None:
    split = traded(1, deployment={"quantization": "w8a8", "tensor_parallel_size": 2}, model_gib=0.1)
    found = row("w8a8", trade([traded(0), split]))
    assert found.model_memory_gib is not None
    assert (found.model_memory_gib.value, found.model_memory_gib.ratio) == (0.1, None)
    assert found.kv_other_limit


def test_broken_output_is_a_row_even_beside_one_that_works() -> None:
    broken = traded(
        11, deployment={"quantization": "w8a8", "speculative": "ngram"}, speed=2.0,
        verdict=Verdict.QUALITY_FAIL, quality=score(-0.5), cause="its own output is broken",
    )  # fmt: skip
    both = [r for r in trade([*traded_study(), broken]).rows if r.label == "w8a8"]
    assert [(r.trial, r.verdict) for r in both] == [(6, Verdict.OK), (11, Verdict.QUALITY_FAIL)]


def test_a_failure_in_scheduling_has_no_row_where_the_same_weights_work() -> None:
    failed = outcome(11, deployment={"quantization": "w8a8", "max_num_seqs": 4096},
                     verdict=Verdict.CAPACITY)  # fmt: skip
    assert [r.trial for r in trade([*traded_study(), failed]).rows if r.label == "w8a8"] == [6]
    plain = outcome(1, deployment={"max_num_seqs": 4096}, verdict=Verdict.CAPACITY)
    assert [r.trial for r in trade([traded(0), plain]).rows] == [0]


def test_the_level_is_the_highest_that_the_baseline_and_half_of_the_rows_have() -> None:
    weak = traded(11, deployment={"quantization": "weak"}, points=ladder(1.0)[:1])
    assert trade([*traded_study(), weak]).level == "concurrency 32"
    assert row("weak", trade([*traded_study(), weak])).speeds == {}
    few = [traded(n, deployment={"quantization": f"q{n}"}, points=ladder(1)[:2]) for n in (1, 2)]
    assert trade([traded(0), *few]).level == "concurrency 8"
    base = traded(0, points=ladder(1)[:1])
    assert trade([base, *few]).level == "concurrency 1"


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [outcome(0, verdict=Verdict.CAPACITY)],
        [outcome(0, agreement=None), outcome(1, deployment={"quantization": "x"}, manifest={})],
        [outcome(1, deployment={"quantization": "x"}, points=[point(valid=False)])],
    ],
)
def test_whatever_became_of_a_study_there_is_a_table(outcomes: list[TrialOutcome]) -> None:
    found = trade(outcomes)
    assert len(found.rows) == len(outcomes)
    assert all(r.quality is None or r.quality.name for r in found.rows)


def test_a_study_of_scheduling_alone_has_nothing_to_show() -> None:
    assert not trade([traded(0), traded(1, deployment={"max_num_seqs": 4})]).says_something


def test_predicted_figures_are_marked() -> None:
    simulated = traded(0)
    simulated.manifest["engine"] = {"name": "mock", "predicted": True}
    assert trade([simulated]).predicted
    ours = replace(simulated, number=1, kind="search", deployment={"quantization": "w4a16"})
    assert row("w4a16", trade([simulated, ours])).tool == ""  # no checkpoint was made or served
    assert not FOUND.predicted


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["none", "a", "b"]),
            st.floats(0.1, 10),
            st.sampled_from([Verdict.OK, Verdict.QUALITY_FAIL, Verdict.CAPACITY]),
        ),
        max_size=8,
    )
)
def test_rows_are_ordered_and_every_quantization_that_works_is_there(
    drawn: list[tuple[str, float, Verdict]],
) -> None:
    outcomes = [traded(0)]
    for number, (name, speed, verdict) in enumerate(drawn, start=1):
        deployment = {"max_num_seqs": number} | ({} if name == "none" else {"quantization": name})
        points = ladder(speed) if verdict is not Verdict.CAPACITY else []
        outcomes.append(traded(number, deployment=deployment, points=points, verdict=verdict))
    rows = trade(reversed(outcomes)).rows
    assert rows[0].is_baseline
    works = {name for name, _, verdict in drawn if verdict is not Verdict.CAPACITY}
    assert works <= {r.quantization for r in rows}
    for name in works:
        best = max((s for n, s, v in drawn if (n, v) == (name, Verdict.OK)), default=None)
        shown = [r for r in rows[1:] if r.quantization == name and r.verdict is Verdict.OK]
        assert len(shown) == (best is not None)
        if best is not None:
            assert math.isclose(shown[0].speeds[THROUGHPUT].value, 180 * best)


def test_a_retry_replaces_its_first_attempt() -> None:
    first = traded(1, deployment={"quantization": "x"}, verdict=Verdict.INFRA, points=[])
    again = replace(first, verdict=Verdict.OK, attempt=2, points=ladder(1.0))
    assert [r.verdict for r in trade([traded(0), first, again]).rows] == [Verdict.OK, Verdict.OK]


def test_an_engine_that_tells_nothing_of_the_baselines_cache_is_no_other_limit() -> None:
    silent = traded(0, kv_tokens=None)
    found = row("x", trade([silent, traded(1, deployment={"quantization": "x"})]))
    assert not found.kv_other_limit
    assert found.kv_cache_tokens is not None
    assert found.kv_cache_tokens.ratio is None
