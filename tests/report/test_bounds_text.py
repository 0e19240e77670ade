from __future__ import annotations

import json

from sweeper.report.bounds_text import bounds_json, render_bounds
from sweeper.search.bounds.learn import Lessons, learn
from tests.factories import outcome
from tests.search.bounds.journal import baseline, failed

UTIL = "gpu_memory_utilization"
JOURNAL = [
    baseline(),
    failed(1, {UTIL: 0.5}, "no_kv_memory"),
    failed(2, {UTIL: 0.99}, "device_memory_taken", max_gpu_memory_utilization=0.97),
    failed(3, {UTIL: 0.7, "max_num_seqs": 8}, "no_kv_memory"),
    outcome(4, deployment={UTIL: 0.6, "max_num_seqs": 8}),
]


def test_every_bound_is_listed_with_what_became_of_it() -> None:
    lessons = learn(JOURNAL, {"device_memory_taken-2"})
    rows = {row["id"]: row for row in json.loads(bounds_json(lessons, {"no_kv_memory-1": 5}))}
    assert {name: row["state"] for name, row in rows.items()} == {
        "no_kv_memory-1": "holds",
        "device_memory_taken-2": "dropped",
        "no_kv_memory-3": "contradicted by trial 4",
    }
    assert rows["no_kv_memory-1"]["refused"] == 5
    assert {"parameter": UTIL, "relation": "≤", "value": 0.5} in rows["no_kv_memory-1"]["limits"]
    text = render_bounds(lessons, {"no_kv_memory-1": 5}, "mine")
    assert "contradicted by trial 4" in text
    assert "bounds study=mine drop=ID" in text


def test_nothing_learnt_is_said() -> None:
    assert "nothing yet" in render_bounds(Lessons(), {}, "s")
    assert json.loads(bounds_json(Lessons(), {})) == []
