"""Prometheus text as several versions of vLLM write it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweeper.load import server_metrics
from sweeper.load.server_metrics import parse

TEXT = """\
# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="odd} name, \\"quoted\\""} 3.0
vllm:num_preemptions_total{engine="1",model_name="m"} 4.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
vllm:prefix_cache_hits_total{engine="0"} 5.0
vllm:gpu_prefix_cache_hits_total{engine="0"} 5.0
vllm:gpu_prefix_cache_queries 50.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:generation_tokens_total{engine="0"} NaN
vllm:request_success_total{engine="0",finished_reason="stop"} 1.0
vllm:request_success_total{engine="0",finished_reason="length"} 6.0
vllm:request_success_total{engine="1",finished_reason="length"} 2.0
python_info{version="3.11"} 1.0
"""


def test_values_are_summed_over_labels_and_named_as_today() -> None:
    values = parse(TEXT)
    assert values[server_metrics.PREEMPTIONS] == 7.0
    assert values[server_metrics.PREFIX_HITS] == 5.0
    assert values[server_metrics.PREFIX_QUERIES] == 50.0
    assert values[server_metrics.KV_USAGE] == 0.75
    assert values[server_metrics.REQUEST_SUCCESS] == 9.0
    assert values["vllm:request_success_total{finished_reason=length}"] == 8.0


def test_what_is_not_offered_or_not_finite_is_absent() -> None:
    values = parse(TEXT)
    assert server_metrics.GENERATION_TOKENS not in values
    assert server_metrics.SPEC_DRAFTS not in values
    assert parse("") == {}


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse(text + "\nvllm:" + text)
