"""`doctor` on this machine, whatever it is: it answers, consistently, and changes nothing."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.doctor.finding import State
from sweeper.verbs import doctor
from tests.yardstick import hydra_s, stretched


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_this_machine(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "limit_s=2", "format=json"])
    data = json.loads(capsys.readouterr().out)
    states = {finding["state"] for finding in data["findings"]}
    assert code == (0 if data["ready"] else 1)
    assert data["ready"] is (State.PROBLEM not in states)
    checks = {finding["check"] for finding in data["findings"]}
    assert {"python", "processor", "memory", "gpu", "interpreter", "studies", "ports"} < checks
    assert list(elsewhere.iterdir()) == []


def test_in_words_and_by_the_study(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "model.path=/no/such/model", "engine.python=/no/python"])
    text = capsys.readouterr().out
    assert code == 1
    assert text.startswith("sweeper doctor: /no/such/model on engine vllm")
    assert "PROBLEM" in text
    assert "/no/python cannot be asked" in text
    assert "not ready: " in text.splitlines()[-1]


def test_an_engine_that_needs_nothing_is_answered_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    started = time.monotonic()
    main(["doctor", "engine=mock"])
    assert time.monotonic() - started < stretched(2.0, hydra_s())
    assert "interpreter" not in capsys.readouterr().out


def test_it_works_where_hydra_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hydra.core.override_parser.overrides_parser", None)
    monkeypatch.setattr("sweeper.doctor.gather_host.unmet", lambda: ("hydra-core is missing",))
    assert main(["doctor", "limit_s=0.01"]) == 1
    text = capsys.readouterr().out
    assert "hydra-core is missing" in text
    assert "make setup" in text


def test_importing_the_engine_waits_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def gathered(cfg: object, **told: object) -> None:
        asked.update(told)
        raise KeyboardInterrupt

    monkeypatch.setattr("sweeper.doctor.gather.gather", gathered)
    with pytest.raises(KeyboardInterrupt):
        doctor.run(["deep=true"])
    assert asked == {"limit_s": 120.0, "deep": True}
