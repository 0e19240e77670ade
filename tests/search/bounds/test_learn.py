from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.search.bounds.bound import Bound, Relation, Rest
from sweeper.search.bounds.learn import (
    LEARNT_BOUND,
    Learner,
    known_defaults,
    learn,
    learn_bounds,
    refused_counts,
)
from sweeper.search.bounds.teachings import TEACHINGS
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome
from tests.search.bounds.journal import baseline, failed

INFEASIBLE, CAPACITY = Verdict.INFEASIBLE_CONFIG, Verdict.CAPACITY
CRASH = Verdict.CRASH_UNDER_LOAD


def only(*outcomes: TrialOutcome) -> Bound:
    (bound,) = learn_bounds([baseline(), *outcomes])
    return bound


UTIL, LEN, SEQS = "gpu_memory_utilization", "max_model_len", "max_num_seqs"
MBT, TP, PP = "max_num_batched_tokens", "tensor_parallel_size", "pipeline_parallel_size"


@pytest.mark.parametrize(
    ("trial", "excluded", "free"),
    [
        pytest.param(
            failed(4, {UTIL: 0.5, LEN: 8192}, "no_kv_memory"),
            [{UTIL: 0.4, LEN: 8192}, {UTIL: 0.5, LEN: 16384}, {UTIL: 0.5}],
            [{UTIL: 0.6, LEN: 8192}, {UTIL: 0.5, LEN: 4096}, {LEN: 8192},
             {UTIL: 0.5, LEN: 8192, "quantization": "fp8"},
             {UTIL: 0.5, LEN: 8192, "enforce_eager": True},
             # The default of a batch limit is not known, so it is comparable with no number.
             {UTIL: 0.5, LEN: 8192, SEQS: 1024}],
            id="no room for a cache",
        ),
        pytest.param(
            failed(4, {SEQS: 256, MBT: 8192, TP: 2}, "no_kv_memory"),
            [{SEQS: 512, MBT: 8192, TP: 2}, {SEQS: 256, MBT: 9000, TP: 2},
             {SEQS: 256, MBT: 8192}, {SEQS: 256, MBT: 8192, TP: 2, UTIL: 0.8}],
            [{SEQS: 128, MBT: 8192, TP: 2}, {SEQS: 256, MBT: 8192, TP: 4},
             {SEQS: 256, MBT: 8192, TP: 2, UTIL: 0.95}, {SEQS: 256, TP: 2}],
            id="larger batches and fewer devices",
        ),
        pytest.param(
            failed(4, {UTIL: 0.8}, "kv_too_small_for_max_model_len",
                   max_model_len=32768, estimated_max_model_len=20000),
            [{UTIL: 0.8, LEN: 20001}, {UTIL: 0.7, LEN: 30000}, {UTIL: 0.8}],
            [{UTIL: 0.8, LEN: 20000}, {UTIL: 0.85, LEN: 20001}],
            id="the length that the engine says would fit",
        ),
        pytest.param(
            failed(4, {UTIL: 0.8, "enable_chunked_prefill": False},
                   "kv_too_small_for_max_model_len", estimated_max_model_len=20000),
            [{UTIL: 0.8, "enable_chunked_prefill": False, LEN: 40000}],
            [{UTIL: 0.8, "enable_chunked_prefill": False, LEN: 30000}],
            id="whose figure does not hold where the batch follows the length",
        ),
        pytest.param(
            failed(4, {UTIL: 0.95, SEQS: 256, MBT: 4096}, "device_out_of_memory"),
            [{UTIL: 0.97, SEQS: 256, MBT: 4096}, {UTIL: 0.95, SEQS: 300, MBT: 8192}],
            [{UTIL: 0.94, SEQS: 256, MBT: 4096}, {UTIL: 0.95, SEQS: 128, MBT: 4096},
             {UTIL: 0.95, SEQS: 256, MBT: 4096, TP: 2}],
            id="out of memory at start",
        ),
        pytest.param(
            failed(4, {UTIL: 0.95, SEQS: 256, MBT: 4096}, "device_out_of_memory",
                   stage="graph_capture"),
            [{UTIL: 0.97, SEQS: 300, MBT: 4096}],
            [{UTIL: 0.95, SEQS: 256, MBT: 8192}, {UTIL: 0.94, SEQS: 256, MBT: 4096}],
            id="out of memory capturing graphs: a larger reserve may help",
        ),
        pytest.param(
            failed(4, {UTIL: 0.95, SEQS: 256, MBT: 4096}, "device_out_of_memory", CRASH),
            [{UTIL: 0.97, SEQS: 300, MBT: 4096}],
            [{UTIL: 0.95, SEQS: 256, MBT: 8192}, {UTIL: 0.94, SEQS: 256, MBT: 4096}],
            id="out of memory under load",
        ),
        pytest.param(
            failed(4, {UTIL: 0.99}, "device_memory_taken", max_gpu_memory_utilization=0.97),
            [{UTIL: 0.98, "quantization": "fp8"}, {UTIL: 0.99, TP: 2}],
            [{UTIL: 0.97}, {}, {UTIL: 0.98, "env.CUDA_VISIBLE_DEVICES": "1"}],
            id="a share that is not free, whatever fills it",
        ),
        pytest.param(
            failed(4, {UTIL: 0.99}, "host_share_not_free", max_gpu_memory_utilization=0.97),
            [{UTIL: 0.98, "dtype": "float32"}, {UTIL: 0.99, SEQS: 1}, {UTIL: 0.99, TP: 2}],
            [{UTIL: 0.97}, {}, {UTIL: 0.95, "dtype": "float32"}],
            id="a share of the machine's memory that is not free, whatever fills it",
        ),
        pytest.param(
            failed(4, {UTIL: 0.99}, "host_memory_taken", max_gpu_memory_utilization=0.97),
            [{UTIL: 0.98}],
            [{UTIL: 0.99, "dtype": "float32"}],
            id="a share that is not free once the weights are there",
        ),
        pytest.param(
            failed(4, {SEQS: 512, MBT: 256}, "batched_tokens_below_seqs", INFEASIBLE),
            [{SEQS: 600, MBT: 256}, {SEQS: 512, MBT: 128, "quantization": "fp8"}],
            [{SEQS: 400, MBT: 256}, {SEQS: 512}, {MBT: 256}],
            id="two numbers that are compared",
        ),
        pytest.param(
            failed(4, {TP: 8}, "heads_not_divisible", INFEASIBLE, num_heads=28),
            [{TP: 8, "quantization": "fp8"}, {TP: 3}, {TP: 16}],
            [{TP: 2}, {TP: 7}, {TP: 14}, {}],
            id="no divisor of the heads",
        ),
        pytest.param(
            failed(4, {PP: 2, UTIL: 0.8}, "pipeline_unsupported", INFEASIBLE),
            [{PP: 2}, {PP: 4, "speculative": "ngram"}],
            [{}, {TP: 2}],
            id="a whole branch",
        ),
        pytest.param(
            failed(4, {"data_parallel_size": 4}, "external_data_parallel", INFEASIBLE),
            [{"data_parallel_size": 2}],
            [{}],
            id="data parallelism",
        ),
        pytest.param(
            failed(4, {TP: 4, PP: 2}, "too_few_devices", INFEASIBLE, world_size=8, devices=4),
            [{TP: 4, PP: 4}, {TP: 8, PP: 2}],
            [{TP: 4}, {TP: 2, PP: 2}, {TP: 4, PP: 2, "env.CUDA_VISIBLE_DEVICES": "0,1"}],
            id="more devices than there are",
        ),
        pytest.param(
            failed(4, {"quantization": "fp8", SEQS: 64}, "unknown_quantization", INFEASIBLE),
            [{"quantization": "fp8"}, {"quantization": "fp8", "speculative": "ngram"}],
            [{}, {"quantization": "awq"}],
            id="a value that is refused for good",
        ),
        pytest.param(
            failed(4, {"quantization": "awq", "dtype": "bfloat16"}, "dtype_for_quantization",
                   INFEASIBLE),
            [{"quantization": "awq", "dtype": "bfloat16", SEQS: 8}],
            [{"quantization": "awq"}, {"dtype": "bfloat16"}],
            id="a pair",
        ),
        pytest.param(
            failed(4, {"quantization": "fp8", "kv_cache_dtype": "fp8"}, "not_built_for_cpu",
                   INFEASIBLE),
            [{"quantization": "fp8", "kv_cache_dtype": "fp8", SEQS: 8}],
            [{"quantization": "fp8"}, {"kv_cache_dtype": "fp8"}],
            id="two suspects are only refused together",
        ),
        pytest.param(
            failed(4, {"quantization": "awq", TP: 2}, "shard_not_divisible", INFEASIBLE),
            [{"quantization": "awq", TP: 2, LEN: 100}],
            [{"quantization": "awq"}, {TP: 2}, {"quantization": "awq", TP: 4}],
            id="shards",
        ),
        pytest.param(
            failed(4, {"speculative": "draft_model", "num_speculative_tokens": 3},
                   "draft_vocabulary", INFEASIBLE),
            [{"speculative": "draft_model", "num_speculative_tokens": 5, SEQS: 8}],
            [{"speculative": "ngram", "num_speculative_tokens": 3}, {}],
            id="a draft method",
        ),
        pytest.param(
            failed(4, {"speculative": "eagle", "num_speculative_tokens": 3},
                   "draft_tokens_not_divisible", INFEASIBLE, n_predict=2),
            [{"speculative": "eagle", "num_speculative_tokens": 5}],
            [{"speculative": "eagle", "num_speculative_tokens": 4},
             {"speculative": "ngram", "num_speculative_tokens": 5}],
            id="no multiple",
        ),
        pytest.param(
            failed(4, {"flag.performance_mode": "throughput"}, "unknown_flag", INFEASIBLE,
                   unrecognized_arguments="--performance-mode throughput"),
            [{"flag.performance_mode": "interactivity", "quantization": "fp8", "flag.x": 1}],
            [{}, {"flag.x": 1}],
            id="a flag that the engine does not know",
        ),
        pytest.param(
            failed(4, {"kv_cache_dtype": "fp8"}, "bad_flag_value", INFEASIBLE,
                   argument="--kv-cache-dtype", problem="invalid choice"),
            [{"kv_cache_dtype": "fp8", "flag.x": 1}],
            [{}, {"kv_cache_dtype": "fp8_e5m2"}],
            id="a value that a flag does not take",
        ),
        pytest.param(
            failed(4, {SEQS: 4, UTIL: 0.8}, "flag_without_effect", INFEASIBLE,
                   ineffective={SEQS: "asked 4, 6 ran"}),
            [{SEQS: 4, "quantization": "fp8"}],
            [{SEQS: 8}, {}, {SEQS: 4, "flag.x": 1}],
            id="a flag without effect",
        ),
    ],
)  # fmt: skip
def test_what_a_failure_excludes(
    trial: TrialOutcome, excluded: list[dict[str, Any]], free: list[dict[str, Any]]
) -> None:
    bound = only(trial)
    assert bound.trial == trial.number
    assert bound.excludes(trial.deployment)
    assert [d for d in excluded if not bound.excludes(d)] == []
    assert [d for d in free if bound.excludes(d)] == []


@pytest.mark.parametrize(
    "trial",
    [
        failed(1, {SEQS: 8}, "port_taken", Verdict.INFRA),
        failed(1, {UTIL: 0.5}, "no_kv_memory", Verdict.INFRA),
        failed(1, {UTIL: 0.5}, "not_implemented", INFEASIBLE),
        failed(1, {UTIL: 0.5}, "a_rule_of_the_future"),
        outcome(1, deployment={UTIL: 0.5}, verdict=CAPACITY, launched=False,
                learnt={"rule": "no_kv_memory"}),
        outcome(1, deployment={UTIL: 0.5}, verdict=CAPACITY, launched=False,
                learnt={"rule": LEARNT_BOUND, "bound": "no_kv_memory-0"}),
        outcome(1, deployment={UTIL: 0.5}, verdict=Verdict.QUALITY_FAIL),
        # The flag is one of engine.args: no deployment is to blame.
        failed(1, {SEQS: 8}, "unknown_flag", INFEASIBLE, unrecognized_arguments="--nonsense"),
        # It left everything to the engine that could be to blame.
        failed(1, {SEQS: 8}, "unknown_quantization", INFEASIBLE),
        # Refused at the size of one: what the text says does not fit what was launched.
        failed(1, {SEQS: 8}, "pipeline_unsupported", INFEASIBLE),
    ],
)  # fmt: skip
def test_what_teaches_nothing(trial: TrialOutcome) -> None:
    assert learn_bounds([baseline(), trial]) == []


def test_the_last_attempt_of_a_trial_teaches() -> None:
    first = failed(1, {UTIL: 0.5}, "no_kv_memory")
    second = outcome(1, deployment={UTIL: 0.5}, verdict=Verdict.INFRA, attempt=2)
    assert learn_bounds([first]) != []
    assert learn_bounds([first, second]) == []


def test_a_bound_says_region_trial_and_reason() -> None:
    bound = only(failed(4, {UTIL: 0.5, LEN: 8192}, "no_kv_memory"))
    assert bound.id == "no_kv_memory-4"
    assert bound.excludes({UTIL: 0.4, LEN: 9000}) == (
        "gpu_memory_utilization ≤ 0.5 with max_model_len ≥ 8192, everything else the same: "
        "trial 4 had no room for a KV cache"
    )
    tight = only(failed(7, {UTIL: 0.9, "quantization": "fp8"}, "device_out_of_memory", CRASH))
    assert tight.region == (
        "gpu_memory_utilization ≥ 0.9 (the default), everything else the same (quantization=fp8)"
    )
    heads = only(failed(2, {TP: 8}, "heads_not_divisible", INFEASIBLE, num_heads=28))
    assert heads.region == "tensor_parallel_size that does not divide 28, whatever else is set"


def test_an_unknown_default_is_comparable_only_with_itself() -> None:
    bound = learn_bounds([failed(4, {SEQS: 64}, "no_kv_memory")])[0]
    assert bound.excludes({SEQS: 128})
    assert not bound.excludes({SEQS: 128, UTIL: 0.01})
    assert not bound.excludes({SEQS: 128, TP: 1})


def test_defaults_are_what_all_launches_that_leave_them_out_agree_on() -> None:
    told = [
        baseline(),
        failed(1, {UTIL: 0.8}, "kv_too_small_for_max_model_len", max_model_len=4096),
    ]
    assert UTIL in known_defaults(told)
    assert LEN not in known_defaults(told)
    explicit = outcome(2, deployment={UTIL: 0.5}, manifest={"effective_args": {UTIL: 0.5}})
    assert known_defaults([baseline(), explicit])[UTIL] == 0.9


def test_a_trial_that_works_inside_a_region_contradicts_the_bound() -> None:
    taught = failed(1, {UTIL: 0.5}, "no_kv_memory")
    better, inside = outcome(2, deployment={UTIL: 0.6}), outcome(3, deployment={UTIL: 0.4})
    assert learn([baseline(), taught, better]).contradicted == ()
    lessons = learn([baseline(), taught, inside])
    assert lessons.active == ()
    assert [(bound.id, number) for bound, number in lessons.contradicted] == [("no_kv_memory-1", 3)]


def test_dropped_bounds_do_not_hold() -> None:
    taught = [
        baseline(),
        failed(1, {UTIL: 0.5}, "no_kv_memory"),
        failed(2, {SEQS: 512}, "no_kv_memory"),
    ]
    lessons = learn(taught, {"no_kv_memory-1", "long gone"})
    assert [bound.id for bound in lessons.active] == ["no_kv_memory-2"]
    assert [bound.id for bound in lessons.dropped] == ["no_kv_memory-1"]
    assert [bound.trial for bound in lessons.everything] == [1, 2]


def test_a_refusal_is_lifted_with_its_bound() -> None:
    taught = failed(1, {UTIL: 0.5}, "no_kv_memory")
    refused = outcome(
        2, deployment={UTIL: 0.4}, verdict=CAPACITY, launched=False,
        learnt={"rule": LEARNT_BOUND, "bound": "no_kv_memory-1"},
    )  # fmt: skip
    journal = [baseline(), taught, refused]
    assert not learn(journal).is_lifted(refused)
    assert learn(journal, {"no_kv_memory-1"}).is_lifted(refused)
    assert not learn(journal, {"no_kv_memory-1"}).is_lifted(taught)
    assert refused_counts(journal) == {"no_kv_memory-1": 1}


def nccl(number: int, tp: int, attempt: int = 1) -> TrialOutcome:
    return outcome(
        number, deployment={TP: tp} if tp > 1 else {SEQS: number}, verdict=Verdict.INFRA,
        learnt={"rule": "nccl"}, attempt=attempt,
    )  # fmt: skip


def test_devices_that_cannot_talk_twice_in_a_row_leave_one_device() -> None:
    assert learn_bounds([baseline(), nccl(1, 2)]) == []
    retried = [baseline(), nccl(1, 2), nccl(1, 2, attempt=2)]
    (bound,) = learn_bounds(retried)
    assert bound.id == "nccl-1"
    assert bound.excludes({TP: 4, "quantization": "fp8", "env.X": "1"})
    assert not bound.excludes({PP: 2})
    assert bound.verdict == INFEASIBLE
    one_device = outcome(2, deployment={SEQS: 3})
    assert learn_bounds([baseline(), nccl(1, 2), one_device, nccl(3, 4)]) != []
    spread = outcome(2, deployment={TP: 2})
    assert learn_bounds([baseline(), nccl(1, 2), spread, nccl(3, 4)]) == []
    assert learn([*retried, spread]).contradicted != ()
    # What worked before the fault began says nothing against it.
    assert learn_bounds([outcome(0, deployment={TP: 2}), *retried]) != []


VALUES: dict[str, list[Any]] = {
    UTIL: [0.3, 0.5, 0.8, 0.95],
    LEN: [1024, 4096, 16384],
    SEQS: [16, 64, 256],
    MBT: [512, 2048, 8192],
    TP: [2, 4, 8],
    PP: [2, 4],
    "data_parallel_size": [2],
    "quantization": ["fp8", "awq"],
    "kv_cache_dtype": ["fp8"],
    "enforce_eager": [True],
    "speculative": ["ngram"],
    "num_speculative_tokens": [2, 3],
    "flag.x": [1, 2],
}
DEPLOYMENTS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}
)
FIGURES = st.fixed_dictionaries(
    {},
    optional={
        "estimated_max_model_len": st.integers(1, 20000),
        "max_gpu_memory_utilization": st.floats(0.1, 1),
        "num_heads": st.sampled_from([28, 32]),
        "n_predict": st.sampled_from([2, 3]),
        "unrecognized_arguments": st.just("--x 1"),
        "argument": st.sampled_from(["--x", "--quantization/-q"]),
        "ineffective": st.just({SEQS: "ignored", "speculative_config": "ignored"}),
    },
)
RULES = sorted({rule.split("/")[0] for rule in TEACHINGS} - {"nccl"})
FAILURES = st.builds(
    lambda number, deployment, rule, verdict, figures: failed(
        number, deployment, rule, verdict, **figures
    ),
    st.integers(1, 6),
    DEPLOYMENTS,
    st.sampled_from(RULES),
    st.sampled_from([CAPACITY, INFEASIBLE, CRASH]),
    FIGURES,
)


@given(FAILURES, st.booleans())
def test_a_bound_excludes_the_deployment_that_taught_it(
    trial: TrialOutcome, defaults_known: bool
) -> None:
    journal = [baseline(), trial] if defaults_known else [trial]
    for bound in learn(journal).everything:
        assert bound.excludes(trial.deployment)


@given(FAILURES, DEPLOYMENTS, st.sampled_from([UTIL, LEN, SEQS, MBT, TP, PP]), st.floats(1.01, 8))
def test_what_is_worse_than_the_excluded_is_excluded(
    trial: TrialOutcome, other: dict[str, Any], name: str, factor: float
) -> None:
    for bound in learn([baseline(), trial]).active:
        value = {**bound.defaults, **other}.get(name)
        limit = next((limit for limit in bound.limits if limit.parameter == name), None)
        if limit is None or value is None or not bound.excludes(other):
            continue
        worse = {
            Relation.AT_MOST: value / factor,
            Relation.AT_LEAST: value * factor,
            Relation.ABOVE: value * factor,
        }
        if limit.relation in worse:
            assert bound.excludes({**other, name: worse[limit.relation]})


@given(FAILURES, st.floats(1.01, 8))
def test_what_is_better_in_every_direction_is_not_excluded(
    trial: TrialOutcome, factor: float
) -> None:
    for bound in learn([baseline(), trial]).active:
        better = dict(bound.teacher)
        for limit in bound.limits:
            value = limit.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                if limit.relation is Relation.AT_MOST:
                    better[limit.parameter] = value * factor
                elif limit.relation in {Relation.AT_LEAST, Relation.ABOVE}:
                    better[limit.parameter] = value / factor
        if better != dict(bound.teacher):
            assert not bound.excludes(better)


@given(st.data(), st.lists(FAILURES, max_size=6))
def test_the_order_of_the_journal_does_not_matter(
    data: st.DataObject, trials: list[TrialOutcome]
) -> None:
    unique = {trial.number: trial for trial in trials}
    worked = outcome(9, deployment=data.draw(DEPLOYMENTS))
    journal = [baseline(), *unique.values(), worked]
    assert learn(data.draw(st.permutations(journal))) == learn(journal)


def test_every_direction_has_its_reason() -> None:
    for rule, teaching in TEACHINGS.items():
        assert teaching.told, rule
        for name, worse in teaching.worse.items():
            assert len(worse.why) > 10, (rule, name)
        says_something = teaching.worse or teaching.same or teaching.kept or teaching.blamed
        assert says_something, rule
        # What is free to change must have been named, or a bound would exclude everything.
        if teaching.rest is not Rest.SAME:
            assert teaching.worse or teaching.same or teaching.blamed, rule


def test_every_rule_of_the_table_is_one_that_an_engine_knows() -> None:
    from sweeper.engine.transformers.diagnosis import RULES as TRANSFORMERS
    from sweeper.engine.vllm.diagnosis import RULES as VLLM
    from sweeper.engine.vllm.life_rules import LAST_RESORT
    from sweeper.engine.vllm_offline.diagnosis import OFFLINE_RULES

    known = {rule.name for rule in (*VLLM, *LAST_RESORT, *TRANSFORMERS, *OFFLINE_RULES)}
    assert {rule.split("/")[0] for rule in TEACHINGS} - known == {"flag_without_effect"}


JOURNAL = [
    baseline(),
    failed(1, {UTIL: 0.5, LEN: 8192}, "no_kv_memory"),
    failed(3, {SEQS: 256, MBT: 8192, TP: 2}, "no_kv_memory"),
    outcome(4, deployment={UTIL: 0.4, LEN: 8192}),
    outcome(5, deployment={SEQS: 512, MBT: 8192}, manifest={"effective_args": {UTIL: 0.8}}),
    failed(6, {TP: 4}, "nccl", Verdict.INFRA),
    failed(7, {TP: 2}, "nccl", Verdict.INFRA),
    failed(8, {UTIL: 0.8}, "kv_too_small_for_max_model_len", max_model_len=32768),
]


@given(st.permutations(JOURNAL))
def test_a_learner_that_follows_a_journal_knows_what_all_of_it_teaches(
    journal: list[TrialOutcome],
) -> None:
    """Line by line, in any order: second attempts come late."""
    learner = Learner()
    for length in range(1, len(journal) + 1):
        learner.follow(journal[:length])
        assert learner.lessons() == learn(journal[:length])
