"""The stub's truth is what a client of its own sees."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from typing import Any

import pytest

from benchmarks.processes import get_json, post, run_pinned, stub
from benchmarks.truth import truth_of


def completion(url: str, tokens: int, **more: Any) -> tuple[list[dict[str, Any]], list[float]]:
    """Events of one completion, [DONE] excluded, and the times of those with text."""
    body = {"prompt": [1, 2, 3], "max_tokens": tokens, "stream": True, **more}
    data = json.dumps(body).encode()
    asked = urllib.request.Request(f"{url}/v1/completions", data=data)
    events, times, done = [], [], False
    with urllib.request.urlopen(asked, timeout=10) as answer:
        for line in answer:
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                done = True
                continue
            events.append(json.loads(line[6:]))
            if events[-1]["choices"]:
                times.append(time.monotonic())
    assert done
    return events, times


def test_every_token_is_an_event_with_its_time_on_the_beat() -> None:
    with stub(None, "--token-ms", "10", "--first-ms", "30") as url:
        events, times = completion(url, 8)
        noted = get_json(f"{url}/truth")
    (one,) = noted["requests"]
    assert [event["choices"][0]["text"] for event in events[:-1]] == [" word"] * 8
    assert [e["choices"][0]["finish_reason"] for e in events[:-1]] == [None] * 7 + ["length"]
    assert events[-1]["usage"]["completion_tokens"] == 8
    assert (len(one["emitted_s"]), one["prompt_tokens"], one["ended"]) == (8, 3, True)
    for position, (emitted, seen) in enumerate(zip(one["emitted_s"], times, strict=True)):
        assert emitted >= one["arrival_s"] + 0.03 + position * 0.01 - 1e-4  # never early
        assert emitted <= seen  # and noted before it can be read


def test_without_delay_all_tokens_are_written_and_counted() -> None:
    with stub(None, "--token-ms", "0", "--tokens-per-write", "7") as url:
        events, _ = completion(url, 200)
        metrics = urllib.request.urlopen(f"{url}/metrics", timeout=10).read().decode()
        truth = truth_of(get_json(f"{url}/truth"), 1, 1)
        post(f"{url}/reset")
        assert get_json(f"{url}/truth")["requests"] == []
    assert (len(events), truth.tokens, truth.late_p99_ms) == (201, 200, None)
    assert 'vllm:generation_tokens_total{engine="0"} 200' in metrics


def test_processes_are_pinned_timed_and_ended() -> None:
    core = min(os.sched_getaffinity(0))
    code = "import os, time\nprint(os.sched_getaffinity(0))\nwhile time.process_time() < .2: pass"
    spent = run_pinned(["python3", "-c", code], core)
    assert spent.output.strip() == f"{{{core}}}"
    assert 0.2 <= spent.cpu_s < 2.0 and spent.wall_s >= 0.2 and spent.exit_code == 0
    with pytest.raises(TimeoutError):
        run_pinned(["sleep", "30"], None, timeout_s=0.1)
