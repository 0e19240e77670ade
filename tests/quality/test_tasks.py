"""The adapter with a worker that is told what to answer, run for real in a process of its own."""

from __future__ import annotations

import _thread
import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper.config.schema import QualityConfig
from sweeper.errors import ConfigError, SweeperError
from sweeper.load.address import ServerAddress
from sweeper.quality import tasks
from sweeper.quality.asking import BrokenOutputError, QualityUnavailableError
from sweeper.quality.part import PartJob
from sweeper.quality.reference import LONGEST_TOKENS
from sweeper.toolchain.worker import EndKind, WorkerEnd

ADDRESS = ServerAddress("http://127.0.0.1:1", "trial-0", "s3cret-key")
LOCAL = Path(__file__).parents[1] / "e2e" / "tasks"
FAKE = """
import json, os, pathlib, time
import worker_protocol

def main(worker):
    seen = {"request": worker.request, "env": dict(os.environ)}
    pathlib.Path(__file__).with_name("seen.json").write_text(json.dumps(seen))
    %s

worker_protocol.run(main)
"""


def answer(value: float = 0.75, **fields: Any) -> dict[str, Any]:
    answers = {"gsm8k": [1, 1, 1, 0]} if value == 0.75 else {"gsm8k": [1, 0, 0, 0]}
    given = {"metric": "acc", "value": value, "se": 0.1, "n": 4, "parts": {}, "answers": answers}
    return {**given, **fields}


def result(**fields: Any) -> str:
    told = {"tasks": {"gsm8k": answer(**fields)}, "longest_tokens": 90, "versions": {"a": "1"}}
    return f"return json.loads({json.dumps(told)!r})"


class Bench:
    """Runs `measure` with a fake worker of the given body."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.lines = folder, list[str]()
        self._monkeypatch = monkeypatch
        self.config = QualityConfig(kind="lm_eval", tasks=["gsm8k"], python=sys.executable)

    def worker(self, body: str) -> None:
        path = self.folder / "fake.py"
        path.write_text(FAKE % body)
        self._monkeypatch.setattr(tasks, "WORKER", path)

    def job(self, **fields: Any) -> PartJob:
        job = PartJob(
            server=ADDRESS,
            config=self.config,
            kept=None,
            tokenizer=str(self.folder),
            revision=None,
            trust_remote_code=False,
            run_dir=self.folder,
            tell=self.lines.append,
        )
        return replace(job, **fields)

    @property
    def seen(self) -> Any:
        return json.loads((self.folder / "seen.json").read_text())

    def unavailable(self, **fields: Any) -> QualityUnavailableError:
        with pytest.raises(QualityUnavailableError) as caught:
            tasks.measure(self.job(**fields))
        return caught.value


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_reference_then_candidate(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-service")
    bench.worker(result())
    made = tasks.measure(bench.job())
    assert made.found["gsm8k"]["value"] == 0.75 and made.found["gsm8k"]["change"] == 0
    assert made.kept[LONGEST_TOKENS] == 90 and made.kept["versions"] == {"a": "1"}

    request, env = bench.seen["request"], bench.seen["env"]
    assert "s3cret-key" not in json.dumps(request) and env["OPENAI_API_KEY"] == "s3cret-key"
    assert request["base_url"] == ADDRESS.base_url and request["served_name"] == "trial-0"
    assert request["tokenizer"] == str(bench.folder) and request["tasks"] == ["gsm8k"]
    assert request["concurrency"] == tasks.CONCURRENCY and request["seed"] == tasks.SEED

    bench.worker(result(value=0.25))
    kept = json.loads(json.dumps(made.kept))
    found = tasks.measure(bench.job(kept=kept)).found["gsm8k"]
    assert found["change"] == pytest.approx(-0.5) and found["change_se"] > 0
    assert "answers" not in found


def test_settings_reach_the_worker(bench: Bench) -> None:
    bench.worker(result())
    bench.config = replace(
        bench.config, task_limit=20, few_shot=3, request_timeout_s=7.0, tasks_path=str(LOCAL)
    )
    tasks.measure(bench.job(tokenizer="org/model", revision="abc", trust_remote_code=True))
    request = bench.seen["request"]
    assert (request["limit"], request["few_shot"], request["request_timeout_s"]) == (20, 3, 7.0)
    assert request["tasks_path"] == str(LOCAL)
    tokenizer = (request["tokenizer"], request["revision"], request["trust_remote_code"])
    assert tokenizer == ("org/model", "abc", True)


@pytest.mark.parametrize(
    ("names", "tokenizer", "offline"),
    [
        (["everyday"], None, True),
        (["everyday", "gsm8k"], None, False),
        (["everyday"], "org/model", False),
    ],
)
def test_the_hub_is_asked_only_if_need_be(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    tokenizer: str | None,
    offline: bool,
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    config = replace(bench.config, tasks=names, tasks_path=str(LOCAL))
    place = tasks.Tokenizer(tokenizer or str(bench.folder))
    env = tasks._job(replace(ADDRESS, api_key=None), config, place, bench.folder / "log").env
    assert (env.get("HF_HUB_OFFLINE") == env.get("HF_DATASETS_OFFLINE") == "1") is offline
    assert env["OPENAI_API_KEY"] == ""  # a key in the tuner's environment is not this server's


@pytest.mark.parametrize(
    ("here", "expected"), [({"lm_eval", "transformers"}, sys.executable), ({"lm_eval"}, None)]
)
def test_which_interpreter(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, here: set[str], expected: str | None
) -> None:
    monkeypatch.setattr(tasks, "find_spec", lambda name: name if name in here else None)
    place, log = tasks.Tokenizer("m"), bench.folder / "log"
    assert tasks._job(ADDRESS, replace(bench.config, python=None), place, log).python == expected
    named = replace(bench.config, python="/other/python")
    assert tasks._job(ADDRESS, named, place, log).python == "/other/python"


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("unknown_task", "quality.tasks_path"),
        ("network", "HF_HOME"),
        ("server", "quality.request_timeout_s"),
        ("missing", "quality.python"),
        ("unsupported", "another task"),
        ("failed", "lm_eval.log"),
    ],
)
def test_what_the_worker_says_has_a_remedy(bench: Bench, kind: str, remedy: str) -> None:
    bench.worker(f"raise worker_protocol.WorkerError({kind!r}, 'no such thing')")
    error = bench.unavailable()
    assert error.message == "lm-eval: no such thing" and remedy in error.remedy
    assert not isinstance(error, BrokenOutputError)


def test_tasks_are_looked_up_before_a_launch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-service")
    bench.worker("return {}")
    tasks.prepare(bench.config, "org/model", bench.folder, bench.lines.append)
    request = bench.seen["request"]
    assert request["base_url"] is None and request["tasks"] == ["gsm8k"]
    assert bench.seen["env"]["OPENAI_API_KEY"] == ""
    assert bench.lines == ["lm-eval's tasks are looked up"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("unknown_task", ConfigError),
        ("unsupported", ConfigError),
        ("network", QualityUnavailableError),
    ],
)
def test_a_task_that_cannot_be_had_is_told_before_a_launch(
    bench: Bench, kind: str, error: type[SweeperError]
) -> None:
    bench.worker(f"raise worker_protocol.WorkerError({kind!r}, 'no task is called gsm9k')")
    with pytest.raises(error, match="no task is called gsm9k"):
        tasks.prepare(bench.config, "org/model", bench.folder, bench.lines.append)


def test_scores_that_are_no_numbers_are_broken_output(bench: Bench) -> None:
    said = "Out of range float values are not JSON compliant: nan"
    bench.worker(f"raise worker_protocol.WorkerError('server', {said!r})")
    assert isinstance(bench.unavailable(), BrokenOutputError)


def test_a_worker_that_dies(bench: Bench) -> None:
    bench.worker("os._exit(3)")
    error = bench.unavailable()
    assert "exit code 3" in error.message and "lm_eval.log" in error.remedy


def test_a_worker_that_takes_too_long(bench: Bench) -> None:
    bench.worker("time.sleep(60)")
    bench.config = replace(bench.config, tasks_timeout_s=0.5)
    assert "quality.tasks_timeout_s" in bench.unavailable().remedy


def test_an_interpreter_that_is_not_there(bench: Bench) -> None:
    bench.worker(result())
    bench.config = replace(bench.config, python="/no/such/python")
    error = bench.unavailable()
    assert "/no/such/python" in error.message and "quality.python" in error.remedy


@pytest.mark.parametrize(
    "body",
    [
        "return {}",
        "return {'tasks': {}, 'longest_tokens': 1, 'versions': {}}",
        result(value=31.0, se=None),
        result(answers=[1]),
    ],
)
def test_a_result_that_cannot_be_used(bench: Bench, body: str) -> None:
    bench.worker(body)
    assert "cannot be used" in bench.unavailable().message


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(tasks.time, "monotonic", lambda: now_s)
    lines: list[str] = []
    teller = tasks._Teller(lines.append)
    teller({"event": "phase", "name": "environment"})
    teller({"event": "phase", "name": "ask"})
    for second in range(100):
        now_s = float(second)
        teller({"event": "progress", "done": second, "of": 100, "what": "requests of gsm8k"})
    assert lines == [
        "lm-eval's environment is made, once; that takes a minute",
        *(f"lm-eval: {n} of 100 requests of gsm8k" for n in (30, 60, 90)),
    ]


def test_ctrl_c_ends_the_worker(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.worker("worker.phase('ask'); time.sleep(120)")

    def interrupt() -> None:
        while not (bench.folder / "seen.json").exists():
            time.sleep(0.01)
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(KeyboardInterrupt):
        tasks.measure(bench.job())
    assert set(psutil.Process().children(recursive=True)) <= before


def test_every_end_of_a_worker_is_explained() -> None:
    for kind in EndKind:
        error = tasks._error(WorkerEnd(kind, message="why"), Path("lm_eval.log"))
        assert error.message == "lm-eval: why" and error.remedy
