"""MLflow's own pages on a study, in a headless browser: what a reviewer opens, and what is drawn.

No real engine: the study is a mock's. `SHOTS=FOLDER pytest tests/e2e/test_mlflow_in_browser.py`
keeps a picture of every page.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from sweeper.tracking.mlflow_view import view_route
from tests.browser import PROGRAMS, Page, browser, program
from tests.tracking.test_metrics_reference import documented

pytestmark = [
    pytest.mark.skipif(program() is None, reason=f"no browser: none of {', '.join(PROGRAMS)}"),
    pytest.mark.asyncio(loop_scope="module"),
]
SPACE = """
name: small
parameters:
  max_num_seqs: {choices: [4, 16], default: 16}
  quantization: {choices: [none, fp8_per_tensor]}
  tensor_parallel_size: {choices: [1, 3], default: 1}
seeds:
  - {quantization: fp8_per_tensor}
  - {tensor_parallel_size: 3}
"""
SETTINGS = (
    "engine=mock", "hardware=h100_80gb", "model=qwen7b", "space=small.yaml", "study=seen",
    "workload.input_tokens=16", "workload.output_tokens=8", "load.concurrency=[1,4]",
    "load.requests_per_stream=2", "quality.max_prompts=2", "quality.reference_tokens=8",
    "budget.launches=3", "sampler=random", "confirm=none", "select.slo.e2e_p95_ms=60000",
)  # fmt: skip
TRAINING = "workflowType=machine_learning"
NOISE = {
    # MLflow asks a server without users who the user is.
    "Failed to load resource: the server responded with a status of 404 (NOT FOUND)",
    "Failed to load resource: the server responded with a status of 404 (Not Found)",
    # Of a browser without a graphics card, when plotly draws parallel coordinates in WebGL.
    "Automatic fallback to software WebGL has been deprecated.",
    "GPU stall due to ReadPixels",
    # Chromium's word for a page that moved while it was measured; MLflow prints it as an error.
    "ResizeObserver loop completed with undelivered notifications.",
}
SIZE = (1700, 1400)
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Seen:
    """A study in an MLflow that answers."""

    base: str
    experiment: str
    parent: str
    runs: dict[str, Any]

    def url(self, route: str) -> str:
        return f"{self.base}/{route}"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "small.yaml").write_text(SPACE)
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, "-m", "sweeper", *SETTINGS],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    with socket.create_server(("127.0.0.1", 0)) as probe:
        base = f"http://127.0.0.1:{probe.getsockname()[1]}"
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "ui", "--port", base.rpartition(":")[2], "--workers", "1",
         "--backend-store-uri", f"sqlite:///{folder}/studies/mlflow.db"],
        cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield told_by(base, server)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def told_by(base: str, server: subprocess.Popen[bytes]) -> Seen:
    """The study as the server tells it, once it answers."""
    deadline = time.monotonic() + 180
    while True:
        try:
            found = asked(base, "experiments/search", {"max_results": 10})["experiments"]
            break
        except (OSError, urllib.error.URLError):
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
    experiment = next(e["experiment_id"] for e in found if e["name"] == "sweeper")
    runs = asked(base, "runs/search", {"experiment_ids": [experiment], "max_results": 100})["runs"]
    named = {run["info"]["run_name"]: run for run in runs}
    return Seen(base, experiment, named["seen"]["info"]["run_id"], named)


def asked(base: str, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{base}/api/2.0/mlflow/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def page() -> AsyncIterator[Page]:
    async with browser() as tab:
        await tab.size(*SIZE)
        yield tab


async def opened(page: Page, url: str, ready: str, name: str) -> None:
    """Open an address, wait until an expression is true, and complain of any error of ours."""
    await page.open("about:blank")  # an address that differs in its fragment alone loads nothing
    page.problems.clear()
    await page.open(url)
    await page.until(ready, PATIENCE_S)
    if folder := os.environ.get("SHOTS"):
        await page.picture(Path(folder) / f"{name}.png")
    ours = [text for text in page.problems if not any(noise in text for noise in NOISE)]
    assert ours == [], "\n".join(ours)


def says(*words: str) -> str:
    """True once the page shows all of them."""
    return f"{json.dumps(words)}.every(word => document.body.innerText.includes(word))"


def drawn(count: int, selector: str) -> str:
    return f"document.querySelectorAll({json.dumps(selector)}).length >= {count}"


async def test_the_parent_run_is_read_without_a_click(page: Page, seen: Seen) -> None:
    url = seen.url(f"#/experiments/{seen.experiment}/runs/{seen.parent}?{TRAINING}")
    await opened(page, url, says("Show more", "gain_percent", "Logged models (2)"), "parent")
    text = await page.run("document.body.innerText")
    assert "Charts of this study" in text, "under the verdict, before the fold"
    assert "synthetic (" in text, "the data set"
    headline = seen.runs["seen"]["data"]["tags"]
    told = next(tag["value"] for tag in headline if tag["key"] == "headline")
    assert told in text
    width = "document.querySelectorAll('th, [role=columnheader]')"
    value = f"[...{width}].find(one => one.innerText.trim() === 'Value').getBoundingClientRect().x"
    assert await page.run(value) < SIZE[0], "the figures are on the screen"
    await pressed(page, "button", "Show more")
    await page.until(says("Show less"))
    tables = await page.run("document.querySelectorAll('table').length")
    assert tables >= 3, "Markdown's tables are tables"
    assert "| --- |" not in await page.run("document.body.innerText")


async def test_the_saved_view_draws_the_trials_without_set_up(page: Page, seen: Seen) -> None:
    url = seen.url(view_route(seen.experiment, seen.parent))
    ready = f"{drawn(5, '.js-plotly-plot')} && {drawn(3, '.scatterlayer .point, .points path')}"
    await opened(page, url, ready, "view")
    text = await page.run("document.body.innerText")
    assert "study seen" in text and "Load ladder" in text and "Parallel Coordinates" in text
    trials = len(seen.runs) - 1
    assert f"{trials} matching runs" in text


async def test_runs_compared_have_their_plots_without_set_up(page: Page, seen: Seen) -> None:
    ok = [
        run["info"]["run_id"]
        for run in seen.runs.values()
        if run["info"]["run_id"] != seen.parent and run["info"]["status"] == "FINISHED"
    ]
    chosen = f"runs={quote(json.dumps(ok))}&experiments={quote(json.dumps([seen.experiment]))}"
    url = seen.url(f"#/compare-runs?{chosen}&{TRAINING}")
    await opened(page, url, drawn(1, ".parcoords"), "compared")
    text = await page.run("document.body.innerText")
    assert f"Comparing {len(ok)} Runs" in text
    offered = await page.run("document.querySelector('.parcoords').textContent")
    assert "best_output_tokens_per_s_per_gpu" in offered, "the metric that is offered first"
    await pressed(page, "[role=tab]", "Scatter Plot")
    points = "document.querySelector('.js-plotly-plot')?.data?.[0]?.x?.length"
    await page.until(f"{says('X-axis:')} && {points} === {len(ok)}", PATIENCE_S)


async def pressed(page: Page, selector: str, words: str) -> None:
    """Press what has these words, as a mouse does."""
    place = await page.run(
        f"(() => {{ const found = [...document.querySelectorAll({json.dumps(selector)})]"
        f".find(one => one.innerText.trim() === {json.dumps(words)}).getBoundingClientRect();"
        "return [found.x + found.width / 2, found.y + found.height / 2]; })()"
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        await page.mouse(kind, *place)


async def test_models_are_named_with_their_quantization(page: Page, seen: Seen) -> None:
    url = seen.url(f"#/experiments/{seen.experiment}/models?{TRAINING}")
    await opened(page, url, says("qwen7b as published", "qwen7b fp8_per_tensor"), "models")


async def test_the_report_opens_among_the_artifacts(page: Page, seen: Seen) -> None:
    route = f"#/experiments/{seen.experiment}/runs/{seen.parent}/artifacts/report.html?{TRAINING}"
    await opened(page, seen.url(route), drawn(1, "iframe"), "report")
    text = await page.run("document.body.innerText")
    assert {"recommended", "pareto.csv", "report.md", "study.yaml"} <= set(text.split())


async def test_every_figure_of_the_study_is_in_the_reference(seen: Seen) -> None:
    page_names = frozenset().union(*documented().values())
    for name, run in seen.runs.items():
        written = {metric["key"].removeprefix("invalid/") for metric in run["data"]["metrics"]}
        assert written <= page_names, name
