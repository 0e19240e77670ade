"""What a real server's log tells of itself."""

from __future__ import annotations

from sweeper.engine.vllm.log_facts import echoed, effective, learn


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
    assert effective("") == {}
    assert echoed("") == {}


def test_command_line_as_a_real_server_understood_it(healthy_log: str) -> None:
    found = echoed(healthy_log)
    assert found["max_num_seqs"] == 16
    assert found["gpu_memory_utilization"] == 0.2
    assert not {"port", "host", "model", "served_model_name"} & set(found)


def test_what_is_in_effect_on_a_real_server(healthy_log: str) -> None:
    found = effective(healthy_log)
    assert found["enforce_eager"] is True
    assert found["max_model_len"] == 2048
    assert found["dtype"] == "bfloat16"
    assert found["quantization"] is None
    assert found["tensor_parallel_size"] == 1
    assert found["speculative_config"] is None
    # The line is cut off within this entry, and half a word is no value.
    assert "kv_cache_dtype" not in found
    # Every replica of a dense model counts itself as one.
    assert "data_parallel_size" not in found


def test_entries_inside_others_are_not_the_engines() -> None:
    summary = (
        "Initializing a V1 LLM engine (v0.32.0) with config: model='/a, b', speculative_config="
        "SpeculativeConfig(method='draft_model', model='/models/draft', num_spec_tokens=3), "
        "quantization_config=Args(linear=None, moe=Key(dtype=torch.int8, seed=9), ignore=[]), "
        "dtype=torch.float16, seed=0, enforce_eager=False, kernel_config=Kernels()"
    )
    assert effective(summary) == {
        "dtype": "float16",
        "seed": 0,
        "enforce_eager": False,
        "speculative_config": {
            "method": "draft_model",
            "model": "/models/draft",
            "num_speculative_tokens": 3,
        },
    }


def test_batch_limit_is_in_the_schedulers_line() -> None:
    line = "INFO [scheduler.py:307] Chunked prefill is enabled with max_num_batched_tokens=4096."
    assert effective(line) == {"max_num_batched_tokens": 4096}


def test_arguments_that_are_no_literals_are_left_out() -> None:
    assert echoed("non-default args: {'a': <object at 0x1>}") == {}
