"""Phase quantize of a trial: made or reused, held while it is served, and a value if it fails."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.device_lock import DeviceBusyError, DeviceLock
from sweeper.engine.protocol import LaunchFailure, LaunchRequest
from sweeper.engine.runtime_folder import shared_folder
from sweeper.models.cache import is_held
from sweeper.quantize import make
from sweeper.quantize.job import CheckpointJob
from sweeper.trial import checkpoint
from sweeper.trial.progress import Event, PhaseChanged, PhaseProgress
from sweeper.trial.run import TrialResult, run_trial
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.quantize import fakes
from tests.trial.conftest import Runner, plan_in

GPU = "gpu-of-a-test"


class Events(list[Event]):
    """The events of a trial, and what is to be done at each."""

    def then(self, event: Event) -> None:
        """Replaced by a test."""

    def append(self, event: Event) -> None:
        super().append(event)
        self.then(event)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckpointJob:
    fakes.install(monkeypatch)
    return fakes.job_for(fakes.model_in(tmp_path / "model"), tmp_path / "cache")


class Refusing:
    """An engine whose servers never start; what they were to be started from is kept."""

    def __init__(self) -> None:
        self.asked: list[LaunchRequest] = []

    def serve(self, request: LaunchRequest) -> Any:
        self.asked.append(request)
        raise LaunchFailure(Diagnosis(Verdict.CAPACITY, Phase.START, "too large", "smaller"))


@pytest.fixture
def engine() -> Refusing:
    return Refusing()


@pytest.fixture
def once(tmp_path: Path, job: CheckpointJob, engine: Refusing, events: Events) -> Runner:
    """A trial as far as the start of its server, with a checkpoint that is made."""

    def run(**changes: Any) -> TrialResult:
        plan = plan_in(tmp_path, **{"to_make": job, **changes})
        return run_trial(plan, engine, events.append)  # type: ignore[arg-type]

    return run


def test_made_served_and_reused(
    once: Runner, job: CheckpointJob, tmp_path: Path, events: Events, engine: Refusing
) -> None:
    first = once(revision="r1").outcome
    made = first.manifest["made"]
    path = tmp_path / "cache" / "checkpoints" / made["key"]
    assert engine.asked[0].model_path == first.manifest["checkpoint"] == str(path)
    assert engine.asked[0].revision is None, "that is one of the model's, not of this folder's"
    assert first.manifest["checkpoint_bytes"] == (path / "model.safetensors").stat().st_size
    assert made == {
        "key": path.name,
        "recipe": fakes.RECIPE.to_dict(),
        "versions": {"fake": "1.0"},
        "made_s": made["made_s"],
        "reused": False,
        "digest": made["digest"],
    }
    assert 0 < made["made_s"] <= first.timings_s["quantize"] <= first.timings_s["total"]
    phases = [event.phase for event in events if isinstance(event, PhaseChanged)]
    assert phases == [Phase.QUANTIZE, Phase.START]
    told = [event.detail for event in events if isinstance(event, PhaseProgress)]
    assert told[-1] == "looking at what was made"

    second = once().outcome
    assert second.manifest["made"] == {**made, "reused": True}
    assert fakes.runs(Path(job.model_path)) == 1


def test_it_is_in_use_until_its_server_has_ended(
    tmp_path: Path, job: CheckpointJob, events: Events
) -> None:
    folder = tmp_path / "cache" / "checkpoints"
    seen = []

    def look() -> None:
        seen.append([is_held(path) for path in folder.glob("[!.]*")])

    class Serving:
        @contextmanager
        def serve(self, request: LaunchRequest) -> Iterator[object]:
            look()
            yield object()  # driving it ends in a fault, and that in its stop
            look()

    run_trial(plan_in(tmp_path, to_make=job), Serving(), events.append)  # type: ignore[arg-type]
    look()
    assert seen == [[True], [True], [False]]


def test_what_cannot_be_made_starts_no_server(
    once: Runner, job: CheckpointJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-of-this-test")
    say = {"then": "raise", "message": "strange, with HF_TOKEN=secret-of-this-test"}
    fakes.tell(Path(job.model_path), say)
    outcome = once().outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.UNKNOWN, Phase.QUANTIZE)
    assert "strange" in outcome.cause
    assert outcome.learnt["rule"] == "quantize_failed"
    assert outcome.launched, "it was tried, and took a launch's time"
    assert outcome.timings_s["quantize"] > 0
    assert set(outcome.timings_s) == {"quantize", "total"}
    assert "made" not in outcome.manifest
    assert sorted(os.listdir(tmp_path / "run")) == ["quantize.log"]  # noqa: PTH208
    log = tmp_path / "run" / "quantize.log"
    assert "RuntimeError: strange" in log.read_text()
    assert "secret-of-this-test" not in log.read_text() + str(outcome.to_dict())
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_fault_of_ours_is_one_of_the_trial(
    once: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("sweeper.quantize.make.run_worker", breaks)
    outcome = once().outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.UNKNOWN, Phase.QUANTIZE)
    assert "ZeroDivisionError: ours" in outcome.cause
    assert outcome.learnt["rule"] == "quantize_failed"
    assert "ours" in (tmp_path / "run" / "error.txt").read_text()
    assert list((tmp_path / "cache" / "checkpoints").glob("[!.]*")) == []


def test_ctrl_c_while_it_is_made(
    once: Runner, job: CheckpointJob, tmp_path: Path, events: Events
) -> None:
    fakes.tell(Path(job.model_path), {"takes_s": 60})

    def interrupt(event: Event) -> None:
        if isinstance(event, PhaseProgress):
            raise KeyboardInterrupt

    events.then = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        once()
    assert list((tmp_path / "cache" / "checkpoints").glob("[!.]*")) == []


def test_on_a_gpu_it_waits_for_the_devices_as_a_launch_does(
    once: Runner, job: CheckpointJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "devices_of", lambda kind, environment: (GPU,))
    taken = DeviceLock([GPU], shared_folder(), {"study": "other"})
    taken.acquire(0, print)
    try:
        outcome = once(to_make=replace(job, device="cuda"), device_wait_s=0.1).outcome
        assert (outcome.verdict, outcome.phase) == (Verdict.INFRA, Phase.QUANTIZE)
        assert f"device {GPU} is in use by" in outcome.cause
        assert outcome.learnt["scope"] == "machine"
        assert not (tmp_path / "run" / "quantize.log").exists()
        # On the CPU no device is waited for.
        assert once(device_wait_s=0.1).outcome.phase == Phase.START
    finally:
        taken.release()
    busy = []
    again = replace(job, device="cuda", model_digest="d2")
    plain = make.run_worker

    def looks(*arguments: Any) -> Any:
        busy.append(_is_taken())
        return plain(*arguments)

    monkeypatch.setattr(make, "run_worker", looks)
    assert once(to_make=again).outcome.phase == Phase.START
    assert busy == [True]
    assert not _is_taken()


def _is_taken() -> bool:
    lock = DeviceLock([GPU], shared_folder(), {})
    try:
        lock.acquire(0, print)
    except DeviceBusyError:
        return True
    lock.release()
    return False


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_no_device_is_held_where_there_is_no_gpu(
    job: CheckpointJob, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "read_driver", lambda: None)
    assert checkpoint._devices(replace(job, device=device)) == ()


def test_the_size_of_what_is_served_is_noted_where_it_is_here(once: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"w" * 100)
    assert once(to_make=None, checkpoint=str(folder)).outcome.manifest["checkpoint_bytes"] == 100
    gguf = folder / "model.gguf"
    gguf.write_bytes(b"g" * 50)
    assert once(to_make=None, checkpoint=str(gguf)).outcome.manifest["checkpoint_bytes"] == 50
    assert "checkpoint_bytes" not in once(to_make=None, checkpoint="org/none").outcome.manifest
