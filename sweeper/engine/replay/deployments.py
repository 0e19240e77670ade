"""One deployment a line, as JSON lines, with a first line about all of them. Pure.

    {"table": {"model", "hardware", "workload", "space", "source", "versions", "seed"}}
    {"deployment": {...}, "verdict": "OK", "virtual_s": 41.0,
     "levels": [{"concurrency": 8, "metrics": {...}, "virtual_s": 9.0}]}

Deployments are canonical in the stated space. `predicted` of the first line says whether a model
gave the figures (it did, unless it says ``false``); further keys of a line are `cause`, `remedy`,
`phase`, `learnt`, `quality` and `devices`, and of a level `rate_per_s`, `kind`, `n` and `reasons`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.engine.replay.contents import Contents, finite, in_order
from sweeper.engine.replay.lines import bad_line
from sweeper.engine.replay.rows import CLOSED, OPEN, Level, Row
from sweeper.verdicts import Phase, Verdict

HEADER = "table"
DEPLOYMENT = "deployment"
WRONG = (KeyError, TypeError, ValueError)


def read_deployments(path: Path, lines: Iterable[tuple[int, Mapping[str, Any]]]) -> Contents:
    """Rows as they are written.

    Raises:
        ConfigError: a line that is neither the first nor a deployment.
    """
    told: Mapping[str, Any] = {}
    rows: list[Row] = []
    for number, line in lines:
        try:
            if HEADER in line and not rows:
                told = dict(line[HEADER])
            else:
                rows.append(_row(line))
        except WRONG as error:
            raise bad_line(path, number, f"is no deployment ({error!r})") from error
    workload = told.get("workload")
    lengths = workload if isinstance(workload, Mapping) else {}
    return Contents(
        rows=tuple(rows),
        source=str(told.get("source") or path.name),
        is_predicted=told.get("predicted") is not False,
        model=_text(told.get("model")),
        hardware=_text(told.get("hardware")),
        input_tokens=_whole(lengths.get("input_tokens")),
        output_tokens=_whole(lengths.get("output_tokens")),
        engine=_versions(told.get("versions")),
        space=_space(path, told.get("space")),
    )


def _row(line: Mapping[str, Any]) -> Row:
    verdict = Verdict(line.get("verdict", "OK"))
    return Row(
        deployment=dict(line[DEPLOYMENT]),
        levels=in_order(_level(level) for level in line.get("levels", ())),
        verdict=verdict,
        phase=Phase(line.get("phase", Phase.STOP if verdict is Verdict.OK else Phase.START)),
        cause=str(line.get("cause", "")),
        remedy=str(line.get("remedy", "")),
        learnt=dict(line.get("learnt", {})),
        total_s=None if line.get("virtual_s") is None else float(line["virtual_s"]),
        quality=line.get("quality"),
        launched=bool(line.get("launched", True)),
        devices=_whole(line.get("devices")),
        is_baseline=bool(line.get("baseline", False)),
    )


def _level(level: Mapping[str, Any]) -> Level:
    rate = level.get("rate_per_s")
    return Level(
        kind=str(level.get("kind", CLOSED if rate is None else OPEN)),
        concurrency=_whole(level.get("concurrency")),
        rate_per_s=None if rate is None else float(rate),
        metrics=finite(level["metrics"]),
        n=int(level.get("n", 0)),
        virtual_s=None if level.get("virtual_s") is None else float(level["virtual_s"]),
        reasons=tuple(level.get("reasons", ())),
    )


def _space(path: Path, told: Any) -> SpaceConfig | None:
    if not told:
        return None
    known = {field.name for field in fields(SpaceConfig)}
    if not isinstance(told, Mapping) or not set(told) <= known:
        raise bad_line(path, 1, f"has a space with other keys than {', '.join(sorted(known))}")
    return SpaceConfig(**told)


def _versions(told: Any) -> str | None:
    if isinstance(told, Mapping):
        return ", ".join(f"{name} {version}" for name, version in told.items()) or None
    return _text(told)


def _text(value: Any) -> str | None:
    """A name, or a mapping's own name; None if there is none."""
    found = value.get("name") if isinstance(value, Mapping) else value
    return None if found is None else str(found)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
