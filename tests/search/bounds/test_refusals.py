"""What refusals of values and pairs exclude, and what they leave open."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.search.bounds import at_fault
from sweeper.search.bounds.learn import learn_bounds
from sweeper.search.bounds.refusals import REFUSALS
from sweeper.search.bounds.teachings import TEACHINGS
from sweeper.verdicts import Verdict
from tests.search.bounds.journal import baseline, failed

AT_LEAST_1 = "Input should be greater than or equal to 1"
SEQS, MBT, LEN = "max_num_seqs", "max_num_batched_tokens", "max_model_len"
TP, SPEC, DRAFTS = "tensor_parallel_size", "speculative", "num_speculative_tokens"
LOW, HIGH = "prompt_lookup_min", "prompt_lookup_max"
NGRAM = {SPEC: "ngram", DRAFTS: 3}


@pytest.mark.parametrize(
    ("deployment", "rule", "learnt", "excluded", "free"),
    [
        pytest.param(
            # The token batch was derived from the sequences, not asked for.
            {SEQS: 0, "dtype": "half"}, "configuration_refused",
            {"fields": [MBT, SEQS], "problems": [AT_LEAST_1, AT_LEAST_1]},
            [{SEQS: 0}, {SEQS: 0, "flag.x": 1}], [{SEQS: 1}, {}, {"dtype": "half"}],
            id="a value out of range",
        ),
        pytest.param(
            {SPEC: "magic", DRAFTS: 3}, "configuration_refused",
            {"fields": ["method"], "problems": ["Input should be 'ngram' or 'eagle'"]},
            [{SPEC: "magic", DRAFTS: 5}], [{SPEC: "ngram", DRAFTS: 3}, {}],
            id="a way of drafting that there is not",
        ),
        pytest.param(
            {"dtype": "half", "flag.attention_backend": "FLASHINFER"}, "attention_backend", {},
            [{"dtype": "half", "flag.attention_backend": "FLASHINFER", SEQS: 8}],
            [{"dtype": "half"}, {"flag.attention_backend": "FLASHINFER"},
             {"dtype": "half", "flag.attention_backend": "FLASHINFER", "block_size": 32}],
            id="attention",
        ),
        pytest.param(
            {"quantization": "w4a16", "quantize.group_size": 32}, "architecture_unknown", {},
            [{"quantization": "w4a16", "quantize.group_size": 32, SEQS: 8}],
            [{"quantization": "w4a16"}, {"quantization": "w4a16", "quantize.group_size": 64}, {}],
            id="a checkpoint made with other fields",
        ),
        pytest.param(
            {TP: 4}, "size_not_divisible", {"size": 6, "divisor": 4},
            [{TP: 4, SEQS: 8}], [{TP: 2}, {TP: 8}, {}],
            id="a size of the model",
        ),
        pytest.param(
            {SEQS: 8, "flag.max_num_active_seqs": 16}, "active_seqs_above_seqs", {},
            [{SEQS: 4, "flag.max_num_active_seqs": 16}],
            [{SEQS: 16, "flag.max_num_active_seqs": 16}, {SEQS: 4}],
            id="active sequences",
        ),
        pytest.param(
            {LEN: 1024, "flag.long_prefill_token_threshold": 2048}, "prefill_threshold", {},
            [{LEN: 512, "flag.long_prefill_token_threshold": 2048}], [{LEN: 512}],
            id="a threshold",
        ),
        pytest.param(
            {**NGRAM, LOW: 5, HIGH: 3}, "prompt_lookup_order", {},
            [{**NGRAM, LOW: 6, HIGH: 2}], [{**NGRAM, LOW: 3, HIGH: 3}, {**NGRAM, LOW: 5, HIGH: 8}],
            id="pieces of the prompt",
        ),
        pytest.param(
            {SPEC: "draft_model", DRAFTS: 3, SEQS: 8}, "model_missing", {},
            [{SPEC: "draft_model", DRAFTS: 5}], [{SEQS: 8}, {SPEC: "ngram", DRAFTS: 3}],
            id="a draft that is not there",
        ),
        pytest.param(
            {SPEC: "eagle", DRAFTS: 3, TP: 2}, "checkpoint_layout", {"module": "model"},
            [{SPEC: "eagle", DRAFTS: 1, TP: 2}], [{SPEC: "eagle", DRAFTS: 3}, {TP: 2}],
            id="a draft of another layout",
        ),
    ],
)  # fmt: skip
def test_what_a_refusal_excludes(
    deployment: dict[str, Any],
    rule: str,
    learnt: dict[str, Any],
    excluded: list[dict[str, Any]],
    free: list[dict[str, Any]],
) -> None:
    trial = failed(4, deployment, rule, Verdict.INFEASIBLE_CONFIG, **learnt)
    (bound,) = learn_bounds([baseline(), trial])
    assert bound.excludes(deployment)
    assert [d for d in excluded if not bound.excludes(d)] == []
    assert [d for d in free if bound.excludes(d)] == []


@pytest.mark.parametrize(
    "learnt",
    [
        {},
        {"fields": "max_num_seqs", "problems": AT_LEAST_1},
        # A check that compares two fields blames neither.
        {"fields": ["max_num_seqs"], "problems": ["it does not go with the moon"]},
        {"fields": ["kv_load_failure_policy"], "problems": [AT_LEAST_1]},
    ],
)
def test_fields_that_blame_no_parameter(learnt: dict[str, Any]) -> None:
    assert at_fault.refused_fields(learnt, {SEQS: 0}) == []


def test_a_missing_model_of_the_study_itself_blames_no_parameter() -> None:
    trial = failed(4, {SEQS: 8}, "model_missing", Verdict.INFEASIBLE_CONFIG)
    assert learn_bounds([baseline(), trial]) == []


def test_no_row_stands_twice() -> None:
    assert all(TEACHINGS[rule] is row for rule, row in REFUSALS.items())
