"""The description of a study's parent run in MLflow, in Markdown. Pure.

It is what a reviewer reads first: the verdict, what to deploy, the front, under which conditions,
and how to get there again. report.html, attached to the same run, has the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.report import markdown
from sweeper.report.alike import merged, with_alike
from sweeper.report.summary import study_summary
from sweeper.report.text import front_frame
from sweeper.report.words import (
    deployment_text,
    level_text,
    metric_label,
    metric_text,
    number,
)
from sweeper.search.budget import Account
from sweeper.search.progress import spent_text
from sweeper.tracking.mlflow_log import StudySummary
from sweeper.tracking.mlflow_tags import MEASURED, machine_words, numbers_of
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

MAX_CHARACTERS = 4700
"""What an MLflow server before 2.14 takes of a tag is 5000; a link to the charts is added."""
_LONGEST_COMMAND = 900
_FRONT = ("output_tokens_per_s_per_gpu", "output_tokens_per_s", "ttft_p95_ms", "tpot_p95_ms",
          "e2e_p95_ms", "quality")  # fmt: skip


def told_to_mlflow(
    cfg: SweeperConfig,
    paths: StudyPaths,
    outcomes: Sequence[TrialOutcome],
    frame: pd.DataFrame,
    *,
    recommendation: Recommendation | None,
    ended: str,
    typed: Sequence[tuple[str, str]] = (),
) -> StudySummary:
    """Everything the parent run is told at the end: figures, tags, description, files.

    Args:
        cfg: of the study.
        paths: of the study.
        outcomes: every attempt, oldest first.
        frame: of `points_frame`.
        recommendation: None if nothing was feasible.
        ended: why the search ended, one line.
        typed: what a command does and how it is typed, see `sweeper.report.reproduce.commands`.
    """
    files = [paths.report_html, paths.report_md, paths.pareto_csv, paths.study_yaml]
    if recommendation is not None and recommendation.keeps_slo:
        files.append(paths.recommended_dir)
    note = study_note(
        cfg, paths.name, outcomes, frame, recommendation=recommendation, ended=ended, typed=typed
    )
    return study_summary(cfg, outcomes, frame, recommendation, ended, note=note, artifacts=files)


def study_note(
    cfg: SweeperConfig,
    study: str,
    outcomes: Sequence[TrialOutcome],
    frame: pd.DataFrame,
    *,
    recommendation: Recommendation | None,
    ended: str,
    typed: Sequence[tuple[str, str]] = (),
) -> str:
    """The description.

    Args:
        cfg: of the study.
        study: its name.
        outcomes: every attempt, oldest first.
        frame: of `points_frame`.
        recommendation: None if nothing was feasible.
        ended: why the search ended, one line.
        typed: what a command does and how it is typed, see `sweeper.report.reproduce.commands`.

    Returns:
        At most `MAX_CHARACTERS`; what does not fit of the front is counted.
    """
    numbers = numbers_of(outcomes[0].manifest.get("engine")) if outcomes else MEASURED
    before = [*_verdict(recommendation, numbers), *_deployment(recommendation)]
    after = [_conditions(cfg, outcomes, ended, numbers), _reproduce(study, typed)]
    room = MAX_CHARACTERS - sum(len(part) + 2 for part in (*before, *after))
    front = _front(frame, recommendation, room)
    return "\n\n".join(part for part in (*before, front, *after) if part)[:MAX_CHARACTERS]


def _verdict(recommendation: Recommendation | None, numbers: str) -> list[str]:
    head = "" if recommendation is None else recommendation.headline
    is_told = numbers == MEASURED or numbers in head
    mark = "" if is_told else f" (figures are {numbers}, not measured here)"
    if recommendation is None:
        return [f"**No feasible operating point{mark}.** The failed runs below name the causes."]
    return [
        f"**{markdown.text(head)}**{mark}",
        markdown.text(recommendation.reason),
    ]


def _deployment(recommendation: Recommendation | None) -> list[str]:
    """What to deploy, its figures, and those of the defaults beside them."""
    if recommendation is None:
        return []
    title = "Recommended deployment" if recommendation.keeps_slo else "The nearest miss"
    words = markdown.text(deployment_text(recommendation.deployment))
    point, own = recommendation.point, recommendation.baseline or {}
    names = _told_apart([point, own])
    columns = [f"at {recommendation.level}", "this deployment", "engine defaults", "ratio"]
    rows = [
        [
            metric_label(name, [point]),
            metric_text(name, point),
            metric_text(name, own),
            number(recommendation.ratios.get(name)),
        ]
        for name in names
    ]
    sure = "confirmed" if recommendation.confirmed else "not confirmed"
    head = f"### {title}\n\nTrial {recommendation.trial}, {sure}: {words}"
    return [f"{head}\n\n{markdown.table(columns, rows)}"]


def _front(frame: pd.DataFrame, recommendation: Recommendation | None, room: int) -> str:
    """The front as far as there is room for it, the highest throughput first."""
    if not len(frame):
        return ""
    rows = [row_dict(row) for row in front_frame(frame, recommendation).to_dict("records")]
    metrics = _told_apart(rows)
    chosen = (recommendation.trial, recommendation.level) if recommendation is not None else None
    shown = list(reversed(merged(rows, metrics, chosen)))
    columns = ["trial", "load", *(metric_label(name, rows) for name in metrics), "deployment"]
    cells = [_front_cells(row, metrics, chosen) for row in shown]
    head, rule, *lines = markdown.table(columns, cells).splitlines()
    text, left = f"### Pareto front\n\n{head}\n{rule}", len(lines)
    more = "\n\nand {} more in pareto.csv (Artifacts)"
    for line in lines:
        if len(text) + len(line) + len(more) + 10 > room:
            break
        text, left = f"{text}\n{line}", left - 1
    return text + (more.format(left) if left else "")


def _told_apart(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Metrics of the rows; throughput once where it is the same by device, on one device."""
    whole, per_device = "output_tokens_per_s", "output_tokens_per_s_per_gpu"
    is_same = all(row.get(whole) == row.get(per_device) for row in rows)
    names = [name for name in _FRONT if any(name in row for row in rows)]
    return [name for name in names if not (is_same and name == per_device)]


def _front_cells(
    row: Mapping[str, Any], metrics: Sequence[str], chosen: tuple[int, str] | None
) -> list[str]:
    mark = " ◄" if (int(row["trial"]), str(row["level"])) == chosen else ""
    figures = [metric_text(name, row) for name in metrics]
    return [f"{row['trial']}{mark}", level_text(row), *figures, with_alike(row)]


def _conditions(
    cfg: SweeperConfig, outcomes: Sequence[TrialOutcome], ended: str, numbers: str
) -> str:
    manifest = outcomes[0].manifest if outcomes else {}
    account = Account(cfg.hardware.price_per_hour, 1)
    account.update(outcomes)
    load = cfg.workload
    rows = {
        "figures": numbers,
        "model": _words(manifest.get("model"), ("name", "revision", "digest")) or cfg.model.name,
        "engine": _words(manifest.get("engine"), ("name", "version", "device")) or cfg.engine.name,
        "hardware": machine_words(manifest.get("hardware")),
        "workload": f"{load.name}: {load.kind}, {load.input_tokens} tokens in, "
        f"{load.output_tokens} out (means), seed {load.seed}",
        "SLO": ", ".join(f"{k}={v:g}" for k, v in _slo(cfg).items()) or "none",
        "ended": ended,
        "used": spent_text(account, cfg),
        "failed launches": _failures(outcomes) or "none",
    }
    cells = [[name, text] for name, text in rows.items() if text]
    return f"### Conditions\n\n{markdown.table(['what', 'value'], cells)}"


def _words(part: object, keys: Sequence[str]) -> str:
    """Known values of a manifest's part; a digest by its beginning."""
    if not isinstance(part, Mapping):
        return ""
    known = {key: part[key] for key in keys if part.get(key) not in (None, "")}
    return " ".join(
        f"{str(value)[:12] if key == 'digest' else value}" for key, value in known.items()
    )


def _slo(cfg: SweeperConfig) -> dict[str, float]:
    return {name: float(v) for name, v in vars(cfg.select.slo).items() if v is not None}


def _failures(outcomes: Sequence[TrialOutcome]) -> str:
    ends = [o.verdict for o in outcomes if o.launched and o.verdict is not Verdict.OK]
    return ", ".join(f"{ends.count(verdict)} {verdict}" for verdict in Verdict if verdict in ends)


def _reproduce(study: str, typed: Sequence[tuple[str, str]]) -> str:
    """Commands, and where the rest is."""
    # As code in a line, which MLflow wraps: a block of it would push the page's figures aside.
    lines = [
        f"- {what} `{command}`"
        for what, command in typed
        if len(command) <= _LONGEST_COMMAND and "`" not in command
    ]
    shown = "\n".join(lines) or "The commands are in report.html (Artifacts)."
    return (
        f"### How to reproduce\n\n{shown}\n\nThe study's settings are study.yaml (Artifacts): put "
        f"into `studies/{study}/` on a machine of this kind, it can be resumed. Each nested run "
        "holds its trial's command line (argv.json), log and journal line (outcome.json)."
    )
