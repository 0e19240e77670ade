"""Which operating point to run: the best that keeps the promises, or the knee of the front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sweeper.config.schema import SelectConfig
from sweeper.errors import ConfigError, NoFeasibleTrialError
from sweeper.pareto.compare import gain, ratios
from sweeper.pareto.front import non_dominated
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import (
    Recommendation,
    asked_sentence,
    confidence_sentence,
    headline,
    overlap_sentence,
    quality_sentence,
    rule_sentence,
    tie_sentence,
)
from sweeper.pareto.rule import Row, Rule, lasting, limits, misses

if TYPE_CHECKING:
    import pandas as pd

THROUGHPUT = "output_tokens_per_s_per_gpu"
LATENCY = "e2e_p95_ms"
SHOWN_METRICS = (
    THROUGHPUT,
    "output_tokens_per_s",
    LATENCY,
    "ttft_p95_ms",
    "tpot_p95_ms",
    "quality",
)
_PREFERENCES = ("throughput", "latency", "quality")


def selectable(frame: pd.DataFrame) -> pd.DataFrame:
    """Valid points of trials that ended OK, with their row labels kept."""
    return frame[(frame["verdict"] == "OK") & frame["valid"].astype(bool)]


def front_mask(
    frame: pd.DataFrame, throughput_metric: str = THROUGHPUT, latency_metric: str = LATENCY
) -> NDArray[np.bool_]:
    """Rows on the front of throughput (up), latency (down) and quality (up).

    Qualities that cannot be told from the baseline's count as equal to it. Quality is an objective
    only if every selectable point has one: a point whose quality was not measured could otherwise
    neither win nor lose.

    Args:
        frame: of `points_frame`, with a unique row index.

    Returns:
        Mask of the shape (len(frame),); invalid points and failed trials are never on it.
    """
    candidates = selectable(frame)
    mask = np.zeros(len(frame), dtype=bool)
    columns = [throughput_metric, latency_metric]
    if candidates.empty or any(column not in candidates.columns for column in columns):
        return mask
    signs = [1, -1]
    if candidates["quality_settled"].notna().all():
        columns, signs = [*columns, "quality_settled"], [1, -1, 1]
    on_front = non_dominated(candidates[columns].to_numpy(dtype=float), signs)
    mask[frame.index.isin(candidates.index[on_front])] = True
    return mask


def recommend(
    frame: pd.DataFrame,
    select_cfg: SelectConfig,
    throughput_metric: str = THROUGHPUT,
    latency_metric: str = LATENCY,
    only_trial: int | None = None,
) -> Recommendation:
    """Choose an operating point.

    With promises (`select_cfg.slo`): of the points that keep them all, the one preferred by
    `select_cfg.prefer`; if none does, the nearest miss, marked as such. Without: the knee of the
    front. A point whose load the server could not bear is chosen only if there is no other. If
    the engine's defaults do as well within the measurement's intervals, they are chosen instead:
    the simpler deployment wins a tie.

    Args:
        frame: of `points_frame`, with a unique row index.
        select_cfg: promises and preference.
        throughput_metric: to be maximised.
        latency_metric: to be minimised where no promise names another.
        only_trial: choose among this trial's points; the baseline is only compared with.

    Raises:
        NoFeasibleTrialError: no trial has a valid point with both metrics.
        ConfigError: `select_cfg.prefer` is not a known word.
    """
    if select_cfg.prefer not in _PREFERENCES:
        raise ConfigError(
            f"select.prefer={select_cfg.prefer} is not known",
            f"use one of {', '.join(_PREFERENCES)}",
        )
    rows = [row_dict(row) for row in selectable(frame).to_dict("records")] if len(frame) else []
    rows = [row for row in rows if throughput_metric in row and latency_metric in row]
    if not rows:
        raise _nothing_feasible(frame, throughput_metric, latency_metric)
    rule = Rule(limits(select_cfg.slo), select_cfg.prefer, throughput_metric, latency_metric)
    return _choose(rows, rule, frame, only_trial)


def _nothing_feasible(frame: pd.DataFrame, *metrics: str) -> NoFeasibleTrialError:
    ends = sorted(set(frame["verdict"]) - {"OK"}) if len(frame) else []
    seen = f" (trials that were driven ended as {', '.join(ends)})" if ends else ""
    return NoFeasibleTrialError(
        f"no trial has a valid operating point with {' and '.join(metrics)}{seen}",
        "see the causes with `python -m sweeper status study=NAME`, and start from a deployment "
        "that runs",
    )


def _choose(
    rows: list[Row], rule: Rule, frame: pd.DataFrame, only_trial: int | None
) -> Recommendation:
    baseline_rows = [row for row in rows if row["kind"] == "baseline"]
    if only_trial is not None:
        own = [row for row in rows if row["trial"] == only_trial]
        if not own:
            raise NoFeasibleTrialError(
                f"trial {only_trial} has no valid operating point",
                "see its verdict with `python -m sweeper status study=NAME`",
            )
        own = lasting(own)
        chosen = rule.best(own) or rule.nearest(own)
        return _describe(chosen, baseline_rows, rule, frame, asked_sentence(chosen))
    candidates = lasting(rows)
    best = rule.best(candidates)
    if best is None:
        return _describe(rule.nearest(candidates), baseline_rows, rule, frame, "")
    rival = rule.best(lasting(baseline_rows)) if rule.slo else _at(baseline_rows, best["level"])
    tie = _tie(best, rival, rule)
    chosen = rival if tie and rival is not None else best
    return _describe(chosen, baseline_rows, rule, frame, tie)


def _tie(best: Row, rival: Row | None, rule: Rule) -> str:
    """Why the baseline is as good as `best`; empty if it is not."""
    if rival is None or best["deployment_hash"] == rival["deployment_hash"]:
        return ""
    faster = gain(best, rival, rule.throughput)
    sooner = gain(best, rival, rule.latency)
    if faster is None or sooner is None or not (faster.enclosed and sooner.enclosed):
        return ""
    return tie_sentence(best, faster)


def _describe(
    point: Row, baseline_rows: list[Row], rule: Rule, frame: pd.DataFrame, tie: str
) -> Recommendation:
    missed = misses(point, rule.slo)
    same, own_best = _at(baseline_rows, point["level"]), rule.best(lasting(baseline_rows))
    is_baseline = point["deployment_hash"] in {row["deployment_hash"] for row in baseline_rows}
    reference = own_best if rule.slo and not missed else same
    versus = None
    if reference is not None and not is_baseline:
        versus = gain(point, reference, rule.throughput)
    confirmed = _is_confirmed(frame, point["deployment_hash"])
    sentences = (
        rule_sentence(rule.slo, rule.prefer, missed),
        tie or overlap_sentence(point, reference, versus, rule.throughput),
        quality_sentence(point, baseline_rows[0] if baseline_rows else None),
        confidence_sentence(point, rule.latency, confirmed),
    )
    shown = tuple(dict.fromkeys((rule.throughput, rule.latency, *SHOWN_METRICS)))
    return Recommendation(
        point=point,
        reason=" ".join(sentence for sentence in sentences if sentence),
        headline=headline(
            point,
            missed=missed,
            versus=versus,
            is_baseline=is_baseline,
            throughput=rule.throughput,
            slo=bool(rule.slo),
        ),
        keeps_slo=not missed,
        confirmed=confirmed,
        is_baseline=is_baseline,
        slo=dict(rule.slo),
        baseline=same,
        baseline_best=own_best,
        ratios=ratios(point, same, shown),
        ratios_best=ratios(point, own_best, shown),
        gain=versus,
        alternatives=tuple(_alternatives(frame, point, rule)),
        missed=missed,
        predicted=bool(point.get("predicted", False)),
    )


def _alternatives(frame: pd.DataFrame, point: Row, rule: Rule) -> list[Row]:
    """Ends of the front: highest throughput, lowest latency, best quality."""
    mask = front_mask(frame, rule.throughput, rule.latency)
    front = [row_dict(row) for row in frame[mask].to_dict("records")]
    wanted = [("highest throughput", rule.throughput, 1), ("lowest latency", rule.latency, -1)]
    if len({row.get("quality_settled") for row in front}) > 1:
        wanted.append(("best quality", "quality_settled", 1))
    found: dict[tuple[int, str], Row] = {}
    for why, metric, sign in wanted if front else []:
        row = max(front, key=lambda r: (sign * r.get(metric, 0.0), r[rule.throughput]))
        key = (row["trial"], row["level"])
        if key != (point["trial"], point["level"]):
            known = found.setdefault(key, {**row, "why": ""})
            known["why"] = f"{known['why']}, {why}".strip(", ")
    return list(found.values())


def _at(rows: Sequence[Row], level: str) -> Row | None:
    return next((row for row in rows if row["level"] == level), None)


def _is_confirmed(frame: pd.DataFrame, deployment_hash: str) -> bool:
    again = selectable(frame)
    again = again[again["kind"] == "confirm"]
    return bool((again["deployment_hash"] == deployment_hash).any())
