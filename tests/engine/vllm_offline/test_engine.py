"""Batches without a server: a worker on a made-up vLLM, from its start to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from sweeper.engine import orphans
from sweeper.engine.protocol import BatchJob, LaunchFailure
from sweeper.errors import EngineError
from sweeper.trial import vital
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.engine.conftest import wait_for
from tests.engine.vllm_offline.conftest import FAKE, OfflineBench, job


def failure(bench: OfflineBench, parameters: dict[str, Any], **changes: Any) -> Diagnosis:
    with pytest.raises(LaunchFailure) as caught, bench.worker(parameters, **changes):
        pass
    assert not bench.left()
    assert not (bench.folder / "launch.json").exists()
    return caught.value.diagnosis


def test_a_ready_worker_measures_batches_and_leaves_nothing(bench: OfflineBench) -> None:
    with bench.worker({"max_num_seqs": 4}) as server:
        assert (server.base_url, server.api_key) == ("", "")
        assert server.pid in bench.left()
        assert server.is_alive()
        assert server.effective_args["max_num_seqs"] == 4
        assert server.learnt["model_memory_gib"] == 1.5
        assert server.measure is not None
        assert server.tokenize is not None
        assert server.tokenize(["ab", "c"]) == [[97, 98], [99]]
        first, second = server.measure(job(4, 8)), server.measure(job(2))
        assert vital.answers(server)
    assert not bench.left()
    assert not (bench.folder / "launch.json").exists()
    assert [r.output_tokens for r in first.requests] == [4, 8]
    assert [r.prompt_tokens for r in first.requests] == [3, 3]
    assert [r.finish_reason for r in first.requests] == ["length", "length"]
    assert first.ended_early is None
    assert first.counters == {"vllm:generation_tokens_total": 12.0}
    assert second.counters == {"vllm:generation_tokens_total": 2.0}
    assert first.engine_cpu_s is not None
    assert 0 <= first.engine_cpu_s <= first.duration_s


def test_times_lie_within_the_batch_and_in_order(bench: OfflineBench) -> None:
    with bench.worker() as server:
        assert server.measure is not None
        result = server.measure(job(10, 10, 10))
    times = [(r.first_token_s, r.finished_s) for r in result.requests]
    flat = [second for pair in times for second in pair if second is not None]
    assert len(flat) == 6
    assert flat == sorted(flat)
    assert flat[0] > 0
    assert 0.9 * result.duration_s < flat[-1] <= result.duration_s


@pytest.mark.parametrize("dials", [{"disable_log_stats": True}, {"fake_clock_s": 1e6}])
def test_times_that_are_not_told_are_absent(bench: OfflineBench, dials: dict[str, Any]) -> None:
    """Also those of another machine's clock; counts and the batch's own time stay."""
    with bench.worker({f"flag.{k}" if k[0] == "d" else k: v for k, v in dials.items()}) as server:
        assert server.measure is not None
        result = server.measure(job(3))
    assert result.ended_early is None
    request = result.requests[0]
    assert (request.output_tokens, request.first_token_s, request.finished_s) == (3, None, None)
    assert result.duration_s > 0


def test_decoding_and_text_prompts_reach_the_engine(bench: OfflineBench) -> None:
    asked = BatchJob(["abc"], [5], 10.0, 0.7, top_p=0.9, top_k=3, seed=1, ignore_eos=False)
    with bench.worker() as server:
        assert server.measure is not None
        request = server.measure(asked).requests[0]
    assert (request.prompt_tokens, request.output_tokens) == (3, 5)


def test_flags_are_those_of_the_deployment(bench: OfflineBench) -> None:
    seen = bench.folder / "seen.json"
    parameters = {"max_model_len": "auto", "flag.fake_seen": str(seen), "quantization": "none"}
    engine = bench.offline(args={"max-num-seqs": 3, "hf_token": "hf_secret_123"})
    request = bench.request(parameters, model_path="Org/Model", dtype="float32")
    with engine.serve(request) as server:
        assert "hf_secret_123" not in " ".join(server.argv)
    given = json.loads(seen.read_text())
    assert given == {
        "model": "Org/Model",
        "max_num_seqs": 3,
        "max_model_len": -1,
        "dtype": "float32",
        "enforce_eager": True,
        "hf_token": "hf_secret_123",
        "disable_log_stats": False,
        "fake_seen": str(seen),
    }
    for file in (bench.folder / "run").iterdir():
        assert "hf_secret_123" not in file.read_text()


def test_facts_carry_its_own_name(bench: OfflineBench) -> None:
    facts = bench.offline().facts()
    assert (facts.name, facts.version, facts.device) == ("vllm_offline", "0.0.1", "cpu")


def test_a_flag_without_effect_fails_the_launch(bench: OfflineBench) -> None:
    found = failure(bench, {"max_num_seqs": 4, "fake_seqs": 16})
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert "max_num_seqs" in found.cause


def test_an_unknown_flag_is_infeasible(bench: OfflineBench) -> None:
    found = failure(bench, {"flag.uvicorn_log_level": "info"})
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert found.learnt["unrecognized_arguments"] == "uvicorn_log_level"
    assert found.phase is Phase.START


def test_no_memory_is_told_as_of_the_server(bench: OfflineBench) -> None:
    found = failure(bench, {"fake_fault": "no_memory"})
    assert (found.verdict, found.phase) == (Verdict.CAPACITY, Phase.START)


def test_a_crash_at_the_first_completion_is_a_crash_under_load(bench: OfflineBench) -> None:
    found = failure(bench, {"fake_fault": "exit", "fake_fault_at": 1})
    assert (found.verdict, found.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.WARMUP)
    assert "device-side assert" in found.cause


def test_a_worker_that_hangs_at_the_first_completion(bench: OfflineBench) -> None:
    found = failure(bench, {"fake_fault": "hang", "fake_fault_at": 1}, start_timeout_s=1.5)
    assert found.verdict is Verdict.STARTUP_TIMEOUT
    assert "did not write a completion" in found.cause


@pytest.mark.parametrize("kind", ["exit", "dead"])
def test_a_death_in_the_middle_is_a_result(bench: OfflineBench, kind: str) -> None:
    with bench.worker({"fake_fault": kind, "fake_fault_at": 2}) as server:
        assert server.measure is not None
        begun = time.monotonic()
        result = server.measure(job(4, 4))
        assert time.monotonic() - begun < 5
        assert result.ended_early
        assert [r.error for r in result.requests] == [result.ended_early] * 2
        assert [r.output_tokens for r in result.requests] == [None, None]
        assert not vital.answers(server)
        assert server.exit_code() == (3 if kind == "exit" else 1)
        with pytest.raises(EngineError, match="does not tokenize"):
            assert server.tokenize is not None
            server.tokenize(["a"])


def test_a_hang_ends_with_the_deadline(bench: OfflineBench) -> None:
    with bench.worker({"fake_fault": "hang", "fake_fault_at": 2}) as server:
        assert server.measure is not None
        result = server.measure(job(4, timeout_s=0.4))
        assert result.ended_early is not None
        assert "deadline" in result.ended_early
        assert result.duration_s < 3
        assert server.is_alive()
        # What the engine is still at work on would be measured as the next batch.
        assert "earlier question" in str(server.measure(job(1)).ended_early)
    assert not bench.left()


def test_what_the_engine_refuses_is_told_and_it_goes_on(bench: OfflineBench) -> None:
    with bench.worker() as server:
        assert server.measure is not None
        refused = server.measure(BatchJob([[1] * 101, [1]], [2, 2], 10.0))
        assert refused.ended_early == "ValueError: The prompt is longer than"
        assert server.measure(job(2)).ended_early is None


def test_a_missing_answer_is_no_result(bench: OfflineBench) -> None:
    with bench.worker({"fake_answers": 1}) as server:
        assert server.measure is not None
        result = server.measure(job(2, 2, 2))
    assert result.ended_early == "1 of 3 requests were answered"
    assert len(result.requests) == 3


def test_output_of_the_engine_does_not_mix_with_the_conversation(bench: OfflineBench) -> None:
    """The made-up vLLM writes what looks like an answer, and half lines, to its output."""
    with bench.worker() as server:
        assert server.measure is not None
        assert server.measure(job(2)).ended_early is None
        log = server.log_path.read_text()
    assert '{"event": "ready"}' in log
    assert "Processed prompts" in log


def test_a_large_batch_passes_the_channel(bench: OfflineBench) -> None:
    prompts = [[number] * 100 for number in range(2000)]
    with bench.worker() as server:
        assert server.measure is not None
        # Refused once it has been read as a whole, so that the test need not wait for answers.
        refused = server.measure(BatchJob([[1] * 101, *prompts], [1] * 2001, 20.0))
    assert refused.ended_early == "ValueError: The prompt is longer than"


def test_a_worker_ends_by_itself_when_the_tuner_is_killed(bench: OfflineBench) -> None:
    code = f"""
import sys, time
from pathlib import Path
from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import EngineFacts, LaunchRequest
from sweeper.engine.vllm import engine as vllm_engine
from sweeper.engine.vllm.facts import VllmInstallation
from sweeper.engine.vllm_offline.engine import VllmOfflineEngine
facts = EngineFacts("vllm", "0.0.1", "vllm", "cpu")
vllm_engine.probe = lambda python: VllmInstallation(facts, sys.executable, "x")
cfg = EngineConfig(name="vllm_offline", env={{"PYTHONPATH": {str(FAKE)!r}}})
folder = Path({str(bench.folder)!r})
request = LaunchRequest("m", {{}}, folder / "run", "s", 20.0, {bench.token!r},
                        record_path=folder / "launch.json")
with VllmOfflineEngine(cfg, cache_dir=folder).serve(request) as server:
    print("ready", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as tuner:
        assert tuner.stdout is not None
        assert tuner.stdout.readline() == "ready\n"
        assert bench.left()
        os.kill(tuner.pid, signal.SIGKILL)
    assert wait_for(lambda: not bench.left())
    assert orphans.reap(bench.folder / "launch.json") == []


def test_start_command_is_that_of_the_server(bench: OfflineBench) -> None:
    flags, env = bench.offline(args={"max_num_seqs": 3}).start_command(
        {"enforce_eager": True}, "Org/Model"
    )
    assert flags == {"model": "Org/Model", "max_num_seqs": 3, "enforce_eager": True}
    assert env == {"PYTHONPATH": str(FAKE)}
