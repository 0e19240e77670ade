"""What was launched again, as a table, and the command that confirms what was not. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper.config.schema import SelectConfig, SweeperConfig
from sweeper.pareto.confirmed import BETTER, INCONCLUSIVE, Judgement
from sweeper.pareto.confirmed_words import gain_text
from sweeper.pareto.contest import contest_of
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import CONFIRM
from sweeper.pareto.rule import Rule
from sweeper.pareto.select import latency_of, rule_of, selectable_rows
from sweeper.report.words import METRIC_LABELS
from sweeper.search.budget import Spent
from sweeper.search.confirmation.design import REPEATS, Design
from sweeper.search.confirmation.live import repeats_itself
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import pandas as pd

TITLE = "launched again beside the defaults, in turns"
COLUMNS = ("trial", "load", "gain [95 %]", "in", "launches", "the search had", "verdict")
_WORDS = {BETTER: "better", INCONCLUSIVE: "inconclusive"}


def confirm_rows(recommendation: Recommendation | None) -> list[list[str]]:
    """One row a deployment that was launched again, the search's best first."""
    found = recommendation.confirmations if recommendation is not None else ()
    return [_row(judgement) for judgement in found]


def _row(judgement: Judgement) -> list[str]:
    searched = judgement.searched_percent
    promise = judgement.kept
    word = _WORDS.get(judgement.verdict, "no significant gain")
    if promise is not None and promise[0] < promise[1]:
        word += f"; kept the SLO in {promise[0]} of {promise[1]}"
    return [
        str(judgement.trial),
        judgement.level,
        gain_text(judgement) or "-",
        METRIC_LABELS.get(judgement.metric, judgement.metric),
        str(judgement.pairs),
        "-" if searched is None else f"{searched:+.1f} %",
        word,
    ]


def with_command(
    recommendation: Recommendation,
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    cfg: SweeperConfig,
    study: str,
) -> Recommendation:
    """The recommendation with the command that would confirm it, where that is open.

    Args:
        recommendation: of the study.
        frame: of `points_frame`.
        outcomes: every attempt.
        cfg: of the study.
        study: its name.
    """
    repeats = _repeats_wanted(recommendation, cfg)
    if repeats is None or repeats_itself(outcomes):
        return recommendation
    rows = selectable_rows(frame, latency_metric=latency_of(frame))
    rule = rule_of(cfg.select, latency_metric=latency_of(frame))
    contest = contest_of(rows, rule, max(1, cfg.confirm.candidates)) if rows else None
    if contest is None:
        return recommendation
    design = Design(repeats, len(contest.entries))
    usual = Path(cfg.studies_dir).absolute() == Path("studies").absolute()
    folder = "" if usual else f" studies_dir={shlex.quote(cfg.studies_dir)}"
    command = f"python -m sweeper resume study={study}{folder} confirm.repeats={repeats}"
    pairs = min((one.pairs for one in recommendation.confirmations), default=0)
    budget = _budget(design, (repeats - pairs) * (design.entries + 1), outcomes, cfg)
    return replace(recommendation, to_confirm=" ".join([command, *_promise(rule), *budget]))


def _promise(rule: Rule) -> list[str]:
    """The rule, which may be another than the study was started with."""
    told = [f"select.slo.{name}={limit:g}" for name, limit in rule.slo.items()]
    default = SelectConfig().prefer
    return [*told, *([f"select.prefer={rule.prefer}"] if rule.prefer != default else [])]


def _repeats_wanted(recommendation: Recommendation, cfg: SweeperConfig) -> int | None:
    """Launches of each that would settle what is open; None if nothing is."""
    found = recommendation.confirmation
    if found is None:
        return max(REPEATS, cfg.confirm.repeats or 0)
    if found.verdict == BETTER:
        return None
    if found.repeats_needed is not None:
        return found.repeats_needed
    if found.verdict == INCONCLUSIVE and found.pairs < REPEATS:
        return max(REPEATS, cfg.confirm.repeats or 0)
    return None


def _budget(
    design: Design, missing: int, outcomes: Sequence[TrialOutcome], cfg: SweeperConfig
) -> list[str]:
    """Limits raised by what the missing launches take, none that was not set."""
    spent = Spent.of(outcomes, cfg.hardware.price_per_hour, 1)
    searched = sum(outcome.launched for outcome in outcomes if outcome.kind != CONFIRM)
    needed, each = max(missing, 0), max(1, spent.launches)
    launches = max(spent.launches + needed, searched + design.launches)
    told = []
    if cfg.budget.launches is not None:
        told.append(f"budget.launches={max(launches, cfg.budget.launches)}")
    if cfg.budget.minutes is not None:
        minutes = spent.minutes * (1 + needed / each)
        told.append(f"budget.minutes={max(math.ceil(minutes), math.ceil(cfg.budget.minutes))}")
    return told
