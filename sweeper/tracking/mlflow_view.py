"""A saved view of a study: MLflow's run page opens with the charts that tell its story. Pure.

MLflow keeps the saved views of an experiment as its tags. What is in them is the page's own state,
as MLflow 3.17 writes it; a version that cannot read it shows its usual page instead.

docs/mlflow.md shows what it looks like.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

TAG_PREFIX = "mlflow.sharedViewState."
_MOST_PARAMS = 8
"""Axes of parameters that a parallel-coordinates plot stays readable with."""
_MOST_RUNS = 100
"""Runs in a chart; what MLflow draws at once."""

THROUGHPUT, LATENCY = "best_output_tokens_per_s_per_gpu", "best_e2e_p95_ms"
USER, QUALITY = "best_output_tokens_per_s_per_user", "quality"
_COLUMNS = ("verdict", "kind", "pareto", "recommended", "confirmation")
_LADDER = ("output_tokens_per_s_per_gpu", "e2e_p95_ms", "ttft_p95_ms", "tpot_p95_ms")


def view_key(parent: str) -> str:
    """By which an address names the view of a study."""
    return f"sweeper-{parent}"


def view_route(experiment_id: str, parent: str) -> str:
    """The page's address behind that of the server."""
    query = {
        "viewStateShareKey": view_key(parent),
        "compareRunsMode": "CHART",
        "workflowType": "machine_learning",
    }
    return f"#/experiments/{experiment_id}/runs?{urlencode(query)}"


def view_tag(study: str, parent: str, parameters: Sequence[str], made_ms: int) -> tuple[str, str]:
    """(key, value) of the experiment's tag.

    Args:
        study: its name, and the view's.
        parent: run id of the study.
        parameters: params that differ among its children, and are all numbers or all words: of
            others MLflow's parallel coordinates would leave runs out.
        made_ms: when, milliseconds since 1970.
    """
    state = json.dumps(_state(parent, parameters), separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(state.encode(), 9)).decode()
    told = {
        "name": f"study {study}",
        "createdAt": made_ms,
        "updatedAt": made_ms,
        "state": f"deflate;{packed}",
    }
    return f"{TAG_PREFIX}{view_key(parent)}", json.dumps(told)


def _state(parent: str, parameters: Sequence[str]) -> dict[str, Any]:
    """The page: this study's trials, the fastest first, what they are compared by, and charts."""
    shown = list(parameters[:_MOST_PARAMS])
    return {
        "searchFilter": f"tags.`mlflow.parentRunId` = '{parent}'",
        "orderByKey": f"metrics.`{THROUGHPUT}`",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": [
            *(f"tags.`{name}`" for name in _COLUMNS),
            *(f"metrics.`{name}`" for name in (THROUGHPUT, LATENCY, QUALITY)),
            *(f"params.`{name}`" for name in shown),
            "params.`model`",
        ],
        "runsExpanded": {parent: True},
        "runsHiddenMode": "SHOWALL",
        "compareRunSections": [_section("over"), _section("ladder")],
        "compareRunCharts": _charts(shown),
        "isAccordionReordered": True,
        "hideEmptyCharts": True,
    }


_SECTIONS = {
    "over": "Trials, each at its own highest throughput",
    "ladder": "Load ladder (the step is the concurrency)",
}


def _section(key: str) -> dict[str, Any]:
    return {
        "uuid": key,
        "name": _SECTIONS[key],
        "display": True,
        "isReordered": False,
        "deleted": False,
        "isGenerated": False,
        "columns": 2,
    }


def _charts(parameters: Sequence[str]) -> list[dict[str, Any]]:
    parallel = _chart("parallel", "PARALLEL", "over") | {
        "displayName": "Parameters and what they gave",
        "selectedParams": list(parameters),
        "selectedMetrics": [LATENCY, THROUGHPUT],
        "showAllRuns": False,
    }
    pairs = {"latency": (LATENCY, THROUGHPUT), "user": (USER, THROUGHPUT)}
    scatters = [
        _chart(key, "SCATTER", "over")
        | {"xaxis": {"key": x, "type": "METRIC"}, "yaxis": {"key": y, "type": "METRIC"}}
        for key, (x, y) in pairs.items()
    ]
    bar = _chart("bar", "BAR", "over") | {"metricKey": THROUGHPUT, "displayName": THROUGHPUT}
    lines = [
        _chart(f"ladder-{name}", "LINE", "ladder")
        | {
            "displayName": name,
            "metricKey": name,
            "selectedMetricKeys": [name],
            "xAxisKey": "step",
            "yAxisKey": "metric",
            "xAxisScaleType": "linear",
            "scaleType": "linear",
            "lineSmoothness": 0,
            "range": {},
        }
        for name in _LADDER
    ]
    return [*scatters, bar, parallel, *lines]


def _chart(key: str, kind: str, section: str) -> dict[str, Any]:
    return {
        "uuid": key,
        "type": kind,
        "runsCountToCompare": _MOST_RUNS,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
    }
