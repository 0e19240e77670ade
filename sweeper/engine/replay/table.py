"""Tables of measured (or predicted) deployments: load, look up, and the space they span.

    file ──► reader by its form ──► rows ──► baseline, space, ladder
                                      └────► lookup: deployment → row, a dictionary's access

Forms: a CSV of measured rows (`silicon`), a study's folder or `trials.jsonl` (`journal`), one
deployment a line (`deployments`), one simulated point a line (`simulated`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.engine.replay.contents import Contents
from sweeper.engine.replay.deployments import DEPLOYMENT, HEADER, read_deployments
from sweeper.engine.replay.derived import derived_space
from sweeper.engine.replay.journal import NUMBER, TRIALS_FILE, read_journal
from sweeper.engine.replay.lines import READABLE, digest_of, json_lines, text_of
from sweeper.engine.replay.rows import Deployment, LevelKey, Row, key_of, metrics_of
from sweeper.engine.replay.silicon import LEVEL, read_silicon
from sweeper.engine.replay.simulated import KEYS, read_simulated
from sweeper.engine.replay.usual import most_usual
from sweeper.errors import ConfigError
from sweeper.redaction import shown
from sweeper.space.canonical import baseline, canonical, contains, size
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from sweeper.verdicts import Verdict

NOT_IN_TABLE = "not_in_table"


@dataclass(frozen=True)
class Table:
    """Deployments and what came of them. Built by `Table.load`.

    Attributes:
        path: where it was read.
        digest: 12 hex digits of its content.
        contents: as read.
        baseline: the row where a search begins.
        space: the parameters of its deployments, their values and conditions.
    """

    path: Path
    digest: str
    contents: Contents
    baseline: Row
    space: SpaceConfig

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        group: str = "",
        batch: str = LEVEL,
        begin: Mapping[str, Any] | None = None,
    ) -> Table:
        """Read a table, whatever its form.

        Args:
            path: a file, or a study's folder.
            group: of a CSV of measured rows: which rows, see `silicon`.
            batch: of such a CSV: whether a batch size is a load ``level`` or a ``parameter``.
            begin: parameters of the deployment that is the baseline; None takes the source's own,
                or else the most usual one.

        Raises:
            ConfigError: it cannot be read, holds nothing that worked, or lacks such a baseline.
        """
        given = Path(path)
        file = given / TRIALS_FILE if given.is_dir() else given
        contents = _printable(_read(file, group, batch))
        if not any(row.verdict is Verdict.OK and row.levels for row in contents.rows):
            raise ConfigError(f"engine.table={path} holds no deployment that worked", READABLE)
        first = _baseline(contents, begin or {})
        space = None if begin else contents.space
        if space is None:
            space = derived_space([row.deployment for row in contents.rows], first.deployment)
        return cls(file, digest_of(file), contents, first, space)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every deployment, in the order of the file."""
        return self.contents.rows

    @property
    def is_predicted(self) -> bool:
        """True if a model gave the figures and no launch did."""
        return self.contents.is_predicted

    def lookup(self, deployment: Deployment) -> Row | None:
        """The row of a canonical deployment, None if the table has none."""
        return self._by_deployment.get(key_of(deployment))

    def refusal(self, deployment: Deployment) -> tuple[str, str, str] | None:
        """(rule, cause, remedy) of what cannot be launched, because nobody measured it.

        None if the table has the deployment, and its own study launched it.
        """
        row = self.lookup(deployment)
        if row is None:
            return NOT_IN_TABLE, *not_in_table()
        if not row.launched:
            # The cause is its study's; the rule is not, because nothing here can take it back.
            return NOT_IN_TABLE, row.cause, row.remedy
        return None

    @cached_property
    def launchable(self) -> tuple[Deployment, ...]:
        """All deployments that can be launched, in the order of the file."""
        return tuple(row.deployment for row in self.rows if row.launched)

    def within(self, space: Space) -> Space:
        """A space whose only deployments are those of this table.

        Raises:
            ConfigError: it has none of them.
        """
        inside = [deployment for deployment in self.launchable if contains(space, deployment)]
        if not inside:
            raise ConfigError(
                f"space={space.name} has none of the {len(self.rows)} deployments of "
                f"{self.contents.source}",
                "leave the space to the table (space=table), or give parameters that it has: "
                + ", ".join(sorted({name for one in self.launchable for name in one})),
            )
        if len(inside) == size(space):
            return space
        return replace(space, listed=tuple(dict(sorted(one.items())) for one in inside))

    @cached_property
    def _by_deployment(self) -> Mapping[frozenset[tuple[str, Any]], Row]:
        return {key_of(row.deployment): row for row in self.rows}

    @cached_property
    def ladder(self) -> tuple[LevelKey, ...]:
        """Load levels of the kind that most rows have, from light to heavy."""
        keys = [level.key for row in self.rows for level in row.levels]
        kinds = [kind for kind, _, _ in keys]
        kind = max(dict.fromkeys(kinds), key=kinds.count)
        return tuple(
            sorted({key for key in keys if key[0] == kind}, key=lambda key: key[1] or key[2] or 0)
        )

    @cached_property
    def metrics(self) -> frozenset[str]:
        """Names of all metrics that a valid level has."""
        return metrics_of(self.rows)

    @property
    def has_quality(self) -> bool:
        """Whether every deployment that worked has figures of its output."""
        return all(row.quality is not None for row in self.rows if row.verdict is Verdict.OK)

    @property
    def told_source(self) -> str:
        """Where its figures come from, one phrase: ``measured elsewhere``, or predicted."""
        by = "" if self.contents.engine is None else f" with {self.contents.engine}"
        how = "predicted, not measured" if self.is_predicted else "measured elsewhere"
        return f"replayed from {self.contents.source}: {how}{by}"


def _read(file: Path, group: str, batch: str) -> Contents:
    text = text_of(file)
    if file.name.endswith(".csv"):
        return read_silicon(file, text, group=group, batch=batch)
    lines = list(json_lines(file, text))
    first = lines[0][1] if lines else {}
    if set(first) >= KEYS:
        return read_simulated(file, lines)
    if NUMBER in first and DEPLOYMENT in first:
        return read_journal(file, lines)
    if HEADER in first or DEPLOYMENT in first:
        return read_deployments(file, lines)
    raise ConfigError(f"engine.table={file} is none of the tables that can be replayed", READABLE)


def _printable(contents: Contents) -> Contents:
    """Without what would steer a terminal: a table may come from anywhere."""
    return replace(
        contents,
        source=shown(contents.source),
        model=contents.model and shown(contents.model),
        hardware=contents.hardware and shown(contents.hardware),
        engine=contents.engine and shown(contents.engine),
    )


def _baseline(contents: Contents, begin: Mapping[str, Any]) -> Row:
    worked = [row for row in contents.rows if row.verdict is Verdict.OK and row.levels]
    if begin:
        fitting = [row for row in worked if begin.items() <= row.deployment.items()]
        if not fitting:
            raise ConfigError(
                f"engine.options.baseline={dict(begin)}: the table has no deployment with these "
                "values that worked",
                f"for example engine.options.baseline={dict(worked[0].deployment)}",
            )
        return most_usual(fitting)
    if contents.space is not None:
        return _of_space(contents, contents.space)
    return next((row for row in worked if row.is_baseline), None) or most_usual(worked)


def _of_space(contents: Contents, cfg: SpaceConfig) -> Row:
    """The row of a stated space's own defaults."""
    space = parse_space(cfg)
    defaults = key_of(canonical(space, baseline(space)))
    found = next((row for row in contents.rows if key_of(row.deployment) == defaults), None)
    if found is None or found.verdict is not Verdict.OK:
        raise ConfigError(
            f"{contents.source}: the defaults of its space, {dict(defaults)}, are no deployment of "
            "the table that worked, and nothing can be compared without them",
            "name another deployment of the table with engine.options.baseline={PARAMETER: VALUE}",
        )
    return found


def not_in_table() -> tuple[str, str]:
    """Cause and remedy of asking for a deployment that was never measured."""
    return (
        "not in the table: nobody has measured this deployment",
        "leave the space to the table (space=table), or measure it with its own engine",
    )
