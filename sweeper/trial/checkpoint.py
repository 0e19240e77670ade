"""Phase quantize of a trial: the checkpoint of its deployment, there before a server starts.

No device is held while one is made on the CPU, or waited for. A tool that works on the GPU takes
the devices as a launch would, so that it does not disturb what another tuner measures there.

A checkpoint that cannot be made ends the trial without a server. It counts as a launch all the
same: it was tried for real, took as long as one or longer, and is retried and learnt from likewise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeper.engine import runtime_folder
from sweeper.engine.device_lock import DeviceLock
from sweeper.engine.devices import CPU, VISIBLE, devices_of
from sweeper.engine.sealed_log import create_log, seal
from sweeper.errors import EngineError, ModelError
from sweeper.hardware.nvidia import read_driver
from sweeper.models.hub import cached_snapshot, is_hub_id
from sweeper.models.weights import size_bytes, weight_files
from sweeper.quantize.diagnosis import MACHINE, unmade
from sweeper.quantize.job import Checkpoint, CheckpointJob
from sweeper.quantize.make import make
from sweeper.trial import failures
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import PhaseProgress
from sweeper.trial.state import TrialState
from sweeper.verdicts import Diagnosis, Phase, Verdict

LOG_NAME = "quantize.log"


def obtain(state: TrialState, stack: ExitStack) -> Diagnosis | None:
    """Make the plan's checkpoint, or take it from the cache, and have it served.

    Args:
        state: its plan is replaced by one that serves the checkpoint.
        stack: keeps the checkpoint from being evicted until it is closed.

    Returns:
        Why there is none; None if all is well, or nothing is to be made.
    """
    job = state.plan.to_make
    if job is None:
        return None
    try:
        with state.during(Phase.QUANTIZE, job.recipe.name):
            found = make(
                job,
                log_path=state.plan.run_dir / LOG_NAME,
                tell=lambda text: _tell(state, text),
                held_by=stack,
                while_made=lambda: _surroundings(state, job),
            )
    except EngineError as problem:
        return unmade("quantize_place", Verdict.INFRA, problem.message, problem.remedy, **MACHINE)
    except Exception as problem:
        ours = failures.unexpected(problem, state)
        return replace(ours, learnt={"rule": "quantize_failed", **ours.learnt})
    if isinstance(found, Diagnosis):
        return found
    state.plan = replace(state.plan, checkpoint=str(found.path), revision=None)
    state.manifest.update(checkpoint=str(found.path), made=_made(found))
    return None


def note_bytes(state: TrialState) -> None:
    """Note how large the served weights are, if they are on this machine.

    Called at the end: an engine may have downloaded them meanwhile.
    """
    size = _bytes_served(state.plan) if "checkpoint" in state.manifest else None
    if size is not None:
        state.manifest["checkpoint_bytes"] = size


def _bytes_served(plan: TrialPlan) -> int | None:
    path = Path(plan.checkpoint)
    try:
        if path.is_file():
            return path.stat().st_size
        folder: Path | None = path
        if not path.is_dir():
            is_known = is_hub_id(plan.checkpoint)
            folder = cached_snapshot(plan.checkpoint, plan.revision) if is_known else None
        return None if folder is None else size_bytes(weight_files(folder))
    except (ModelError, OSError):
        return None


def _made(found: Checkpoint) -> dict[str, Any]:
    """What the manifest says of a checkpoint that was made here."""
    return {
        "key": found.key,
        "recipe": dict(found.facts.get("recipe", {})),
        "versions": dict(found.facts.get("versions", {})),
        "made_s": found.facts.get("seconds"),
        "reused": found.reused,
        "digest": found.digest,
    }


def _tell(state: TrialState, text: str) -> None:
    state.listener(PhaseProgress(state.plan.number, Phase.QUANTIZE, text))


@contextmanager
def _surroundings(state: TrialState, job: CheckpointJob) -> Iterator[None]:
    """What a worker needs around it: devices that are its own, and a log that is private.

    Raises:
        EngineError: another tuner's launch holds a device, and did not let it go in time; or the
            log cannot be written.
    """
    run_dir = state.plan.run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    log_path = run_dir / LOG_NAME
    study = "" if state.plan.record_path is None else state.plan.record_path.parent.name
    devices = _devices(job)
    folder = runtime_folder.shared_folder() if devices else run_dir
    lock = DeviceLock(devices, folder, {"study": study} if study else {})
    lock.acquire(state.plan.device_wait_s, lambda text: _tell(state, text))
    try:
        _new_log(log_path)
        yield
    finally:
        lock.release()
        seal(log_path)


def _new_log(path: Path) -> None:
    try:
        create_log(path).close()
    except OSError as problem:
        raise EngineError(
            f"the log {path} cannot be written: {problem}",
            "free disk space, or make the study's folder writable",
        ) from problem


def _devices(job: CheckpointJob) -> tuple[str, ...]:
    """Devices that a tool would use: the GPUs it can see; none on the CPU, which is shared."""
    if job.device == CPU or (job.device == "auto" and read_driver() is None):
        return ()
    return devices_of("cuda", {VISIBLE: os.environ[VISIBLE]} if VISIBLE in os.environ else {})
