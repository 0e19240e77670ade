"""A study's journal as a table: what it measured can be searched again, without a launch.

Of a trial the last attempt counts. Left out is what says nothing of its deployment: a measurement
that failed for its surroundings, and repeats that a confirmation made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sweeper.config.stored import StoredStudy, read_study
from sweeper.engine.replay.contents import Contents, finite, in_order
from sweeper.engine.replay.lines import bad_line
from sweeper.engine.replay.rows import BATCH, CLOSED, OPEN, Level, Row, key_of
from sweeper.verdicts import Phase, Verdict

STUDY_FILE = "study.yaml"
TRIALS_FILE = "trials.jsonl"
NUMBER, DEPLOYMENT = "number", "deployment"
LOAD = "load"
FAILED_GATE = "it failed a gate of its study"
ASKED = frozenset({CLOSED, OPEN, BATCH})


def read_journal(path: Path, lines: Iterable[tuple[int, Mapping[str, Any]]]) -> Contents:
    """Rows of a journal, and what `study.yaml` beside it says of them.

    Raises:
        ConfigError: a line that is no trial, or a `study.yaml` that cannot be read.
    """
    trials: dict[int, tuple[int, Mapping[str, Any]]] = {}
    for number, line in lines:
        if NUMBER not in line or DEPLOYMENT not in line:
            raise bad_line(path, number, "is no trial of a study")
        trials[int(line[NUMBER])] = (number, line)
    rows: dict[Any, Row] = {}
    left_out = 0
    for number, line in trials.values():
        try:
            row = _row(line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise bad_line(path, number, f"is no trial of a study ({error!r})") from error
        if row is None or (not row.launched and key_of(row.deployment) in rows):
            left_out += line.get("kind") != "confirm"
        else:
            rows[key_of(row.deployment)] = row
    beside = path.with_name(STUDY_FILE)
    stored = read_study(beside) if beside.is_file() else None
    notes = (f"{left_out} trials that say nothing of their deployment",) if left_out else ()
    return _described(path, tuple(rows.values()), stored, trials.values(), notes)


def _described(
    path: Path,
    rows: tuple[Row, ...],
    stored: StoredStudy | None,
    trials: Iterable[tuple[int, Mapping[str, Any]]],
    notes: tuple[str, ...],
) -> Contents:
    manifest = next((line.get("manifest") or {} for _, line in trials), {})
    engine, hardware = manifest.get("engine") or {}, manifest.get("hardware") or {}
    workload = (stored.config.get("workload") or {}) if stored is not None else {}
    study = path.parent.name if path.name == TRIALS_FILE else path.name
    return Contents(
        rows=rows,
        source=f"study {study}",
        is_predicted=bool(engine.get("predicted")) or manifest.get("measured") is False,
        model=(manifest.get("model") or {}).get("name"),
        hardware=hardware.get("name"),
        input_tokens=workload.get("input_tokens"),
        output_tokens=workload.get("output_tokens"),
        engine=" ".join(str(engine[key]) for key in ("name", "version") if key in engine) or None,
        notes=notes,
    )


def _row(line: Mapping[str, Any]) -> Row | None:
    """A trial's row, None if it says nothing of its deployment."""
    verdict = Verdict(line["verdict"])
    if line.get("kind") == "confirm" or not (verdict is Verdict.OK or verdict.is_config_fault):
        return None
    timings = line.get("timings_s") or {}
    points = [point for point in line.get("points", ()) if point["load"]["kind"] in ASKED]
    total_s = timings.get("total")
    return Row(
        deployment=dict(line[DEPLOYMENT]),
        levels=in_order(_level(point, points, timings.get(LOAD)) for point in points),
        verdict=verdict,
        phase=Phase(line["phase"]),
        cause=line.get("cause", ""),
        remedy=line.get("remedy", ""),
        evidence=line.get("evidence", ""),
        learnt=line.get("learnt") or {},
        total_s=None if total_s is None else float(total_s),
        quality=line.get("quality"),
        launched=bool(line.get("launched", True)),
        devices=(line.get("manifest") or {}).get("devices"),
        is_baseline=line.get("kind") == "baseline",
    )


def _level(
    point: Mapping[str, Any], points: list[Mapping[str, Any]], load_s: float | None
) -> Level:
    """A point. The seconds under load are shared out as the levels' windows are long."""
    load = point["load"]
    window_s = [float(other["load"].get("window_s") or 0.0) for other in points]
    own_s = float(load.get("window_s") or 0.0)
    share = own_s / sum(window_s) if all(window_s) else 1 / len(points)
    return Level(
        kind=load["kind"],
        concurrency=load.get("concurrency"),
        rate_per_s=load.get("rate_per_s"),
        metrics=finite(point["metrics"]),
        n=int(point.get("n", 0)),
        virtual_s=None if load_s is None else load_s * share,
        reasons=() if point["valid"] else tuple(point.get("reasons", ())) or (FAILED_GATE,),
    )
