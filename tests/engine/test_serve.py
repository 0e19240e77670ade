"""A launch of the mock from beginning to end, through the engine protocol."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import Any

import pytest

from sweeper.engine.local_http import Endpoint, call
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.protocol import LaunchFailure, RunningServer
from sweeper.engine.served import ServedEngine
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.engine.conftest import Bench, wait_for


def endpoint_of(server: RunningServer) -> Endpoint:
    port = int(server.base_url.rsplit(":", 1)[1])
    return Endpoint(port, server.served_name, server.api_key)


def failure(bench: Bench, parameters: dict[str, Any] | None = None, **options: Any) -> Diagnosis:
    with (
        pytest.raises(LaunchFailure) as caught,
        bench.engine(**options).serve(bench.request(parameters)),
    ):
        pass
    return caught.value.diagnosis


def test_ready_server_answers_and_stop_leaves_nothing(bench: Bench) -> None:
    with bench.engine().serve(bench.request()) as server:
        body = {"model": "trial-7", "prompt": "Hello", "max_tokens": 3}
        answer = call(endpoint_of(server), "/v1/completions", body, timeout_s=5).json()
        assert answer["usage"]["completion_tokens"] == 3
        assert server.is_alive()
        assert server.exit_code() is None
        assert bench.left()
    assert not server.is_alive()
    assert not bench.left()
    assert not (bench.folder / "launch.json").exists()


def test_server_tells_its_arguments_and_figures(bench: Bench) -> None:
    with bench.engine().serve(bench.request({"max_num_seqs": 16})) as server:
        assert server.effective_args["max_num_seqs"] == 16
        assert server.effective_args["max_num_batched_tokens"] == 2048
        assert int(server.learnt["kv_cache_tokens"]) > 10_000
        assert "not_told" not in server.learnt
        assert server.ready_after_s < 10


def test_flag_without_effect_fails_the_launch_by_its_name(bench: Bench) -> None:
    found = failure(bench, {"max_num_seqs": 32}, faults={"ignores": ["max_num_seqs"]})
    assert (found.verdict, found.phase) == (Verdict.INFEASIBLE_CONFIG, Phase.START)
    assert found.cause == "max_num_seqs had no effect: asked 32, in effect 64"
    assert "max_num_seqs" in found.remedy
    assert "max_num_seqs" in found.evidence
    assert found.learnt["rule"] == "flag_without_effect"
    assert found.learnt["ineffective"] == {"max_num_seqs": "asked 32, in effect 64"}
    assert not bench.left()


def test_flag_ignored_only_where_it_is_asked_for(bench: Bench) -> None:
    with bench.engine(faults={"ignores": ["block_size"]}).serve(bench.request()) as server:
        assert server.effective_args["block_size"] == 16
    assert failure(bench, {"block_size": 32}, faults={"ignores": ["block_size"]})


def test_every_parameter_of_the_stub_has_its_effect(bench: Bench) -> None:
    """No false alarm: all of them at once, the words of the search space included."""
    parameters = {
        "dtype": "float32",
        "quantization": "fp8_per_tensor",
        "kv_cache_dtype": "fp8",
        "max_num_seqs": 16,
        "max_num_batched_tokens": 1024,
        "max_model_len": 1024,
        "gpu_memory_utilization": 0.85,
        "block_size": 32,
        "enable_prefix_caching": False,
        "enable_chunked_prefill": True,
        "speculative": "ngram",
        "num_speculative_tokens": 2,
        "prompt_lookup_max": 3,
        "data_parallel_size": 2,
        "env.OMP_NUM_THREADS": 2,
    }
    with bench.engine().serve(bench.request(parameters)) as server:
        assert server.effective_args["speculative_config"]["num_speculative_tokens"] == 2
        assert server.effective_args["dtype"] == "float32"
        assert "not_told" not in server.learnt


def test_flag_that_the_server_says_nothing_of_is_recorded_as_unknown(bench: Bench) -> None:
    with bench.engine().serve(bench.request({"flag.swap_space": 4})) as server:
        assert server.learnt["not_told"] == ["flag.swap_space"]


def test_command_is_noted_without_the_key(bench: Bench) -> None:
    with bench.engine().serve(bench.request()) as server:
        note = json.loads((bench.folder / "run" / "argv.json").read_text())
        assert note["argv"] == list(server.argv)
        assert server.api_key not in (bench.folder / "run" / "argv.json").read_text()
        assert server.api_key not in " ".join(server.argv)


def test_key_is_required(bench: Bench) -> None:
    with bench.engine().serve(bench.request()) as server:
        stranger = Endpoint(endpoint_of(server).port, server.served_name, "wrong")
        assert call(stranger, "/v1/models", timeout_s=5).status == 401
        assert call(endpoint_of(server), "/v1/models", timeout_s=5).status == 200


def test_body_that_raises_still_ends_the_server(bench: Bench) -> None:
    with pytest.raises(KeyboardInterrupt), bench.engine().serve(bench.request()):
        raise KeyboardInterrupt
    assert not bench.left()


def test_death_at_start_is_noticed_at_once_and_diagnosed(bench: Bench) -> None:
    text = "ValueError: No available memory for the cache blocks. Try increasing."
    fault = {"die_at": "start", "log_text": text, "exit_code": 0}
    found = failure(bench, faults=fault)
    last_words_at = (bench.folder / "run" / "server.log").stat().st_mtime
    assert time.time() - last_words_at < 1.0
    assert (found.verdict, found.phase) == (Verdict.CAPACITY, Phase.START)
    assert not bench.left()


def test_kill_by_a_signal_is_named(bench: Bench) -> None:
    found = failure(bench, faults={"die_at": "start", "exit_code": -9})
    assert found.verdict is Verdict.UNKNOWN
    assert "killed by signal 9 (out of host memory?)" in found.cause


def test_memory_that_does_not_suffice_is_capacity(bench: Bench) -> None:
    found = failure(bench, {"max_model_len": 400_000})
    assert found.verdict is Verdict.CAPACITY
    assert 0 < int(found.learnt["estimated_max_model_len"]) < 400_000


def test_combination_that_is_refused_is_infeasible(bench: Bench) -> None:
    found = failure(bench, {"tensor_parallel_size": 3})
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert found.learnt["num_heads"] == 32


def test_hang_at_start_ends_at_the_deadline_with_the_last_line(bench: Bench) -> None:
    engine = bench.engine(faults={"hang_at": "start", "log_text": "vLLM is using nccl==2.27.3"})
    started = time.monotonic()
    with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request(start_timeout_s=1.0)):
        pass
    assert time.monotonic() - started < 5
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (Verdict.STARTUP_TIMEOUT, Phase.START)
    assert found.learnt["last_log_line"] == "vLLM is using nccl==2.27.3"
    assert not bench.left()


def test_healthy_server_that_never_completes_is_a_timeout_of_the_warmup(bench: Bench) -> None:
    engine = bench.engine(faults={"hang_at": "ready"})
    with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request(start_timeout_s=1.5)):
        pass
    assert caught.value.diagnosis.verdict is Verdict.STARTUP_TIMEOUT
    assert caught.value.diagnosis.phase is Phase.WARMUP


def test_known_cause_of_a_hang_is_told_instead_of_the_deadline(bench: Bench) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB."
    engine = bench.engine(faults={"hang_at": "start", "log_text": text})
    with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request(start_timeout_s=1.0)):
        pass
    assert caught.value.diagnosis.verdict is Verdict.CAPACITY


def test_error_on_the_first_completion_is_a_crash(bench: Bench) -> None:
    found = failure(bench, faults={"http_500_after": 0})
    assert (found.verdict, found.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.WARMUP)
    assert "HTTP 500" in found.cause
    assert not bench.left()


def test_error_on_the_first_completion_has_its_cause_from_the_log(bench: Bench) -> None:
    text = "ValueError: size_k must divisible by BLOCK_SIZE_K"
    found = failure(bench, faults={"http_500_after": 0, "log_text": text})
    assert found.verdict is Verdict.CRASH_UNDER_LOAD
    assert "BLOCK_SIZE_K" in found.cause


def test_death_on_the_first_completion_is_a_crash(bench: Bench) -> None:
    found = failure(bench, faults={"die_at": "ready", "log_text": "AssertionError: worker"})
    assert (found.verdict, found.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.WARMUP)
    assert found.cause == "worker"


def test_fault_is_only_for_the_deployments_it_names(bench: Bench) -> None:
    fault = {"die_at": "start", "when": {"quantization": ["fp8"]}}
    assert failure(bench, {"quantization": "fp8"}, faults=fault)
    with bench.engine(faults=fault).serve(bench.request()) as server:
        assert server.is_alive()


def test_stubborn_processes_are_removed(bench: Bench) -> None:
    fault = {"child": "session", "hang_at": "stop"}
    engine = bench.engine(faults=fault, stop_timeout_s=0.3)
    with engine.serve(bench.request()):
        assert len(wait_for(lambda: len(bench.left()) > 1 and bench.left())) == 2
    assert not bench.left()


def test_child_outliving_its_dead_leader_is_removed(bench: Bench) -> None:
    fault = {"child": "session", "die_at": "start"}
    failure(bench, faults=fault)
    assert not bench.left()


def test_server_killed_while_it_is_driven(bench: Bench) -> None:
    with bench.engine().serve(bench.request()) as server:
        os.kill(server.pid, signal.SIGKILL)
        wait_for(lambda: not server.is_alive(), 2)
        assert server.exit_code() == -9
    assert not bench.left()


def listening() -> socket.socket:
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.bind((LOOPBACK, 0))
    taken.listen()
    return taken


def test_taken_port_is_given_up_for_another(bench: Bench) -> None:
    engine = bench.engine()
    assert isinstance(engine, ServedEngine)
    free = engine.pick_port
    with listening() as taken:
        ports = iter([taken.getsockname()[1]])
        engine.pick_port = lambda: next(ports, None) or free()
        with engine.serve(bench.request()) as server:
            assert endpoint_of(server).port != taken.getsockname()[1]
    assert not bench.left()


def test_port_that_stays_taken_is_infra(bench: Bench) -> None:
    engine = bench.engine()
    assert isinstance(engine, ServedEngine)
    with listening() as taken:
        engine.pick_port = lambda: int(taken.getsockname()[1])
        with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
            pass
    assert caught.value.diagnosis.verdict is Verdict.INFRA
    assert not bench.left()


def test_answer_of_another_server_is_not_taken_for_ours(bench: Bench) -> None:
    engine = bench.engine(start_s=5.0)
    stranger = Bench(bench.folder / "stranger")
    with stranger.engine().serve(stranger.request()) as other:
        assert isinstance(engine, ServedEngine)
        engine.pick_port = lambda: endpoint_of(other).port
        with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
            pass
        assert caught.value.diagnosis.verdict is Verdict.INFRA
        assert "another program" in caught.value.diagnosis.cause
        assert other.is_alive()
    assert not bench.left()


def test_cause_of_a_crash_at_the_first_completion_is_the_logs(bench: Bench) -> None:
    """HTTP 500 is only how it shows; what happened stands in the log."""
    engine = bench.engine(
        faults=[{"http_500_after": 0, "log_text": "RuntimeError: Unsupported head_dim=16"}]
    )
    with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
        pass
    found = caught.value.diagnosis
    assert found.verdict is Verdict.CRASH_UNDER_LOAD
    assert found.phase == "warmup"
    assert "Unsupported head_dim=16" in found.cause
