"""What a failed launch taught, from its study to the verbs that show it and take it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper import verbs
from sweeper.errors import ConfigError
from tests.verbs.conftest import MOCK, Run
from tests.verbs.test_study_on_mock import journal

SPACE = """
name: memory
parameters:
  gpu_memory_utilization: {choices: [0.2, 0.3, 0.9], default: 0.9}
seeds:
  - {gpu_memory_utilization: 0.3}
"""
QUICK = ["+engine.options.start_s=0", "+engine.options.compile_s=0", "load.concurrency=[1]"]
QUICK += ["quality=none", "budget.launches=5", "study=s"]


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    (tmp_path / "memory.yaml").write_text(SPACE)
    kept = [setting for setting in MOCK if not setting.startswith(("space=", "budget.", "quality"))]
    kept = [setting for setting in kept if not setting.startswith("load.concurrency")]
    return [*kept, "space=memory.yaml", *QUICK]


def test_a_bound_from_its_teacher_to_its_end(
    sweeper: Run,
    tmp_path: Path,
    settings: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = sweeper(*settings)
    assert done.returncode == 0, done.stderr
    # One launch taught it: the smaller share was not launched, and its user hears why.
    trials = journal(tmp_path / "studies" / "s")
    assert [trial["launched"] for trial in trials[:2]] == [True, True]
    assert len([trial for trial in trials if trial["launched"]]) == 2
    assert "No deployment but the default worked" in done.stdout
    assert "no kv memory" in done.stdout.partition("No deployment but the default worked")[2]
    assert "refused by a learnt bound" in done.stdout

    monkeypatch.chdir(tmp_path)

    def verb(*arguments: str) -> str:
        assert verbs.run(list(arguments)) == 0
        return capsys.readouterr().out

    status = " ".join(verb("status", "study=s").split())
    assert "no_kv_memory-1 holds" in status
    assert "gpu_memory_utilization ≤ 0.3" in status
    with pytest.raises(ConfigError, match="drop=no_kv_memory-7") as wrong:
        verb("bounds", "study=s", "drop=no_kv_memory-7")
    assert "did you mean drop=no_kv_memory-1" in wrong.value.remedy
    (dropped,) = json.loads(verb("bounds", "study=s", "drop=no_kv_memory-1", "format=json"))
    assert dropped["state"] == "dropped"

    assert sweeper("resume", "study=s").returncode == 0
    launched = [trial for trial in journal(tmp_path / "studies" / "s") if trial["launched"]]
    assert [trial["deployment"] for trial in launched[2:]] == [{"gpu_memory_utilization": 0.2}]

    assert "dropped" not in verb("bounds", "study=s", "restore=all")
    assert "dropped" in verb("bounds", "study=s", "drop=all")
    with pytest.raises(ConfigError, match="restore=x"):
        verb("bounds", "study=s", "restore=x")
