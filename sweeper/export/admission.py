"""How much load a deployment's numbers stand for, as data and in words. Pure.

vLLM takes every request and queues what it cannot run: nothing in it refuses. Whatever limits
admission stands in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.load.level import CLOSED, OPEN
from sweeper.pareto.recommendation import Recommendation

BEYOND = "vLLM queues what comes above it and never refuses: limit admission in front of it"


def limit_of(chosen: Recommendation) -> int | None:
    """Requests under way at once up to which the numbers hold; None where none follows.

    Only a closed loop held a concurrency: that of a rate is an average, which half of the time is
    exceeded while every promise is kept. A load that the server could not bear is no limit.
    """
    if chosen.load_kind != CLOSED or chosen.point.get("saturated"):
        return None
    return chosen.concurrency


def admission(chosen: Recommendation) -> dict[str, Any]:
    """How much load the numbers stand for: plain data, only what the kind of load has.

    ``admission_limit_streams`` of a closed loop; ``admission_limit_requests_per_s`` of a steady
    rate, and ``concurrent_requests`` that were under way at it, on average. A ramp, a replay or a
    batch holds no load steady, and has neither limit.
    """
    told: dict[str, Any] = {"load_level": chosen.level}
    if chosen.load_kind == CLOSED:
        told["admission_limit_streams"] = chosen.concurrency
    elif chosen.load_kind == OPEN:
        told["admission_limit_requests_per_s"] = chosen.rate_per_s
    under_way = chosen.point.get("achieved_concurrency")
    if chosen.load_kind != CLOSED and under_way is not None:
        told["concurrent_requests"] = round(float(under_way), 2)
    return told


def sentence(chosen: Recommendation, limit: int | None) -> str:
    """The limit for a comment, one line."""
    if limit is not None:
        text = f"Admission limit: {limit} concurrent requests a server"
    elif chosen.point.get("saturated"):
        return "No admission limit: the server could not keep up with this load. Admit less."
    elif chosen.load_kind == OPEN:
        text = f"Admission limit: {chosen.rate_per_s:g} requests/s a server"
    else:
        return "No admission limit: the load that was measured held nothing steady."
    return f"{text}. {BEYOND}."


def markdown(chosen: Recommendation, limit: int | None) -> str:
    """The limit for the README: bold numbers, a warning where the server could not keep up."""
    told = admission(chosen)
    beyond = f"{BEYOND}; add replicas for more."
    if (streams := told.get("admission_limit_streams")) is not None:
        text = f"The numbers hold up to **{streams} concurrent streams** a server. {beyond}"
    elif (rate := told.get("admission_limit_requests_per_s")) is not None:
        text = f"The numbers hold up to **{rate:g} requests/s** a server{_arrivals(told)}. {beyond}"
    else:
        text = (
            f"Measured with a **{told['load_level']}**{_under_way(told)}. It held no load steady, "
            "so that no limit for admission follows from it: measure one with load=closed or "
            "load=open."
        )
    if limit is None and chosen.point.get("saturated"):
        text += (
            "\n\n> **The server could not keep up with this load.** Its latencies grow for as long "
            "as the load lasts: admit less."
        )
    return text


def _arrivals(told: Mapping[str, Any]) -> str:
    """The pattern of arrivals, from the level's name, and how many requests were under way."""
    _, _, pattern = str(told["load_level"]).partition(" (")
    return f" ({pattern.removesuffix(')')} arrivals{_under_way(told)})"


def _under_way(told: Mapping[str, Any]) -> str:
    requests = told.get("concurrent_requests")
    return "" if requests is None else f", {requests:g} of them under way on average"
