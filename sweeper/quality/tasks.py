"""lm-eval's tasks against a server that runs, asked by a worker in an environment of its own.

    names, limits ──▶ workers/run_lm_eval.py ──/v1/completions──▶ the deployment's server
                              │
    TaskScore by name ◀───────┘   change against the reference, see `sweeper.quality.task_scores`

The worker's interpreter is `quality.python` if given; else the tuner's own, where lm-eval can be
imported (the extra `quality`); else the worker's own environment, made once by uv. It runs in a
session of its own: Ctrl-C ends it, and a server that died ends it by its refused requests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sweeper.config.schema import QualityConfig
from sweeper.errors import ConfigError
from sweeper.load.address import ServerAddress
from sweeper.quality.asking import NAN_ANSWER, BrokenOutputError, QualityUnavailableError
from sweeper.quality.part import PartJob, PartResult
from sweeper.quality.reference import LONGEST_TOKENS
from sweeper.quality.task_files import local_tasks, need_no_network
from sweeper.quality.task_scores import TaskScore
from sweeper.toolchain.worker import EndKind, WorkerEnd, WorkerJob, run_worker

WORKER = Path(__file__).with_name("workers") / "run_lm_eval.py"
LOG = "lm_eval.log"
CONCURRENCY = 4
"""Requests at a time, as for agreement: enough to keep a server busy that reads prompts, and few
enough for the smallest `max_num_seqs`. Fixed, because the batch a request falls into can change
the last bits of its answer, and so all deployments are asked alike."""
SEED = 1234
"""lm-eval's own; of the examples drawn for few-shot prompts."""
TELL_EVERY_S = 30.0

_SEE_LOG = "see {log}"
_LONGER = "raise quality.tasks_timeout_s, or ask fewer questions: quality.task_limit=100"
_BY_KIND: Mapping[EndKind, str] = {
    EndKind.TIMED_OUT: _LONGER,
    EndKind.DIED: _SEE_LOG,
    EndKind.OUT_OF_MEMORY: _SEE_LOG,
    EndKind.NO_ENVIRONMENT: "install lm-eval beside sweeper (pip install 'sweeper[quality]'), or "
    "name an interpreter that has it by quality.python=PATH",
}
# What the worker says itself → what helps.
_BY_ERROR: Mapping[str, str] = {
    "unknown_task": "quality.tasks takes names of lm-eval's tasks, groups and tags, and of task "
    "files in quality.tasks_path=FOLDER",
    "network": "connect this machine to the hub, or fetch the data on one that is and copy its "
    "HF_HOME; tasks with data in files need no network: quality.tasks_path=FOLDER",
    "server": "the server must answer /v1/completions with echo and logprobs in time "
    "(quality.request_timeout_s); read its log",
    "missing": "install it there (pip install 'lm-eval[api]' transformers), or leave "
    "quality.python out",
    "unsupported": "choose another task; the whole story is in {log}",
}
_BAD_INPUT = frozenset({"unknown_task", "unsupported"})


@dataclass(frozen=True)
class Evaluation:
    """What a run of all tasks gave.

    Attributes:
        scores: by the name that was asked for.
        longest_tokens: room that the longest request took, its answer included.
        versions: of lm-eval and what it rests on.
    """

    scores: dict[str, TaskScore]
    longest_tokens: int
    versions: dict[str, str]


def measure(job: PartJob) -> PartResult:
    """Put the tasks to the server; compare with what the reference answered, if that is kept.

    Raises:
        QualityUnavailableError: see `evaluate`.
        BrokenOutputError: likewise.
    """
    tokenizer = Tokenizer(job.tokenizer, job.revision, job.trust_remote_code)
    evaluation = evaluate(job.server, job.config, tokenizer, job.run_dir / LOG, job.tell)
    own = evaluation.scores
    if job.kept is not None:
        own = {name: TaskScore.read(told) for name, told in job.kept["tasks"].items()}
    return PartResult(
        {name: score.found(own.get(name)) for name, score in evaluation.scores.items()},
        {
            "tasks": {name: score.kept() for name, score in evaluation.scores.items()},
            "versions": evaluation.versions,
            LONGEST_TOKENS: evaluation.longest_tokens,
        },
    )


@dataclass(frozen=True)
class Tokenizer:
    """Where the tokenizer is.

    Attributes:
        path: folder or hub id.
        revision: on a hub, or None.
        trust_remote_code: whether it may run code of its own.
    """

    path: str
    revision: str | None = None
    trust_remote_code: bool = False

    @property
    def folder(self) -> Path | None:
        """Where it lies on this machine; None if it has to be asked of the hub."""
        path = Path(self.path).expanduser()
        return path.resolve() if path.is_dir() else None


def evaluate(
    address: ServerAddress,
    cfg: QualityConfig,
    tokenizer: Tokenizer,
    log_path: Path,
    tell: Callable[[str], None],
) -> Evaluation:
    """Run `quality.tasks` and wait for their scores.

    Args:
        address: the server, without other load.
        cfg: `quality.*`.
        tokenizer: of the model; requests are sent as token ids.
        log_path: what the worker prints; appended to.
        tell: says one line of progress, every half a minute at most.

    Raises:
        QualityUnavailableError: no scores, with the cause and what helps: a task that is not known,
            data that is not here, a server that refuses or is too slow, a worker that died.
        BrokenOutputError: the server answers with log-probabilities that are not numbers.
    """
    end = run_worker(_job(address, cfg, tokenizer, log_path), _Teller(tell))
    if end.kind is not EndKind.DONE:
        raise _error(end, log_path)
    result = end.result
    try:
        scores = {name: TaskScore.read(result["tasks"][name]) for name in cfg.tasks}
        return Evaluation(scores, int(result["longest_tokens"]), dict(result["versions"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QualityUnavailableError(
            f"lm-eval's scores cannot be used: {error!r}", remedy=_SEE_LOG.format(log=log_path)
        ) from error


def prepare(cfg: QualityConfig, model: str, folder: Path, tell: Callable[[str], None]) -> None:
    """Have environment, tasks and data on this machine, before a server is started for them.

    Args:
        cfg: `quality.*`.
        model: folder or hub id of the model.
        folder: takes the log.
        tell: says one line of progress.

    Raises:
        ConfigError: a task that is not known, or cannot be read.
        QualityUnavailableError: no environment, or no way to the data.
    """
    tell("lm-eval's tasks are looked up")
    end = run_worker(_job(None, cfg, Tokenizer(model), folder / LOG), _Teller(tell))
    if end.kind is EndKind.DONE:
        return
    error = _error(end, folder / LOG)
    if end.error in _BAD_INPUT:
        raise ConfigError(f"quality.tasks: {end.message}", error.remedy)
    raise error


def _job(
    address: ServerAddress | None, cfg: QualityConfig, tokenizer: Tokenizer, log_path: Path
) -> WorkerJob:
    folder = None if cfg.tasks_path is None else Path(cfg.tasks_path).expanduser().resolve()
    # Set even if there is none: the user's key of another service must not reach this server.
    env = {"OPENAI_API_KEY": (address.api_key if address else None) or ""}
    if folder is not None and tokenizer.folder is not None:
        files = local_tasks(folder)
        if need_no_network(cfg.tasks, files, folder):
            env |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return WorkerJob(
        script=WORKER,
        request={
            "base_url": address.base_url if address else None,
            "served_name": address.model if address else None,
            "tokenizer": str(tokenizer.folder or tokenizer.path),
            "revision": tokenizer.revision,
            "trust_remote_code": tokenizer.trust_remote_code,
            "tasks": list(cfg.tasks),
            "tasks_path": None if folder is None else str(folder),
            "limit": cfg.task_limit,
            "few_shot": cfg.few_shot,
            "concurrency": CONCURRENCY,
            "request_timeout_s": cfg.request_timeout_s,
            "seed": SEED,
        },
        log_path=log_path,
        timeout_s=cfg.tasks_timeout_s,
        python=cfg.python or _own_python(),
        env=env,
    )


def _own_python() -> str | None:
    """The tuner's own interpreter if it has lm-eval and a tokenizer for it, else None."""
    has_it = find_spec("lm_eval") is not None and find_spec("transformers") is not None
    return sys.executable if has_it else None


class _Teller:
    """Turns a worker's events into a line now and then."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next_s = time.monotonic() + TELL_EVERY_S

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "phase" and event["name"] == "environment":
            self._tell("lm-eval's environment is made, once; that takes a minute")
        elif event["event"] == "progress" and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + TELL_EVERY_S
            self._tell(f"lm-eval: {event['done']} of {event['of']} {event['what']}")


def _error(end: WorkerEnd, log_path: Path) -> QualityUnavailableError:
    """A worker's end that is no result."""
    if NAN_ANSWER in end.message:
        return BrokenOutputError(end.message)
    remedy = _BY_ERROR.get(end.error) or _BY_KIND.get(end.kind, _SEE_LOG)
    return QualityUnavailableError(f"lm-eval: {end.message}", remedy=remedy.format(log=log_path))
