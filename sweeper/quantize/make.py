"""A checkpoint by its recipe: from the cache, or made by a worker and looked at.

    key ──► hold ──► whole in the cache? ──────────────────────────────────────► Checkpoint
                        │ no: lock (whoever asks meanwhile waits)                    ▲
                        └► room on the disk? ─► texts ─► worker ─► product in order? ┘ renamed
                                │                          │             │
                                └──────────── Diagnosis ◄──┴─────────────┘ folder removed

What is expected to go wrong is a value; what is half-made is never seen under the key.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from sweeper.errors import ModelError, UserError
from sweeper.hardware.host import read_host
from sweeper.models.cache import build_once, hold
from sweeper.quantize import cache
from sweeper.quantize.beforehand import installed_versions, model_bytes
from sweeper.quantize.calibration import calibration_hash, write_texts
from sweeper.quantize.diagnosis import MACHINE, Circumstances, explain, unmade
from sweeper.quantize.job import Checkpoint, CheckpointJob
from sweeper.quantize.product import Fault, fault_of
from sweeper.quantize.rules import DISK_FULL
from sweeper.quantize.telling import Telling
from sweeper.quantize.tools import format_of, tool
from sweeper.toolchain.worker import EndKind, WorkerEnd, WorkerJob, run_worker
from sweeper.verdicts import Diagnosis, Verdict

FREE_MEMORY_SHARE = 0.9
TAIL_BYTES = 64 << 10
_REPORTED = ("versions", "layers", "device", "samples", "tokens")

Tell = Callable[[str], None]
Surroundings = Callable[[], AbstractContextManager[object]]


class _Unmade(Exception):  # noqa: N818 - an expected end on its way out of the cache's lock
    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.cause)
        self.diagnosis = diagnosis


def make(
    job: CheckpointJob,
    *,
    log_path: Path,
    tell: Tell,
    held_by: ExitStack | None = None,
    while_made: Surroundings = nullcontext,
) -> Checkpoint | Diagnosis:
    """Take a checkpoint from the cache, or make it.

    Args:
        job: which.
        log_path: what the worker and its environment's making print; not touched if nothing is
            made.
        tell: told in one line how far it is.
        held_by: keeps the checkpoint from being evicted until it is closed; None holds it only
            until this returns.
        while_made: entered around the worker, and only if one runs.

    Raises:
        KeyboardInterrupt, SystemExit: after the worker was ended and what it left removed.
        SweeperError: whatever `while_made` raises.
    """
    with ExitStack() as own:
        stack = own if held_by is None else held_by
        try:
            return _Making(job, log_path, tell, while_made).checkpoint(stack)
        except _Unmade as end:
            return end.diagnosis


class _Making:
    """One request for a checkpoint."""

    def __init__(
        self, job: CheckpointJob, log_path: Path, tell: Tell, while_made: Surroundings
    ) -> None:
        self._job = job
        self._tool = tool(job.recipe.tool)
        self._log_path = log_path
        self._tell = tell
        self._while_made = while_made
        self._memory_gib = job.memory_gib
        self._was_made = False

    def checkpoint(self, stack: ExitStack) -> Checkpoint:
        """Raises _Unmade if there will be none."""
        key = self._key()
        folder = cache.folder_of(self._job.cache_dir, key)
        try:
            # Held before it is looked for: no other tuner evicts it between the two.
            stack.enter_context(hold(folder))
            build = partial(self._build, key)
            manifest = build_once(folder, build, self._tell, cache.usable(key))
        except (ModelError, OSError) as problem:
            raise _Unmade(_no_cache(folder, problem)) from problem
        if self._was_made:
            self._evict(key)
        return Checkpoint(
            path=folder,
            key=key,
            size_bytes=cache.weight_bytes(manifest),
            digest=cache.content_digest(manifest),
            facts=manifest,
            reused=not self._was_made,
        )

    def _key(self) -> str:
        job = self._job
        with _calibrated():
            texts = calibration_hash(job.recipe)
        pinned = self._tool.pins
        if job.python is None:
            return cache.key_of(job, texts, pinned)
        return cache.key_of(job, texts, installed_versions(job.python, tuple(sorted(pinned))))

    def _build(self, key: str, folder: Path) -> dict[str, Any]:
        """Fill the folder; facts for its manifest."""
        job = self._job
        self._require_room(folder)
        # Beside the folder, because the manifest lists all that is in it.
        scratch = folder.with_name(f"{folder.name}-texts")
        try:
            end = self._run(folder, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if end.kind is not EndKind.DONE:
            around = Circumstances(job.recipe.tool, self._memory_gib, job.timeout_s)
            raise _Unmade(explain(end, _tail(self._log_path), around))
        self._tell("looking at what was made")
        fault = fault_of(folder, job.recipe, format_of(job.recipe).quant_method)
        if fault is not None:
            raise _Unmade(_wrong(fault, job.recipe.tool))
        self._was_made = True
        return {
            "key": key,
            "recipe": job.recipe.to_dict(),
            "model": {
                "path": job.model_path,
                "revision": job.revision,
                "digest": job.model_digest,
            },
            "seconds": round(end.seconds, 3),
            "environment_s": round(end.environment_s, 3),
            **{name: end.result[name] for name in _REPORTED if name in end.result},
        }

    def _run(self, folder: Path, scratch: Path) -> WorkerEnd:
        job, recipe = self._job, self._job.recipe
        texts = None
        if recipe.calibration is not None:
            scratch.mkdir()
            texts = scratch / "texts.jsonl"
            with _calibrated():
                write_texts(recipe, texts)
        request = {
            "model": job.model_path,
            "revision": job.revision,
            "out": str(folder),
            "method": recipe.method,
            "bits": recipe.bits,
            "group_size": recipe.group_size,
            "symmetric": recipe.symmetric,
            "act_order": recipe.act_order,
            "texts": None if texts is None else str(texts),
            "samples": recipe.calibration_samples,
            "tokens": recipe.calibration_tokens,
            "device": job.device,
            "trust_remote_code": job.trust_remote_code,
            "seed": 0,
        }
        with self._while_made():
            # Now, and not before: devices may have been waited for.
            if self._memory_gib is None:
                self._memory_gib = read_host().free_memory_gib * FREE_MEMORY_SHARE
            return run_worker(
                WorkerJob(
                    script=self._tool.script,
                    request=request,
                    log_path=self._log_path,
                    timeout_s=job.timeout_s,
                    python=job.python,
                    memory_gib=self._memory_gib,
                ),
                Telling(self._tell),
            )

    def _require_room(self, folder: Path) -> None:
        """A disk that is full after an hour's work has wasted the hour."""
        whole = model_bytes(self._job)
        if whole is None:
            return
        needed, free = cache.room_for(self._job, whole), shutil.disk_usage(folder).free
        if needed > free:
            gib = {"needed_disk_gib": needed / cache.GIB, "free_disk_gib": free / cache.GIB}
            raise _Unmade(
                unmade(
                    "disk_full",
                    Verdict.INFRA,
                    f"the checkpoint takes up to {gib['needed_disk_gib']:.1f} GiB, and "
                    f"{folder.parent} has {gib['free_disk_gib']:.1f} GiB free",
                    DISK_FULL.remedy,
                    **{name: round(value, 2) for name, value in gib.items()},
                    **MACHINE,
                )
            )

    def _evict(self, key: str) -> None:
        limit_gib = self._job.cache_limit_gib
        if limit_gib is None:
            return
        try:
            removed, size_gib = cache.keep_within(self._job.cache_dir, limit_gib, keep=key)
        except OSError as problem:
            self._tell(f"an old checkpoint could not be removed: {problem}")
            return
        if removed:
            keys = ", ".join(entry.key for entry in removed)
            self._tell(f"removed from the cache, not used for longest: {keys}")
        if size_gib > limit_gib:
            self._tell(
                f"checkpoints take {size_gib:.1f} GiB, more than quantize.cache_limit_gib="
                f"{limit_gib:g}: the rest is in use"
            )


@contextmanager
def _calibrated() -> Iterator[None]:
    """Texts that cannot be had are a fault of the recipe's."""
    try:
        yield
    except UserError as problem:
        raise _Unmade(
            unmade("calibration", Verdict.INFEASIBLE_CONFIG, problem.message, problem.remedy)
        ) from problem


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except OSError as problem:
        return f"(the log cannot be read: {problem})"


def _wrong(fault: Fault, tool_name: str) -> Diagnosis:
    verdict = Verdict.INFEASIBLE_CONFIG if fault.for_good else Verdict.UNKNOWN
    return unmade(
        "product_wrong",
        verdict,
        f"{tool_name} made a checkpoint that cannot be used: {fault.cause}",
        "take other values for the recipe, or a recipe of another tool",
    )


def _no_cache(folder: Path, problem: Exception) -> Diagnosis:
    if isinstance(problem, ModelError):
        cause, remedy = problem.message, problem.remedy
    else:
        cause = f"the checkpoint cache {folder.parent} cannot be used: {problem}"
        remedy = "make room or give write permission, or choose another folder by cache_dir=PATH"
    return unmade("checkpoint_cache", Verdict.INFRA, cause, remedy, **MACHINE)
