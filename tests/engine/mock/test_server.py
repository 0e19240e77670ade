"""The stub's endpoints, asked over HTTP on one launch."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.local_http import Endpoint, Reply, call
from tests.engine.conftest import Bench, wait_for
from tests.engine.test_serve import endpoint_of


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    bench = Bench(Path(tmp_path_factory.mktemp("served")))
    parameters = {"speculative": "ngram", "num_speculative_tokens": 3, "max_num_seqs": 4}
    with bench.engine(acceptance={"ngram": 0.6}).serve(bench.request(parameters)) as server:
        yield endpoint_of(server)


def complete(endpoint: Endpoint, prompt: Any, **fields: Any) -> Reply:
    body = {"model": endpoint.served_name, "prompt": prompt, "max_tokens": 8, **fields}
    return call(endpoint, "/v1/completions", body, timeout_s=20)


def chunks(reply: Reply) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def metric(endpoint: Endpoint, name: str) -> float:
    text = call(endpoint, "/metrics", timeout_s=5).text
    (line,) = [line for line in text.splitlines() if line.startswith(name + "{")]
    return float(line.rsplit(" ", 1)[1])


@pytest.mark.parametrize("prompt", ["The capital of France is", [5, 6, 7, 8, 9]])
def test_completion_has_usage_and_length(served: Endpoint, prompt: Any) -> None:
    answer = complete(served, prompt, ignore_eos=True).json()
    assert answer["usage"] == {"prompt_tokens": 5, "completion_tokens": 8, "total_tokens": 13}
    assert answer["choices"][0]["finish_reason"] == "length"


def test_list_of_prompts_gets_a_choice_each(served: Endpoint) -> None:
    answer = complete(served, [[1, 2], [3, 4, 5]], ignore_eos=True).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert answer["usage"]["prompt_tokens"] == 5


def test_stream_writes_the_same_in_packed_chunks(served: Endpoint) -> None:
    prompt = [11, 12, 13, 14]
    whole = complete(served, prompt, max_tokens=40, ignore_eos=True).json()
    options = {"stream": True, "stream_options": {"include_usage": True}}
    parts = chunks(complete(served, prompt, max_tokens=40, ignore_eos=True, **options))
    assert parts[-1]["choices"] == []
    assert parts[-1]["usage"]["completion_tokens"] == 40
    texts = [part["choices"][0]["text"] for part in parts[:-1]]
    assert "".join(texts) == whole["choices"][0]["text"]
    assert len(texts) < 40
    reasons = [part["choices"][0]["finish_reason"] for part in parts[:-1]]
    assert reasons == [None] * (len(texts) - 1) + ["length"]


def test_prompt_logprobs_agree_with_what_it_wrote(served: Endpoint) -> None:
    written = complete(served, [1, 2, 3, 4], return_token_ids=True, ignore_eos=True).json()
    ids = written["choices"][0]["token_ids"]
    prompt = [1, 2, 3, 4, *ids]
    answer = complete(served, prompt, max_tokens=1, prompt_logprobs=0).json()
    entries = answer["choices"][0]["prompt_logprobs"]
    assert entries[0] is None
    assert len(entries) == len(prompt)
    judged = [entry[str(token)] for token, entry in zip(prompt[4:], entries[4:], strict=True)]
    assert all(entry["rank"] == 1 for entry in judged)


def test_an_echo_scores_prompt_and_answer(served: Endpoint) -> None:
    prompt = [1, 2, 3, 4, 5, 6]
    read = complete(served, prompt, max_tokens=1, prompt_logprobs=0).json()["choices"][0]
    echoed = complete(served, prompt, max_tokens=1, echo=True, logprobs=1).json()["choices"][0]
    entries = zip(prompt[1:], read["prompt_logprobs"][1:], strict=True)
    scores = [entry[str(token)]["logprob"] for token, entry in entries]
    found = echoed["logprobs"]
    assert found["token_logprobs"][:-1] == [None, *scores]
    assert found["top_logprobs"][0] is None and max(found["top_logprobs"][1].values()) == scores[0]
    assert echoed["text"].endswith(read["text"]) and len(found["tokens"]) == len(prompt) + 1
    alone = complete(served, prompt, max_tokens=1, logprobs=1).json()["choices"][0]
    assert alone["logprobs"]["token_logprobs"] == found["token_logprobs"][-1:]


def test_tokenizing_counts(served: Endpoint) -> None:
    answer = call(served, "/tokenize", {"prompt": "one two three"}, timeout_s=5).json()
    assert answer["count"] == len(answer["tokens"]) == 3


def test_counters_move_with_the_work(served: Endpoint) -> None:
    before = metric(served, "vllm:generation_tokens_total")
    drafted = metric(served, "vllm:spec_decode_num_draft_tokens_total")
    complete(served, [21, 22, 23], max_tokens=30, ignore_eos=True)
    assert metric(served, "vllm:generation_tokens_total") - before == 30
    accepted = metric(served, "vllm:spec_decode_num_accepted_tokens_total")
    assert 0 < accepted < metric(served, "vllm:spec_decode_num_draft_tokens_total")
    assert drafted < metric(served, "vllm:spec_decode_num_draft_tokens_total")


def test_repeated_prompt_hits_the_prefix_cache(served: Endpoint) -> None:
    prompt = list(range(100, 164))
    complete(served, prompt)
    before = metric(served, "vllm:prefix_cache_hits_total")
    complete(served, prompt)
    assert metric(served, "vllm:prefix_cache_hits_total") - before >= 48


def test_requests_beyond_the_batch_wait(served: Endpoint) -> None:
    def timed(count: int) -> float:
        started = time.monotonic()
        with ThreadPoolExecutor(count) as pool:
            for reply in pool.map(
                lambda n: complete(served, [n, 2, 3], max_tokens=60, ignore_eos=True), range(count)
            ):
                assert reply.status == 200
        return time.monotonic() - started

    assert timed(12) > 2 * timed(4)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"prompt": []}, 400),
        ({"prompt": [10**9]}, 400),
        ({"max_tokens": 10**6}, 400),
        ({"model": "another"}, 404),
        ({"prompt": 5}, 400),
    ],
)
def test_bad_requests_are_refused(served: Endpoint, fields: dict[str, Any], status: int) -> None:
    assert complete(served, **{"prompt": [1], **fields}).status == status
    assert complete(served, [1]).status == 200


def test_no_usage_and_empty_first_chunk(bench: Bench) -> None:
    faults = [{"no_usage": True}, {"empty_first_chunk": True}]
    with bench.engine(faults=faults).serve(bench.request()) as server:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        parts = chunks(complete(endpoint_of(server), [1, 2], **options))
        assert parts[0]["choices"][0]["text"] == ""
        assert all(part["choices"] and "usage" not in part for part in parts)


def test_connection_breaks_as_dialled(bench: Bench) -> None:
    with bench.engine(faults={"reset_connection_every": 3}).serve(bench.request()) as server:
        endpoint = endpoint_of(server)
        assert complete(endpoint, [1]).status == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            complete(endpoint, [1])
        assert complete(endpoint, [1]).status == 200


def test_death_under_load(bench: Bench) -> None:
    fault = {"die_at": "load", "after_requests": 2, "exit_code": 7}
    with bench.engine(faults=fault).serve(bench.request()) as server:
        endpoint = endpoint_of(server)
        assert [complete(endpoint, [n]).status for n in range(2)] == [200, 200]
        with pytest.raises((OSError, http.client.HTTPException)):
            complete(endpoint, [9])
        assert wait_for(server.exit_code, 2) == 7


def test_cache_that_is_too_small_preempts(bench: Bench) -> None:
    options = {"memory_gib": 7.7, "weights_gib": 6.0, "kv_kib_per_token": 2048.0}
    parameters = {"max_model_len": 100, "gpu_memory_utilization": 0.9}
    with bench.engine(**options).serve(bench.request(parameters)) as server:
        endpoint = endpoint_of(server)
        assert int(server.learnt["kv_cache_tokens"]) < 200
        with ThreadPoolExecutor(4) as pool:
            replies = pool.map(
                lambda n: complete(endpoint, [n] * 30, max_tokens=60, ignore_eos=True), range(4)
            )
            assert all(r.json()["usage"]["completion_tokens"] == 60 for r in replies)
        assert metric(endpoint, "vllm:num_preemptions_total") > 0
