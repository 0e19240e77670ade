"""What was known beforehand beside what was measured, in words. Pure.

Predicted figures stand here and in trials' manifests, never among measured ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.config.schema import SweeperConfig
from sweeper.report.tables import table
from sweeper.report.terminal import words_table
from sweeper.report.words import METRIC_LABELS
from sweeper.search.priors.record import PriorError, prior_errors, prior_weights
from sweeper.trial.outcome import TrialOutcome

METRICS = (
    "output_tokens_per_s_per_gpu",
    "output_tokens_per_s",
    "ttft_p95_ms",
    "tpot_p95_ms",
    "e2e_p95_ms",
)
TITLE = "priors: predicted against measured"
COLUMNS = ("prior", "metric", "points", "error", "error, calibrated", "rank correlation")
_LEGEND = (
    "error: median of |predicted / measured - 1|; calibrated: after scaling by the baseline; rank "
    "correlation: Spearman's within each load level"
)


def prior_rows(outcomes: Sequence[TrialOutcome]) -> list[list[str]]:
    """Cells under `COLUMNS`, the same in terminal and report; empty where nothing was predicted."""
    return [_row(error) for error in prior_errors(outcomes, METRICS)]


def render_prior(outcomes: Sequence[TrialOutcome], cfg: SweeperConfig | None = None) -> str:
    """The table as text, and how far each prior is followed; empty without a prior."""
    rows = prior_rows(outcomes)
    if not rows:
        return ""
    parts = [words_table(TITLE, COLUMNS, rows), _LEGEND]
    if cfg is not None and (followed := followed_text(outcomes, cfg)):
        parts.append(followed)
    return "\n".join(parts)


def followed_text(outcomes: Sequence[TrialOutcome], cfg: SweeperConfig) -> str:
    """One line: the weight of each prior that predicts."""
    weights = prior_weights(outcomes, cfg)
    told = ", ".join(f"{kind} {weight:.2f}" for kind, weight in weights.items())
    return f"followed now, from 0 (not at all) to 1: {told}" if told else ""


def prior_section(outcomes: Sequence[TrialOutcome]) -> str:
    """The table as HTML; empty where nothing was predicted."""
    rows = prior_rows(outcomes)
    if not rows:
        return ""
    made = table([name.capitalize() for name in COLUMNS], rows, numeric=range(2, 6))
    return f"<p class=sub>{_LEGEND}.</p>{made}"


def _row(error: PriorError) -> list[str]:
    calibrated, rank = error.calibrated_error_share, error.rank_correlation
    return [
        error.kind,
        METRIC_LABELS.get(error.metric, error.metric),
        str(error.points),
        f"{error.error_share:.1%}",
        "-" if calibrated is None else f"{calibrated:.1%}",
        "-" if rank is None else f"{rank:.2f}",
    ]
