"""What is recommended, and the sentences that say how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sweeper.metrics.percentiles import is_low_confidence
from sweeper.pareto.compare import Gain, interval_text
from sweeper.pareto.confirmed import NO_GAIN, Judgement
from sweeper.pareto.confirmed_words import no_gain_headline, verdict_text
from sweeper.pareto.cost import Price, cost_text
from sweeper.pareto.rule import Missed, figure_of, is_floor
from sweeper.pareto.shortfall import Shortfall
from sweeper.trial.outcome import AGREEMENT

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Recommendation:
    """An operating point, and what can honestly be said of it.

    Attributes:
        point: the row (see `row_dict`): trial, level, deployment, metrics, intervals.
        reason: why this one, in sentences.
        headline: the verdict in one sentence.
        keeps_slo: True if every promise is kept (or none was made). If False, `point` is the
            nearest miss and must not be presented as keeping anything.
        confirmed: True only if fresh launches of it and of the defaults came to a verdict.
        is_baseline: True if the engine's defaults are recommended.
        slo: limit → value, those that were set.
        baseline: the engine's defaults at the same load level, None without a valid point.
        baseline_best: the engine's defaults at their own best load under the same rule.
        ratios: metric → point / baseline at the same load level.
        ratios_best: metric → point / baseline at its own best load.
        gain: throughput against `baseline_best` under an SLO, else against `baseline`.
        alternatives: other points of the front worth a look, each with a ``why``.
        missed: broken promises of `point`, empty if it keeps them all.
        predicted: True if the numbers are predicted, not measured.
        confirmation: what the launches that were to confirm it say, None if there were none. Of
            the defaults it is that of the best deployment that was not shown to be better.
        confirmations: of everything that was launched again, the search's best first.
        to_confirm: the command that would confirm it, empty where nothing is to be confirmed.
        prefer: by what it was chosen among those that keep the promise, see `sweeper.pareto.rule`.
        shortfalls: of a nearest miss: every limit, how far it is from it, and who comes nearest.
        ties: points of other deployments that noise does not tell from it.
        costs: what a million output tokens cost, see `sweeper.pareto.cost`.
        price: of a device, by which; None where none is known.
    """

    point: dict[str, Any]
    reason: str
    headline: str
    keeps_slo: bool
    confirmed: bool
    is_baseline: bool
    slo: dict[str, float]
    baseline: dict[str, Any] | None
    baseline_best: dict[str, Any] | None
    ratios: dict[str, float]
    ratios_best: dict[str, float]
    gain: Gain | None
    alternatives: tuple[dict[str, Any], ...] = ()
    missed: Missed = field(default_factory=dict)
    predicted: bool = False
    confirmation: Judgement | None = None
    confirmations: tuple[Judgement, ...] = ()
    to_confirm: str = ""
    prefer: str = "throughput"
    shortfalls: tuple[Shortfall, ...] = ()
    ties: tuple[dict[str, Any], ...] = ()
    costs: dict[str, float] = field(default_factory=dict)
    price: Price | None = None

    @property
    def trial(self) -> int:
        """Number of the recommended trial."""
        return int(self.point["trial"])

    @property
    def level(self) -> str:
        """Name of the load level at which the numbers hold."""
        return str(self.point["level"])

    @property
    def load_kind(self) -> str:
        """closed | open | ramp | replay | batch, see `sweeper.load.level`."""
        return str(self.point["load_kind"])

    @property
    def concurrency(self) -> int | None:
        """Streams asked for, None where requests arrived by the clock."""
        asked = self.point.get("concurrency")
        return None if asked is None else int(asked)

    @property
    def rate_per_s(self) -> float | None:
        """Requests a second offered, None in a closed loop."""
        asked = self.point.get("rate_per_s")
        return None if asked is None else float(asked)

    @property
    def deployment(self) -> dict[str, Any]:
        """Canonical parameters; what the engine's defaults rule is left out."""
        return dict(self.point["deployment"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def headline(
    point: Row,
    *,
    missed: Missed,
    versus: Gain | None,
    is_baseline: bool,
    throughput: str,
    slo: bool,
    confirmation: Judgement | None = None,
) -> str:
    """The verdict in one sentence; of predicted figures it says so, whatever the verdict."""
    text = _headline(
        point,
        missed=missed,
        versus=versus,
        is_baseline=is_baseline,
        throughput=throughput,
        slo=slo,
        confirmation=confirmation,
    )
    return f"{text.removesuffix('.')} (predicted)." if point.get("predicted") else text


def _headline(
    point: Row,
    *,
    missed: Missed,
    versus: Gain | None,
    is_baseline: bool,
    throughput: str,
    slo: bool,
    confirmation: Judgement | None,
) -> str:
    where = f"Trial {point['trial']} at {point['level']}"
    if missed:
        return f"Nothing keeps the SLO. {where} comes nearest: {miss_text(missed, point)}."
    if is_baseline:
        return _of_the_defaults(where, confirmation, slo=slo)
    unit = "output tokens/s per device" if throughput.endswith("per_gpu") else throughput
    text = f"{where}: {point[throughput]:.4g} {unit}"
    if confirmation is not None:
        return f"{text}; {verdict_text(confirmation, slo=slo)}."
    if versus is None:
        nothing = (
            "have no valid point that keeps the SLO" if slo else "have no valid point at this load"
        )
        return f"{text}; the engine's defaults {nothing}."
    than = (
        "the defaults at the best load that keeps the SLO"
        if slo
        else "the defaults at the same load"
    )
    # A prediction has no intervals to lie within.
    is_sure = versus.separated or point.get("predicted")
    sure = "" if is_sure else ", within the measurement's intervals"
    return f"{text}, {versus.percent:+.1f} % against {than}{sure}."


def _of_the_defaults(where: str, confirmation: Judgement | None, *, slo: bool) -> str:
    if confirmation is None:
        return f"{where}, the engine's defaults: by this rule nothing better was found."
    if confirmation.verdict == NO_GAIN:
        return no_gain_headline(where, confirmation)
    return f"{where}, the engine's defaults; {verdict_text(confirmation, slo=slo)}."


def overlap_sentence(point: Row, reference: Row | None, versus: Gain | None, metric: str) -> str:
    """Says so if the gain over the defaults is not significant; else empty."""
    if versus is None or versus.separated or reference is None or point.get("predicted"):
        return ""
    ours, theirs = interval_text(point, metric), interval_text(reference, metric)
    if not ours or not theirs:
        return "Its gain has no confidence interval."
    return f"Its throughput {ours} and the defaults' {theirs} overlap: the gain is not significant."


_CHOSEN_BY = {
    "throughput": "Highest throughput",
    "latency": "Lowest latency",
    "quality": "Highest quality",
    "cost": "Lowest cost per output token",
    "balanced": "Knee of the front of throughput, latency and quality",
}


def rule_sentence(slo: Mapping[str, float], prefer: str, missed: Missed) -> str:
    """The rule by which the point was chosen."""
    promises = ", ".join(f"{name}={value:g}" for name, value in slo.items())
    if missed:
        return f"No valid point keeps {promises}; this is the nearest miss, not a promise."
    if slo:
        return f"{_CHOSEN_BY[prefer]} among the points that keep {promises}."
    return f"{_CHOSEN_BY[prefer]} (no SLO was set)."


def cost_sentence(point: Row, price: Price | None) -> str:
    """What it costs, and what the order rests on."""
    text = f"It takes {cost_text(point, price)}"
    if price is None:
        return (
            f"{text}; no price is known (hardware.price_per_hour), and on one kind of device the "
            "order of costs is the same."
        )
    return f"{text}, at {price.per_hour:g} {price.currency} for a device and hour."


_MAX_TIES = 3


def ties_sentence(point: Row, ties: Sequence[Row]) -> str:
    """Which deployments noise does not tell from the one that was chosen."""
    if not ties:
        return ""
    named = [f"trial {row['trial']} at {row['level']}" for row in ties[:_MAX_TIES]]
    more = f" and {len(ties) - _MAX_TIES} more" if len(ties) > _MAX_TIES else ""
    return f"Within the noise of this machine {', '.join(named)}{more} does as well."


def asked_sentence(point: Row) -> str:
    """For a trial that was named by the user, whatever the rule would choose."""
    return (
        f"Trial {point['trial']} was asked for; among its own points the same rule chose this one."
    )


def tie_sentence(best: Row, versus: Gain) -> str:
    """Why the defaults are preferred to a faster measured deployment."""
    return (
        f"Trial {best['trial']} measured {versus.percent:+.1f} % in throughput, but its intervals "
        "and those of the engine's defaults lie inside one another: there is no significant gain "
        "over the default, and the defaults are the simpler deployment."
    )


def noise_sentence(best: Row, versus: Gain) -> str:
    """Why the defaults are preferred to a deployment that is faster within the machine's noise."""
    return (
        f"Trial {best['trial']} measured {versus.percent:+.1f} % in throughput, which is within "
        "what two launches of one deployment differ by on this machine: there is no significant "
        "gain over the default, and the defaults are the simpler deployment."
    )


def quality_sentence(point: Row, baseline: Row | None) -> str:
    """What is known of the output, and which quality that is."""
    if "quality" not in point:
        return "Its quality was not measured."
    agrees = point["quality_name"] == AGREEMENT
    if agrees:
        text = f"It agrees with the reference in {point['quality_shown']} of the tokens"
    else:
        text = f"Its quality ({point['quality_name']}) is {point['quality_shown']}"
    if point["kind"] == "baseline":
        return f"{text}, read back by itself." if agrees else f"{text}."
    if baseline is None or "quality" not in baseline:
        return f"{text}."
    own = f"the defaults{' in' if agrees else ''} {baseline['quality_shown']}"
    if point.get("quality_settled") == baseline["quality"]:
        return f"{text}, {own}: no change within the error."
    return f"{text}, {own}: a change beyond the error."


def confidence_sentence(point: Row, latency: str, confirmed: bool) -> str:
    """What weakens the numbers."""
    parts = []
    if point.get("saturated"):
        parts.append(
            "Requests came faster than they were served: the latencies grow for as long as this "
            "load lasts."
        )
    if latency in str(point.get("low_confidence", "")).split():
        parts.append(f"{latency} {doubt(point)}.")
    if point.get("predicted"):
        parts.append("These numbers are predicted, not measured.")
    elif not confirmed:
        launches = int(point.get("launches", 1))
        often = "measured once" if launches == 1 else f"launched {launches} times"
        parts.append(f"Not confirmed: it was {often}.")
    return " ".join(parts)


def doubt(point: Row) -> str:
    """Why a figure that is marked as uncertain is so."""
    if is_low_confidence(int(point["n"]), 95):
        return f"rests on few requests (n={point['n']})"
    if point.get("saturated"):
        return "depends on how long one measures"
    return "was measured before the server had settled"


def miss_text(missed: Missed, point: Row) -> str:
    """Broken promises in words."""
    return ", ".join(_miss_text(name, factor, point) for name, factor in missed.items())


def _miss_text(name: str, factor: float | None, point: Row) -> str:
    if factor is not None:
        return f"{name} is {distance_text(name, factor)} its limit"
    if figure_of(point, name) is None:
        return f"{name} was not measured"
    return f"{name} is below its limit"


def distance_text(name: str, factor: float) -> str:
    """A miss by a factor of 1.5: ``50 % beyond`` a limit, ``33 % below`` one that is a floor."""
    percent = (1 - 1 / factor if is_floor(name) else factor - 1) * 100
    side = "below" if is_floor(name) else "beyond"
    return f"{percent:.0f} % {side}" if percent >= 10 else f"{percent:.2g} % {side}"
