"""Which operating point to run, and everything that can be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sweeper.config.schema import SelectConfig
from sweeper.config.select_checks import PREFERENCES
from sweeper.errors import ConfigError, NoFeasibleTrialError
from sweeper.metrics.noise import WITHOUT_ERROR
from sweeper.pareto.choice import Choice, asked_for, at_level, baseline_rows_of, searched, settled
from sweeper.pareto.compare import gain, ratios
from sweeper.pareto.confirmed import INCONCLUSIVE, Judgement, judge
from sweeper.pareto.confirmed_words import confirmation_sentence, unstable_sentence
from sweeper.pareto.cost import Price, costs
from sweeper.pareto.front import non_dominated, tied_with
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import (
    Recommendation,
    confidence_sentence,
    cost_sentence,
    headline,
    overlap_sentence,
    quality_sentence,
    rule_sentence,
    ties_sentence,
)
from sweeper.pareto.repeats import noise_of_rows
from sweeper.pareto.rule import PER_DEVICE, Row, Rule, lasting, limits, misses
from sweeper.pareto.shortfall import shortfalls

if TYPE_CHECKING:
    import pandas as pd

THROUGHPUT = PER_DEVICE
LATENCY = "e2e_p95_ms"
LATENCIES = (LATENCY, "e2e_mean_ms", "e2e_p50_ms")
"""What latency means, the first of them that was measured at all: a table of somebody else's
figures may have means or medians alone."""
SHOWN_METRICS = (
    THROUGHPUT,
    "output_tokens_per_s",
    LATENCY,
    "ttft_p95_ms",
    "tpot_p95_ms",
    "quality",
)


def selectable(frame: pd.DataFrame) -> pd.DataFrame:
    """Valid points of whole trials that ended OK, with their row labels kept."""
    is_whole = ~frame["partial"].astype(bool)
    return frame[(frame["verdict"] == "OK") & frame["valid"].astype(bool) & is_whole]


def latency_of(frame: pd.DataFrame) -> str:
    """The metric that stands for latency in a frame, see `LATENCIES`."""
    return next((name for name in LATENCIES if name in frame.columns), LATENCY)


def front_mask(
    frame: pd.DataFrame,
    throughput_metric: str = THROUGHPUT,
    latency_metric: str | None = None,
    *,
    with_ties: bool = True,
) -> NDArray[np.bool_]:
    """Rows on the front of throughput (up), latency (down) and quality (up).

    Qualities that cannot be told from the baseline's count as equal to it. Quality is an objective
    only if every selectable point has one: a point whose quality was not measured could otherwise
    neither win nor lose. Where repeats tell the noise, a point stays as long as none on the front
    beats it by more than that.

    Args:
        frame: of `points_frame`, with a unique row index.
        throughput_metric: to be maximised.
        latency_metric: to be minimised; None takes `latency_of`.
        with_ties: whether points within the noise of the front belong to it.

    Returns:
        Mask of the shape (len(frame),); invalid points and failed trials are never on it.
    """
    candidates = selectable(frame)
    mask = np.zeros(len(frame), dtype=bool)
    columns = [throughput_metric, latency_metric or latency_of(frame)]
    if candidates.empty or any(column not in candidates.columns for column in columns):
        return mask
    signs = [1, -1]
    if candidates["quality_settled"].notna().all():
        columns, signs = [*columns, "quality_settled"], [1, -1, 1]
    values = candidates[columns].to_numpy(dtype=float)
    on_front = non_dominated(values, signs)
    margins = _margins(candidates, columns[:2]) if with_ties else None
    if margins is not None:
        on_front |= tied_with(on_front, values, signs, margins)
    mask[frame.index.isin(candidates.index[on_front])] = True
    return mask


def _margins(candidates: pd.DataFrame, columns: list[str]) -> NDArray[np.float64] | None:
    """Noise of each point, on the logarithm, shape (n, m); None if it is not known.

    Two points are a tie where they differ by less than the root of the sum of their squares.
    """
    if not (candidates["launches"] > 1).any():
        return None
    repeated = candidates[candidates["launches"] > 1].to_dict("records")
    noise = noise_of_rows([row_dict(row) for row in repeated])
    alone = [noise.margin(column, (1, WITHOUT_ERROR)) for column in columns]
    if any(margin is None for margin in alone):
        return None
    root = np.sqrt(candidates["launches"].to_numpy(dtype=float))
    return np.stack([np.full(len(root), margin) / root for margin in alone], axis=1)


def recommend(
    frame: pd.DataFrame,
    select_cfg: SelectConfig,
    throughput_metric: str = THROUGHPUT,
    latency_metric: str | None = None,
    *,
    only_trial: int | None = None,
    price: Price | None = None,
) -> Recommendation:
    """Choose an operating point.

    Of the points that keep all promises (`select_cfg.slo`), the one preferred by
    `select_cfg.prefer`, see `sweeper.pareto.rule`; if none keeps them, the nearest miss, marked
    as such. A point whose load the server could not bear is chosen only if there is no other. If
    the engine's defaults do as well within the measurement's intervals, they are chosen instead:
    the simpler deployment wins a tie.

    Once the best were launched again, only those launches count: a deployment is recommended if
    they show it to be better than the defaults, see `sweeper.pareto.confirmed`.

    Args:
        frame: of `points_frame`, with a unique row index.
        select_cfg: promises and preference.
        throughput_metric: to be maximised.
        latency_metric: to be minimised where no promise names another; None takes `latency_of`.
        only_trial: choose among this trial's points; the baseline is only compared with.
        price: of a device, for what a million tokens cost; None tells device seconds.

    Raises:
        NoFeasibleTrialError: no trial has a valid point with both metrics.
        ConfigError: `select_cfg.prefer` is not a known word.
    """
    if select_cfg.prefer not in PREFERENCES:
        raise ConfigError(
            f"select.prefer={select_cfg.prefer} is not known",
            f"use one of {', '.join(PREFERENCES)}",
        )
    latency_metric = latency_metric or latency_of(frame)
    rows = selectable_rows(frame, throughput_metric, latency_metric)
    if not rows:
        raise _nothing_feasible(frame, throughput_metric, latency_metric)
    rule = rule_of(select_cfg, throughput_metric, latency_metric)
    return _choose(rows, rule, frame, only_trial, price)


def rule_of(
    select_cfg: SelectConfig, throughput_metric: str = THROUGHPUT, latency_metric: str = LATENCY
) -> Rule:
    """The rule by which points are ranked."""
    return Rule(limits(select_cfg.slo), select_cfg.prefer, throughput_metric, latency_metric)


def selectable_rows(
    frame: pd.DataFrame, throughput_metric: str = THROUGHPUT, latency_metric: str = LATENCY
) -> list[Row]:
    """What `selectable` leaves that has both metrics, as plain mappings."""
    rows = [row_dict(row) for row in selectable(frame).to_dict("records")] if len(frame) else []
    return [row for row in rows if throughput_metric in row and latency_metric in row]


def _nothing_feasible(frame: pd.DataFrame, *metrics: str) -> NoFeasibleTrialError:
    ends = sorted(set(frame["verdict"]) - {"OK"}) if len(frame) else []
    seen = f" (trials that were driven ended as {', '.join(ends)})" if ends else ""
    return NoFeasibleTrialError(
        f"no trial has a valid operating point with {' and '.join(metrics)}{seen}",
        "see the causes with `python -m sweeper status study=NAME`, and start from a deployment "
        "that runs",
    )


def _choose(
    rows: list[Row],
    rule: Rule,
    frame: pd.DataFrame,
    only_trial: int | None,
    price: Price | None,
) -> Recommendation:
    judged = judge(rows, rule)
    if only_trial is not None:
        choice = asked_for(only_trial, rows, rule, judged)
    else:
        choice = settled(rows, rule, judged) or searched(rows, rule, judged)
    found = _describe(choice, rows, rule, frame, judged)
    sentence = cost_sentence(choice.point, price) if rule.preference == "cost" else ""
    return replace(
        found,
        reason=" ".join(text for text in (found.reason, sentence) if text),
        prefer=rule.preference,
        costs=costs(choice.point, price),
        price=price,
    )


def _describe(
    choice: Choice, rows: list[Row], rule: Rule, frame: pd.DataFrame, judged: Sequence[Judgement]
) -> Recommendation:
    point, found, baseline_rows = choice.point, choice.confirmation, baseline_rows_of(rows)
    missed = misses(point, rule.slo)
    same, own_best = at_level(baseline_rows, point["level"]), rule.best(lasting(baseline_rows))
    is_baseline = point["deployment_hash"] in {row["deployment_hash"] for row in baseline_rows}
    reference = own_best if rule.slo and not missed else same
    versus = None
    if reference is not None and not is_baseline:
        versus = gain(point, reference, rule.throughput)
    confirmed = found is not None and found.verdict != INCONCLUSIVE
    overlap = "" if found else overlap_sentence(point, reference, versus, rule.throughput)
    sentences = (
        rule_sentence(rule.slo, rule.preference, missed),
        choice.why or overlap,
        ties_sentence(point, choice.ties),
        confirmation_sentence(found) if found else "",
        unstable_sentence(row_dict(row) for row in _unstable(frame)),
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
            confirmation=found,
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
        shortfalls=shortfalls(point, lasting(rows), rule.slo) if missed else (),
        ties=choice.ties,
        predicted=bool(point.get("predicted", False)),
        confirmation=found,
        confirmations=tuple(judged),
    )


def _unstable(frame: pd.DataFrame) -> list[Any]:
    return frame[frame["unstable"].astype(bool)].to_dict("records")


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
