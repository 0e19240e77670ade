"""A checkpoint from its recipe, by the real runner of workers and a tool that is a small script."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper.errors import EngineError
from sweeper.quantize import make as making
from sweeper.quantize.cache import FOLDER, GIB, entries
from sweeper.quantize.job import Checkpoint, CheckpointJob
from sweeper.quantize.make import make
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.quantize import fakes

CAPACITY, INFEASIBLE, INFRA = Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.INFRA


class Bench:
    """One cache and one model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.model = fakes.model_in(folder / "model")
        self.log_path = folder / "run" / "quantize.log"
        self.said: list[str] = []

    def job(self, **changes: Any) -> CheckpointJob:
        return fakes.job_for(self.model, self.cache, **changes)

    def make(self, job: CheckpointJob | None = None, **options: Any) -> Checkpoint | Diagnosis:
        options = {"tell": self.said.append, **options}
        return make(job or self.job(), log_path=self.log_path, **options)

    def made(self, job: CheckpointJob | None = None, **options: Any) -> Checkpoint:
        found = self.make(job, **options)
        assert isinstance(found, Checkpoint), found
        return found

    def unmade(self, say: dict[str, Any], **changes: Any) -> Diagnosis:
        """The diagnosis; that nothing is left of the attempt is checked."""
        fakes.tell(self.model, say)
        found = self.make(self.job(**changes))
        assert isinstance(found, Diagnosis)
        assert found.phase == Phase.QUANTIZE
        assert found.cause and "\n" not in found.cause and found.remedy and found.learnt["rule"]
        assert self.folders() == []
        return found

    def folders(self) -> list[str]:
        root = self.cache / FOLDER
        return (
            sorted(path.name for path in root.iterdir() if path.is_dir()) if root.exists() else []
        )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    fakes.install(monkeypatch)
    return Bench(tmp_path)


def test_made_once_and_then_reused(bench: Bench) -> None:
    first, second = bench.made(), bench.made()
    assert fakes.runs(bench.model) == 1
    assert (first.reused, second.reused) == (False, True)
    assert replace(first, reused=True) == second
    assert first.path == bench.cache / FOLDER / first.key
    assert first.size_bytes == (first.path / "model.safetensors").stat().st_size
    assert len(first.digest) == 32
    assert first.facts["versions"] == {"fake": "1.0"}
    assert first.facts["recipe"] == fakes.RECIPE.to_dict()
    assert first.facts["seconds"] > 0
    assert bench.said == [
        "load",
        "layers 2 of 2",
        "looking at what was made",
    ]
    # Nothing but the checkpoint is in the cache, and nothing of the work in the checkpoint.
    assert bench.folders() == [first.key]
    assert not (first.path / "half.bin").exists()
    assert "name" not in str(first.key)
    named = bench.made(bench.job(recipe=replace(fakes.RECIPE, name="other")))
    assert (named.key, named.reused) == (first.key, True)


def test_the_worker_is_told_everything(bench: Bench) -> None:
    recipe = replace(
        fakes.RECIPE, calibration="builtin", calibration_samples=3, calibration_tokens=32
    )
    bench.made(bench.job(recipe=recipe, revision="r1", trust_remote_code=True))
    asked = json.loads((bench.model / "request.json").read_text())
    assert Path(asked.pop("out")).parent == bench.cache / FOLDER
    assert not Path(asked.pop("texts")).exists()
    assert all(json.loads(line)["text"] for line in open(bench.model / "texts.txt"))  # noqa: PTH123, SIM115
    assert asked == {
        "model": str(bench.model),
        "revision": "r1",
        "method": "W4A16",
        "bits": 4,
        "group_size": 64,
        "symmetric": True,
        "act_order": None,
        "samples": 3,
        "tokens": 32,
        "device": "cpu",
        "trust_remote_code": True,
        "seed": 0,
    }


def make_elsewhere(folder: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fakes.install(patch)
        bench = Bench.__new__(Bench)
        root = Path(folder)
        bench.cache, bench.model, bench.said = root / "cache", root / "model", []
        bench.log_path = root / f"{os.getpid()}.log"
        assert isinstance(bench.make(), Checkpoint)
        (root / f"{os.getpid()}.said").write_text("\n".join(bench.said))


def start(bench: Bench) -> multiprocessing.Process:
    process = multiprocessing.get_context("spawn").Process(
        target=make_elsewhere, args=(str(bench.folder),)
    )
    process.start()
    return process  # type: ignore[return-value]


def until(holds: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_tuners_at_once_make_it_once(bench: Bench) -> None:
    fakes.tell(bench.model, {"takes_s": 1.0})
    other = start(bench)
    until(lambda: fakes.runs(bench.model) == 1)
    found = bench.made()
    other.join(60)
    assert other.exitcode == 0
    assert fakes.runs(bench.model) == 1
    assert found.reused
    assert any("another sweeper is making" in line for line in bench.said)


def test_kill_nine_in_the_middle_leaves_nothing_that_is_loaded(bench: Bench) -> None:
    fakes.tell(bench.model, {"takes_s": 60})
    tuner = start(bench)
    until(lambda: any((bench.cache / FOLDER).glob("*.partial-*/half.bin")))
    worker = int((bench.model / "runs.txt").read_text())
    tuner.kill()
    tuner.join(60)
    until(lambda: not psutil.pid_exists(worker))
    assert [entry.state for entry in entries(bench.cache)] == ["unfinished"]

    fakes.tell(bench.model, {})
    found = bench.made()
    assert not found.reused
    assert bench.folders() == [found.key]
    assert not (found.path / "half.bin").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: (m / "model.safetensors").unlink(),
        lambda m: os.truncate(m / "model.safetensors", 20),
        lambda m: (m / "config.json").write_bytes((m / "config.json").read_bytes()[::-1]),
    ],
)
def test_what_is_damaged_is_made_again(bench: Bench, damage: Callable[[Path], Any]) -> None:
    first = bench.made()
    damage(first.path)
    again = bench.made()
    assert not again.reused
    assert fakes.runs(bench.model) == 2
    assert again.digest == first.digest
    assert bench.made().reused


def test_a_whole_checkpoint_under_the_name_of_another_is_not_loaded(bench: Bench) -> None:
    first, second = bench.made(), bench.made(bench.job(model_digest="d2"))
    shutil.rmtree(first.path)
    second.path.rename(first.path)
    assert not bench.made().reused


@pytest.mark.parametrize(
    ("say", "verdict", "rule", "says"),
    [
        (
            {"then": "error", "kind": "no_cuda", "message": "it wants a GPU"},
            INFEASIBLE,
            "no_cuda",
            "it wants a GPU",
        ),
        (
            {"then": "raise", "message": "strange"},
            Verdict.UNKNOWN,
            "quantize_failed",
            "RuntimeError: strange",
        ),
        ({"then": "die"}, CAPACITY, "quantize_memory", "killed"),
        (
            {"then": "die", "signal": 11, "message": "ValueError: gemma9 isn't supported yet."},
            INFEASIBLE,
            "architecture_not_quantizable",
            "gemma9",
        ),
        ({"bits": 8}, INFEASIBLE, "product_wrong", "bits 8, asked for was 4"),
        ({"infinite": True}, INFEASIBLE, "product_wrong", "not finite"),
        ({"cut_off": True}, Verdict.UNKNOWN, "product_wrong", "its table says"),
    ],
)
def test_what_goes_wrong_is_a_value(
    bench: Bench, say: dict[str, Any], verdict: Verdict, rule: str, says: str
) -> None:
    found = bench.unmade(say)
    assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
    assert says in found.cause


def test_it_is_ended_when_its_time_is_over(bench: Bench) -> None:
    found = bench.unmade({"takes_s": 60}, timeout_s=1.0)
    assert (found.verdict, found.learnt["rule"]) == (INFRA, "quantize_timeout")
    worker = int((bench.model / "runs.txt").read_text())
    assert not psutil.pid_exists(worker)


def test_an_interpreter_that_is_none(bench: Bench) -> None:
    found = bench.unmade({}, python="/no/such/python")
    assert (found.verdict, found.learnt["rule"]) == (INFRA, "no_environment")
    assert "/no/such/python" in found.cause


def test_no_room_on_the_disk_is_known_before_it_begins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.model / "model.safetensors").write_bytes(b"w" * 1000)
    usage = shutil.disk_usage(bench.folder)._replace(free=400)
    monkeypatch.setattr(making.shutil, "disk_usage", lambda path: usage)
    found = bench.unmade({})
    assert (found.verdict, found.learnt["rule"]) == (INFRA, "disk_full")
    assert found.learnt["scope"] == "machine"
    assert "GiB free" in found.cause
    assert fakes.runs(bench.model) == 0


def test_a_cache_that_cannot_be_written(bench: Bench) -> None:
    bench.cache.write_text("not a folder")
    found = bench.make()
    assert isinstance(found, Diagnosis)
    assert (found.verdict, found.learnt["rule"]) == (INFRA, "checkpoint_cache")
    assert "cache_dir" in found.remedy


def test_texts_that_are_not_there(bench: Bench) -> None:
    recipe = replace(fakes.RECIPE, calibration="/no/texts.txt", calibration_samples=1)
    found = bench.unmade({}, recipe=recipe)
    assert (found.verdict, found.learnt["rule"]) == (INFEASIBLE, "calibration")
    assert "/no/texts.txt" in found.cause


def test_old_checkpoints_go_when_the_cache_is_over_its_limit(bench: Bench) -> None:
    limit = {"cache_limit_gib": 100 / GIB}
    first = bench.made()
    with ExitStack() as launch:
        bench.made(bench.job(model_digest="d2"), held_by=launch)
        third = bench.made(bench.job(model_digest="d3", **limit))
        assert first.key not in bench.folders()
        assert len(bench.folders()) == 2, "what is in use, and what was just made"
        assert any(f"not used for longest: {first.key}" in line for line in bench.said)
        assert "the rest is in use" in bench.said[-1]
    bench.made(bench.job(model_digest="d3", **limit))
    assert len(bench.folders()) == 2, "only a build makes room"
    fourth = bench.made(bench.job(model_digest="d4", **limit))
    assert bench.folders() == [fourth.key]
    assert third.key != fourth.key


def test_ctrl_c_ends_the_worker_and_leaves_nothing(bench: Bench) -> None:
    fakes.tell(bench.model, {"takes_s": 60})

    def interrupt(line: str) -> None:
        if line == "load":
            until(lambda: fakes.runs(bench.model) == 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.make(tell=interrupt)
    worker = int((bench.model / "runs.txt").read_text())
    assert not psutil.pid_exists(worker)
    assert bench.folders() == []
    assert not any(entry.in_use for entry in entries(bench.cache))


def test_surroundings_are_there_while_a_worker_runs_and_only_then(bench: Bench) -> None:
    seen = []

    @contextmanager
    def surroundings() -> Iterator[None]:
        seen.append(("in", fakes.runs(bench.model)))
        yield
        seen.append(("out", fakes.runs(bench.model)))

    bench.made(while_made=surroundings)
    bench.made(while_made=surroundings)
    assert seen == [("in", 0), ("out", 1)]

    def refuses() -> Any:
        raise EngineError("busy", "wait")

    with pytest.raises(EngineError, match="busy"):
        bench.make(bench.job(model_digest="d2"), while_made=refuses)
    assert len(bench.folders()) == 1


def test_with_an_interpreter_of_its_user_its_versions_count(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"fake": "1.0"}
    monkeypatch.setattr(making, "installed_versions", lambda python, names: told)
    first = bench.made()
    told["fake"] = "1.1"
    assert not bench.made().reused
    told["fake"] = "1.0"
    assert bench.made().key == first.key


def test_a_terminated_tuner_is_as_one_that_was_interrupted(bench: Bench) -> None:
    """SystemExit, which a signal's handler may raise, passes too."""
    fakes.tell(bench.model, {"takes_s": 60})

    def terminate(line: str) -> None:
        if line == "load":
            until(lambda: fakes.runs(bench.model) == 1)
            signal.raise_signal(signal.SIGUSR1)

    def leave(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with pytest.raises(SystemExit):
            bench.make(tell=terminate)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert bench.folders() == []
