"""Has `gguf_worker` run in the engine's interpreter and turns its end into versions or an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sweeper.errors import ModelError
from sweeper.toolchain.worker import EndKind, WorkerEnd, WorkerJob, run_worker

_WORKER = Path(__file__).with_name("gguf_worker.py")
_TIMEOUT_S = 1200.0
_LOG_LINES = 12


def convert_gguf(
    gguf: Path, target: Path, *, python: str, progress: Callable[[str], None]
) -> dict[str, str]:
    """Write `target` (an existing folder) as bf16 safetensors of the model in `gguf`.

    Args:
        gguf: the file to read; the worker's log is written beside it.
        target: filled with config.json, weights and tokenizer.
        python: interpreter with torch, transformers, gguf and accelerate.
        progress: told in one line what happens.

    Returns:
        Versions of the libraries that did it.

    Raises:
        ModelError: a library is missing, or the conversion failed or took too long.
    """

    def tell(event: Mapping[str, Any]) -> None:
        if event["event"] == "phase":
            progress(f"converting the embedded model: {event['name']}")

    job = WorkerJob(
        script=_WORKER,
        request={"folder": str(gguf.parent), "file": gguf.name, "target": str(target)},
        log_path=gguf.parent / "convert.log",
        timeout_s=_TIMEOUT_S,
        python=python,
        # The file is at hand, so a hub must not be asked about it.
        env={"HF_HUB_OFFLINE": "1"},
    )
    end = run_worker(job, tell)
    if end.kind is not EndKind.DONE:
        raise _failure(end, job)
    return {str(name): str(version) for name, version in end.result["versions"].items()}


def _failure(end: WorkerEnd, job: WorkerJob) -> ModelError:
    if end.kind is EndKind.NO_ENVIRONMENT:
        return ModelError(
            end.message,
            "name one that exists by engine.python=PATH, or leave it out to use the tuner's own",
        )
    if end.error == "missing":
        return ModelError(
            f"{job.python} cannot convert the embedded model: {end.message}",
            "run `make setup`, or install sweeper with an engine: pip install 'sweeper[cpu]' "
            "(or 'sweeper[vllm]' with an NVIDIA GPU); or use a model folder by model.path=PATH",
        )
    tail = "\n".join(job.log_path.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    return ModelError(
        f"the embedded model could not be converted: {_CAUSES.get(end.kind, end.message)}\n"
        f"{tail}".rstrip(),
        "free about 2 GiB of memory and try again; or use a model folder by model.path=PATH",
    )


_CAUSES = {
    EndKind.DIED: "the converter ended without an answer (out of memory or killed?)",
    EndKind.TIMED_OUT: "the converter was ended after its time limit, without an answer",
}
