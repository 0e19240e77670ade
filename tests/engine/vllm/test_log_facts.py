"""What a real server's log tells of itself."""

from __future__ import annotations

from sweeper.engine.vllm.log_facts import arguments, learn


def test_figures_of_a_cpu_server(healthy_log: str) -> None:
    assert learn(healthy_log) == {
        "kv_cache_tokens": 36096,
        "max_full_length_requests": 17.62,
        "weights_load_s": 1.24,
        "kv_cache_memory_gib": 0.78,
        "requested_memory_gib": 1.92,
        "other_memory_gib": 1.14,
        "engine_init_s": 3.01,
    }


def test_figures_of_a_gpu_server() -> None:
    log = (
        "INFO Model loading took 14.2717 GiB memory and 4.187265 seconds\n"
        "INFO Available KV cache memory: 53.18 GiB\n"
        "INFO GPU KV cache size: 995,648 tokens, Maximum concurrency for 32,768 tokens per "
        "request: 30.38x\n"
        "INFO Graph capturing finished in 21 secs, took 0.54 GiB\n"
        "INFO Estimated CUDA graph memory: 0.26 GiB total\n"
    )
    assert learn(log) == {
        "kv_cache_tokens": 995648,
        "max_full_length_requests": 30.38,
        "model_memory_gib": 14.2717,
        "model_load_s": 4.187265,
        "kv_cache_memory_gib": 53.18,
        "graph_memory_gib": 0.54,
        "graph_capture_s": 21.0,
        "estimated_graph_memory_gib": 0.26,
    }


def test_older_wordings_are_read() -> None:
    log = (
        "INFO GPU KV cache size: 188,640 tokens\n"
        "INFO Maximum concurrency for 131,072 tokens per request: 5.23x\n"
    )
    assert learn(log) == {"kv_cache_tokens": 188640, "max_full_length_requests": 5.23}


def test_silent_log_teaches_nothing() -> None:
    assert learn("") == {}
    assert arguments("") == {}


def test_arguments_of_a_real_server(healthy_log: str) -> None:
    found = arguments(healthy_log)
    assert found["max_num_seqs"] == 16
    assert found["gpu_memory_utilization"] == 0.2
    assert found["enforce_eager"] is True
    assert found["max_model_len"] == 2048
    assert found["dtype"] == "bfloat16"
    assert found["quantization"] is None
    assert found["tensor_parallel_size"] == 1
    assert not {"port", "host", "model", "served_model_name"} & set(found)


def test_arguments_that_are_no_literals_are_left_out() -> None:
    assert arguments("non-default args: {'a': <object at 0x1>}") == {}
