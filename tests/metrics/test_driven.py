"""From a driven level to its summary: load and metrics agree on what the numbers mean."""

from __future__ import annotations

import pytest

from sweeper.metrics.summary import LevelSummary, summarise
from tests.load.stub import Dials, running
from tests.load.work import NumberedWork, closed, drive


def driven(dials: Dials, concurrency: int = 4, requests: int = 16) -> LevelSummary:
    with running(dials) as stub:
        run = drive(
            stub,
            closed(concurrency, requests),
            NumberedWork(input_tokens=32, output_tokens=8),
            warmup_requests_per_stream=1,
            request_timeout_s=10.0,
        )
    return summarise([run], device_count=1)


def test_a_sound_level_is_valid_and_near_the_dialled_figures() -> None:
    summary = driven(Dials(first_token_s=0.05, token_s=0.01))
    assert summary.reasons == [] and summary.n == 16
    metrics = summary.metrics
    assert 50 <= metrics["ttft_p50_ms"] < 100
    assert 10 <= metrics["tpot_p50_ms"] < 20
    assert metrics["achieved_concurrency"] == pytest.approx(4, rel=0.05)
    assert metrics["server_output_tokens"] == 16 * 8
    little = 4 * 8 / (metrics["e2e_mean_ms"] / 1e3)
    assert metrics["output_tokens_per_s"] == pytest.approx(little, rel=0.1)


@pytest.mark.parametrize(
    ("dials", "says"),
    [
        (Dials(fault=lambda n: "short" if n % 4 == 0 else None), "output length"),
        (Dials(prefix_hit_share=0.5), "prefix cache"),
        (Dials(server_token_factor=1.2), "the server"),
        (Dials(fault=lambda n: "http_500" if n > 10 else None), "succeeded"),
        (Dials(fault=lambda _: "no_usage"), "no usage"),
    ],
)
def test_each_fault_of_the_server_invalidates_the_level(dials: Dials, says: str) -> None:
    summary = driven(dials)
    assert not summary.valid
    assert any(says in reason for reason in summary.reasons)
