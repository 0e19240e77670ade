"""The `replay` engine: a table in the place of launches.

    deployment ──► row of the table ──┬──► worked: its levels, on a clock of the table's own
                                      └──► failed: the same diagnosis, after what it took then

Nothing is started, and neither the model nor the hardware need be here. A deployment that is not in
the table cannot be launched at all; see `sweeper.search.setup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sweeper.config.schema import EngineConfig
from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.levels import LevelAnswer, LevelAsk
from sweeper.engine.options import read_options
from sweeper.engine.protocol import (
    SERVED_MODEL,
    EngineFacts,
    LaunchFailure,
    LaunchRequest,
    ParameterValue,
    RunningServer,
)
from sweeper.engine.replay.options import ReplayOptions
from sweeper.engine.replay.rows import Level, Row
from sweeper.engine.replay.table import NOT_IN_TABLE, Table, not_in_table
from sweeper.errors import ConfigError
from sweeper.verdicts import Diagnosis, Phase, Verdict

EXAMPLE = (
    "for example engine.table=studies/NAME (a study of yours), or engine.table=measured.csv "
    "engine.options.group=NAME"
)
UNKNOWN = "unknown"
LEVEL_S = 30.0
"""Seconds of a load level of which neither the table nor its figures tell how long it took."""


class ReplayEngine:
    """A table of deployments.

    Args:
        cfg: `table` says which, `options` which part of it.
        cache_dir: not used.

    Raises:
        ConfigError: no table, or none that can be read.
    """

    name = "replay"
    kind = "direct"
    needs_checkpoint = False

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        self.cfg = cfg
        self.options = read_options(ReplayOptions, cfg.options)
        if not cfg.table:
            raise ConfigError("engine=replay needs a table to serve: engine.table", EXAMPLE)
        options = self.options
        self.table = Table.load(
            Path(cfg.table).expanduser(),
            group=options.group,
            batch=options.batch,
            begin=options.baseline,
        )
        self.predicted = self.table.is_predicted

    def facts(self) -> EngineFacts:
        """The table: what it holds is what a study of it is of."""
        table, contents = self.table, self.table.contents
        return EngineFacts(
            name=self.name,
            version=table.digest,
            distribution="table",
            device=UNKNOWN,
            predicted=table.is_predicted,
            details={
                SERVED_MODEL: contents.model or UNKNOWN,
                "source": table.told_source,
                "engine": contents.engine or UNKNOWN,
            },
        )

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """Nothing is sent anywhere. See `Engine.check_flags`."""
        return FlagCheck()

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """Take up a row of the table. See `Engine.serve`."""
        row = self.table.lookup(request.parameters)
        if row is None:
            raise LaunchFailure(_unknown(), virtual_s=0.0)
        start_s = self.options.start_s if row.start_s is None else row.start_s
        if row.verdict is not Verdict.OK:
            spent_s = start_s if row.total_s is None else row.total_s
            raise LaunchFailure(_as_recorded(row), virtual_s=spent_s)
        replayed = _Replayed(row, start_s)
        log_path = request.run_dir / "server.log"
        yield RunningServer(
            base_url="",
            served_name=request.served_name,
            api_key="",
            pid=0,
            ready_after_s=start_s,
            argv=(),
            effective_args={},
            learnt=row.learnt,
            is_alive=lambda: True,
            log_path=log_path,
            answer=replayed.answer,
            virtual_s=lambda: replayed.spent_s,
            quality=None if row.quality is None else lambda: row.quality or {},
        )

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Nothing runs, so nothing can die. Pure."""
        return Diagnosis(Verdict.UNKNOWN, phase, "a table cannot fail", "report this")

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Only the model: what was started stands with the table's source."""
        return {"model": model_path}, {}


class _Replayed:
    """A row while it is asked for its levels.

    Args:
        row: that worked.
        start_s: what its start took.
    """

    def __init__(self, row: Row, start_s: float) -> None:
        self._row = row
        self.spent_s = start_s

    def answer(self, ask: LevelAsk) -> LevelAnswer:
        """The row's own figures of a level. One that the table lacks costs nothing."""
        level = self._row.by_level.get((ask.kind, ask.concurrency, ask.rate_per_s))
        if level is None:
            return LevelAnswer({}, 0, 0.0, ("the table has no figures of this load level",))
        spent_s = _duration_s(level, ask)
        self.spent_s += spent_s
        return LevelAnswer(level.metrics, level.n, spent_s, level.reasons)


def _duration_s(level: Level, ask: LevelAsk) -> float:
    """As the table says; else what the requests take at the level's own throughput."""
    if level.virtual_s is not None:
        return level.virtual_s
    tokens_per_s = level.metrics.get("output_tokens_per_s")
    return ask.requests * ask.output_tokens / tokens_per_s if tokens_per_s else LEVEL_S


def _as_recorded(row: Row) -> Diagnosis:
    return Diagnosis(row.verdict, row.phase, row.cause, row.remedy, row.evidence, row.learnt)


def _unknown() -> Diagnosis:
    cause, remedy = not_in_table()
    learnt = {"rule": NOT_IN_TABLE}
    return Diagnosis(Verdict.INFEASIBLE_CONFIG, Phase.PLAN, cause, remedy, learnt=learnt)
