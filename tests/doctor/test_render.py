"""Findings as text and JSON."""

from __future__ import annotations

import json

from sweeper.doctor.finding import ok, problem, unknown, warning
from sweeper.doctor.render import WIDTH, as_json, as_text, verdict

FOUND = [
    ok("python", "Python 3.11.7"),
    warning("shared memory", "/dev/shm has 64 MiB " * 9, "give it more " * 12),
    problem("torchvision", "operator torchvision::nms does not exist", "pip uninstall torchvision"),
    unknown("clock", "cannot be read"),
]


def test_every_line_fits_and_remedies_stand_below() -> None:
    lines = as_text(FOUND, "title").splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert lines[0] == "title"
    at = next(n for n, line in enumerate(lines) if line.startswith("PROBLEM"))
    assert lines[at + 1].strip() == "remedy: pip uninstall torchvision"
    assert lines[-1] == "not ready: 1 problem, 1 warning, 1 that cannot be told"


def test_the_verdict_of_a_machine_in_order() -> None:
    assert verdict(FOUND[:1]) == "ready: nothing to mend"
    assert verdict([FOUND[1], FOUND[1]]) == "ready: 2 warnings"


def test_json_has_everything() -> None:
    data = json.loads(as_json(FOUND))
    assert data["ready"] is False
    assert [one["state"] for one in data["findings"]] == ["ok", "warning", "problem", "cannot tell"]
    assert data["findings"][2]["remedy"] == "pip uninstall torchvision"
