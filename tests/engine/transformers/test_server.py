"""The server's endpoints on a tiny model, asked over HTTP, in every batching mode."""

from __future__ import annotations

import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.local_http import Endpoint, Reply, call
from tests.engine.conftest import wait_for
from tests.engine.transformers.conftest import EOS, MODES, VOCABULARY, Served, endpoint_of

PROMPTS = [[70, 71, 72, 73], [300, 301, 302], [90, 91, 92, 93, 94, 95, 96], [350]]
EXACT = {"ignore_eos": True, "temperature": 0}


def complete(endpoint: Endpoint, prompt: Any, **fields: Any) -> Reply:
    body = {"model": endpoint.served_name, "prompt": prompt, "max_tokens": 8, "temperature": 0}
    return call(endpoint, "/v1/completions", {**body, **fields}, timeout_s=60)


def stream(endpoint: Endpoint, prompt: Any, **fields: Any) -> list[dict[str, Any]]:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    reply = complete(endpoint, prompt, **options, **fields)
    assert reply.status == 200, reply.text
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def metric(endpoint: Endpoint, name: str, label: str = "") -> float:
    text = call(endpoint, "/metrics", timeout_s=10).text
    (line,) = [x for x in text.splitlines() if x.startswith(name + "{") and label in x]
    return float(line.rsplit(" ", 1)[1])


def reference(model: Path, prompt: list[int], tokens: int) -> list[int]:
    """Greedy tokens by repeated forward passes, without any cache or `generate`."""
    import torch
    from transformers import LlamaForCausalLM

    llama = LlamaForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(tokens):
            ids.append(int(llama(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_writes_the_greedy_tokens_of_plain_forward_passes(
    mode: str, served: Served, tiny_model: Path
) -> None:
    endpoint = endpoint_of(served(mode))

    def ask(prompt: list[int]) -> dict[str, Any]:
        answer = complete(endpoint, prompt, max_tokens=12, return_token_ids=True, ignore_eos=True)
        choice: dict[str, Any] = answer.json()["choices"][0]
        return choice

    with ThreadPoolExecutor(len(PROMPTS)) as pool:  # together, so that batches are made
        choices = list(pool.map(ask, PROMPTS))
    for prompt, choice in zip(PROMPTS, choices, strict=True):
        assert choice["prompt_token_ids"] == prompt
        assert choice["token_ids"] == reference(tiny_model, prompt, 12)
        assert choice["finish_reason"] == "length"


@pytest.mark.parametrize("mode", MODES)
def test_stream_says_what_the_whole_answer_says(mode: str, served: Served) -> None:
    endpoint = endpoint_of(served(mode))
    whole = complete(endpoint, PROMPTS[0], max_tokens=20, **EXACT).json()
    parts = stream(endpoint, PROMPTS[0], max_tokens=20, **EXACT)
    texts = [part["choices"][0]["text"] for part in parts[:-1]]
    assert "".join(texts) == whole["choices"][0]["text"] != ""
    assert parts[-1]["choices"] == []
    assert parts[-1]["usage"] == whole["usage"]
    assert whole["usage"] == {"prompt_tokens": 4, "completion_tokens": 20, "total_tokens": 24}
    reasons = [part["choices"][0]["finish_reason"] for part in parts[:-1]]
    assert reasons == [None] * (len(texts) - 1) + ["length"]


@pytest.mark.parametrize("mode", ["none", "static", "continuous"])
def test_a_stream_gives_each_token_as_it_comes(mode: str, served: Served) -> None:
    parts = stream(endpoint_of(served(mode)), PROMPTS[1], max_tokens=16, **EXACT)
    assert len(parts) >= 10  # some tokens are bytes of a character that is not whole yet


@pytest.mark.parametrize("mode", ["none", "static", "ngram"])
def test_min_tokens_masks_the_end_of_sequence(mode: str, served: Served) -> None:
    endpoint = endpoint_of(served(mode))
    fields = {"max_tokens": 30, "min_tokens": 30, "return_token_ids": True, **EXACT}
    answer = complete(endpoint, PROMPTS[0], **fields).json()
    assert answer["usage"]["completion_tokens"] == 30
    assert EOS not in answer["choices"][0]["token_ids"]


@pytest.mark.parametrize("mode", MODES)
def test_an_end_of_sequence_ends_the_answer(mode: str, served: Served, ending: list[int]) -> None:
    endpoint = endpoint_of(served(mode))
    told = complete(endpoint, ending, max_tokens=40, return_token_ids=True).json()
    (choice,) = told["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["token_ids"][-1] == EOS
    assert EOS not in choice["token_ids"][:-1]
    assert told["usage"]["completion_tokens"] == len(choice["token_ids"])


@pytest.fixture(scope="module")
def ending(tiny_model: Path) -> list[int]:
    """A prompt after which the model soon ends by itself."""
    import torch
    from transformers import GenerationConfig, LlamaForCausalLM

    llama = LlamaForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).eval()
    config = GenerationConfig(max_new_tokens=30, do_sample=False, pad_token_id=0)
    prompts = torch.arange(2, VOCABULARY)[:, None].repeat(1, 2)
    written = llama.generate(
        prompts, attention_mask=torch.ones_like(prompts), generation_config=config
    )
    for row in written.tolist():
        if EOS in row[4:]:
            return row[:2]
    pytest.fail("the tiny model never ends; choose another seed")


def test_requests_of_a_static_batch_run_together_and_end_apart(served: Served) -> None:
    endpoint = endpoint_of(served("static"))
    seen = []

    def ask(tokens: int) -> float:
        started = time.monotonic()
        parts = stream(endpoint, [80, tokens], max_tokens=tokens, **EXACT)
        assert parts[-1]["usage"]["completion_tokens"] == tokens
        return time.monotonic() - started

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, tokens) for tokens in (60, 240)]
        wait_for(
            lambda: seen.append(metric(endpoint, "vllm:num_requests_running")) or seen[-1] == 2
        )
        short_s, long_s = (future.result() for future in asked)
    assert short_s < 0.8 * long_s, "a quarter of the tokens; the rest is the machine's"


def test_one_at_a_time_lets_the_others_wait(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(stream, endpoint, [80, n], max_tokens=200, **EXACT) for n in (2, 3, 4)]
        wait_for(lambda: metric(endpoint, "vllm:num_requests_waiting") == 2)
        assert metric(endpoint, "vllm:num_requests_running") == 1
        for future in asked:
            assert future.result()[-1]["usage"]["completion_tokens"] == 200


@pytest.mark.parametrize("mode", ["none", "static", "continuous"])
def test_a_client_that_goes_away_ends_its_request(mode: str, served: Served) -> None:
    endpoint = endpoint_of(served(mode))
    before = metric(endpoint, "vllm:request_success_total", "abort")
    written = metric(endpoint, "vllm:generation_tokens_total")
    body = {"model": "tiny", "prompt": [80, 81], "max_tokens": 250, "stream": True, **EXACT}
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    connection.request("POST", "/v1/completions", json.dumps(body), headers)
    answer = connection.getresponse()
    assert answer.read(10)
    answer.close()
    connection.close()
    wait_for(lambda: metric(endpoint, "vllm:request_success_total", "abort") == before + 1)
    wait_for(lambda: metric(endpoint, "vllm:num_requests_running") == 0)
    assert metric(endpoint, "vllm:generation_tokens_total") - written < 250
    assert complete(endpoint, [80], **EXACT).status == 200


def test_a_waiting_client_that_goes_away_is_not_served(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(stream, endpoint, [80, 2], max_tokens=250, **EXACT)
        wait_for(lambda: metric(endpoint, "vllm:num_requests_running") == 1)
        prompts = metric(endpoint, "vllm:prompt_tokens_total")
        body = json.dumps({"model": "tiny", "prompt": [80] * 100, "max_tokens": 9}).encode()
        head = (
            "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {endpoint.api_key}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", endpoint.port)) as raw:
            raw.sendall(head.encode() + body)
            wait_for(lambda: metric(endpoint, "vllm:num_requests_waiting") == 1)
        wait_for(lambda: metric(endpoint, "vllm:num_requests_waiting") == 0)
        first.result()
    assert metric(endpoint, "vllm:prompt_tokens_total") == prompts


@pytest.mark.parametrize("mode", ["none", "static", "continuous", "continuous, paged"])
def test_prompt_logprobs_are_those_of_a_forward_pass(
    mode: str, served: Served, tiny_model: Path
) -> None:
    import torch
    from transformers import LlamaForCausalLM

    ids = [70, 71, 72, 300, 301, 302, 5]
    answer = complete(endpoint_of(served(mode)), ids, max_tokens=1, prompt_logprobs=0).json()
    entries = answer["choices"][0]["prompt_logprobs"]
    assert entries[0] is None
    assert len(entries) == len(ids)
    llama = LlamaForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).eval()
    with torch.inference_mode():
        rows = torch.log_softmax(llama(torch.tensor([ids])).logits[0], dim=-1)
    for place, entry in enumerate(entries[1:], 1):
        told = entry[str(ids[place])]
        row = rows[place - 1]
        assert told["logprob"] == pytest.approx(float(row[ids[place]]), abs=1e-4)
        assert told["rank"] == 1 + int((row > row[ids[place]]).sum())


def test_prompt_logprobs_tell_the_likeliest_tokens_too(served: Served) -> None:
    answer = complete(endpoint_of(served("none")), [70, 71], max_tokens=1, prompt_logprobs=3)
    entry = answer.json()["choices"][0]["prompt_logprobs"][1]
    assert "71" in entry
    assert {1, 2, 3} <= {told["rank"] for told in entry.values()}


def test_what_it_wrote_it_ranks_first(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    fields = {"return_token_ids": True, "max_tokens": 10, **EXACT}
    ids = complete(endpoint, [70, 71], **fields).json()["choices"][0]["token_ids"]
    answer = complete(endpoint, [70, 71, *ids], max_tokens=1, prompt_logprobs=0).json()
    entries = answer["choices"][0]["prompt_logprobs"][2:]
    assert [e[str(t)]["rank"] for e, t in zip(entries, ids, strict=True)] == [1] * 10


def test_several_prompts_get_an_answer_each(served: Served) -> None:
    answer = complete(endpoint_of(served("static")), PROMPTS[:3], **EXACT).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["prompt_tokens"] == sum(map(len, PROMPTS[:3]))
    assert answer["usage"]["completion_tokens"] == 24


def test_a_seed_repeats_a_sample(served: Served) -> None:
    endpoint = endpoint_of(served("static"))

    def ask(**fields: Any) -> str:
        wanted = {"temperature": 1.5, "max_tokens": 24, "ignore_eos": True, **fields}
        text: str = complete(endpoint, [70, 71], **wanted).json()["choices"][0]["text"]
        return text

    assert ask(seed=3) == ask(seed=3) != ask(seed=4)


def test_sampling_with_top_k_of_one_is_greedy(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    greedy = complete(endpoint, [70, 71], **EXACT).json()["choices"][0]["text"]
    one = complete(endpoint, [70, 71], temperature=2.0, top_k=1, ignore_eos=True).json()
    assert one["choices"][0]["text"] == greedy


def test_beam_search_gives_as_many_answers_as_beams(served: Served) -> None:
    fields = {"use_beam_search": True, "n": 3, **EXACT}
    answer = complete(endpoint_of(served("none")), [70, 71], **fields).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 24
    assert len({choice["text"] for choice in answer["choices"]}) > 1


def test_beam_search_streams_its_answers_at_the_end(served: Served) -> None:
    fields = {"use_beam_search": True, "n": 2, **EXACT}
    parts = stream(endpoint_of(served("none")), [70, 71], **fields)
    ended = [p["choices"][0]["index"] for p in parts[:-1] if p["choices"][0]["finish_reason"]]
    assert sorted(ended) == [0, 1]


def test_drafts_are_counted(served: Served) -> None:
    endpoint = endpoint_of(served("ngram"))
    stream(endpoint, [70, 71, 72] * 20, max_tokens=60, **EXACT)
    drafted = metric(endpoint, "vllm:spec_decode_num_draft_tokens_total")
    accepted = metric(endpoint, "vllm:spec_decode_num_accepted_tokens_total")
    assert 0 < accepted <= drafted
    assert "spec_decode" not in call(endpoint_of(served("none")), "/metrics", timeout_s=5).text


def test_tokenize_says_what_the_completion_counts(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    told = call(endpoint, "/tokenize", {"prompt": "Hällo 你好"}, timeout_s=10).json()
    assert told["count"] == len(told["tokens"]) == len("Hällo 你好".encode())
    assert told["max_model_len"] == 256
    usage = complete(endpoint, "Hällo 你好").json()["usage"]
    assert usage["prompt_tokens"] == told["count"]


def test_a_wrong_key_is_refused(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    assert complete(replace(endpoint, api_key="wrong"), [5]).status == 401
    assert call(replace(endpoint, api_key="wrong"), "/v1/models", timeout_s=5).status == 401
    assert call(replace(endpoint, api_key="wrong"), "/health", timeout_s=5).status == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/nothing"])
def test_an_unknown_path_is_404(path: str, served: Served) -> None:
    assert call(endpoint_of(served("none")), path, {"model": "tiny"}, timeout_s=5).status == 404


REFUSED = {
    "context": ({"prompt": [5] * 250}, 400, "longer than the model's context of 256"),
    "vocabulary": ({"prompt": [VOCABULARY]}, 400, "outside the vocabulary"),
    "empty": ({"prompt": ""}, 400, "the prompt is empty"),
    "stop": ({"stop": ["x"]}, 400, "has no stop"),
    "answers": ({"n": 2}, 400, "n must be 1"),
    "length": ({"max_tokens": 0}, 400, "below 1"),
    "least": ({"min_tokens": 9}, 400, "min_tokens=9"),
    "model": ({"model": "other"}, 404, "no model 'other'"),
    "streamed": ({"stream": True, "prompt_logprobs": 0}, 400, "not streamed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_do_is_refused_with_the_reason(case: str, served: Served) -> None:
    fields, status, reason = REFUSED[case]
    reply = complete(endpoint_of(served("none")), **{"prompt": [5], **fields})
    assert reply.status == status
    assert reason in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"temperature": 0.7}, "greedily"), ({"min_tokens": 2}, "min_tokens needs ignore_eos")],
)
def test_continuous_batching_refuses_what_the_library_cannot(
    fields: dict[str, Any], reason: str, served: Served
) -> None:
    reply = complete(endpoint_of(served("continuous")), [5], **fields)
    assert reply.status == 400
    assert reason in reply.json()["error"]["message"]


def test_a_broken_body_is_400_and_the_server_goes_on(served: Served) -> None:
    endpoint = endpoint_of(served("none"))
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    connection.request("POST", "/v1/completions", b"{not json", headers)
    assert connection.getresponse().status == 400
    connection.close()
    assert complete(endpoint, [5]).status == 200
