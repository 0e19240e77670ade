from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.points import points_frame, row_dict
from sweeper.pareto.select import recommend
from sweeper.report.plots.hover import point_text
from sweeper.report.text import (
    only_default_worked,
    render_front,
    render_misses,
    render_status,
)
from sweeper.search.bounds.learn import learn
from sweeper.trial.progress import StudyProgress
from sweeper.verdicts import Verdict
from tests.factories import open_study, outcome, study

FRAME = points_frame(study())
CHOSEN = recommend(FRAME, SelectConfig(slo=SloConfig(e2e_p95_ms=1000)))


def test_table_marks_the_choice_and_shows_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = render_front(FRAME, CHOSEN)
    chosen = next(line for line in text.splitlines() if line.lstrip().startswith("►"))
    assert "150" in chosen
    assert "max_num_seqs=64" in chosen
    assert "baseline" in text
    assert CHOSEN.headline in text
    assert "\x1b" not in text


def test_the_quality_that_ranks_is_named_and_written_as_people_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    figures = {"nats_per_token": 2.0, "nats_se": 0.01, "perplexity": 7.39}
    read = {"windows": 40, "change_nats": 0.0, "change_se_nats": 0.01}
    outcomes = study()
    for trial in outcomes:
        if trial.quality is not None:
            trial.quality = replace(
                trial.quality, ranked_by="perplexity", perplexity={**figures, **read}
            )
    frame = points_frame(outcomes)
    text = render_front(frame, recommend(frame, SelectConfig()))
    assert "perplexity" in text
    assert "7.39" in text
    assert "-2" not in text
    hover = point_text(row_dict(frame.iloc[0].to_dict()))
    assert "perplexity: 7.39" in hover
    assert "agreement with the reference" in render_front(FRAME, CHOSEN)


def test_json_and_csv_say_the_same() -> None:
    data = json.loads(render_front(FRAME, CHOSEN, "json"))
    rows = list(csv.DictReader(io.StringIO(render_front(FRAME, CHOSEN, "csv"))))
    assert data["recommendation"]["point"]["trial"] == 1
    assert [(int(r["trial"]), int(r["concurrency"])) for r in rows] == [
        (r["trial"], r["concurrency"]) for r in data["front"]
    ]
    assert json.loads(rows[0]["deployment"]) == data["front"][0]["deployment"]
    values = [r["output_tokens_per_s"] for r in data["front"]]
    assert values == sorted(values)


def test_nothing_feasible_renders_in_every_form() -> None:
    empty = points_frame([])
    assert render_front(empty, None) == "no feasible operating point"
    assert json.loads(render_front(empty, None, "json")) == {"front": [], "recommendation": None}
    assert render_front(empty, None, "csv").startswith("trial,")


def test_unknown_form_is_a_bug() -> None:
    with pytest.raises(ValueError, match="xml"):
        render_front(FRAME, CHOSEN, "xml")


def test_status_shows_causes_and_the_budget() -> None:
    told = StudyProgress(3, "", {}, 600.0, 500.0, 700.0, "4 of 20 launches", "an hour buys little")
    text = " ".join(render_status(study(), "tiny", told).split())
    assert "No available memory" in text
    assert "used: 4 of 20 launches;" in text
    assert "left: about 10 min 00 s (8 min 20 s to 11 min 40 s)" in text
    assert "an hour buys little" in text
    assert "1 CAPACITY, 1 INFEASIBLE_CONFIG, 3 OK" in text


def test_status_of_nothing() -> None:
    assert "none yet" in render_status([])


def test_status_says_why_a_launch_was_cut() -> None:
    cut = outcome(1, partial="cut after concurrency 8: it is slower")
    assert "cut after concurrency 8: it is slower" in " ".join(render_status([cut]).split())


def test_square_brackets_are_text_not_markup() -> None:
    text = render_status([outcome(1, verdict=Verdict.INFRA, cause="bad [red]x[/red] [/nope]")])
    assert "[red]x[/red] [/nope]" in " ".join(text.split())


def test_equal_failures_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    failures = [outcome(n, verdict=Verdict.CAPACITY) for n in range(7)]
    text = render_misses([*failures, outcome(7)])
    assert text.count("CAPACITY: No available memory") == 1
    assert "raise gpu_memory_utilization" in text
    assert " 7 " in text
    assert render_misses([outcome(0)]) == ""


def test_a_study_in_which_only_the_default_worked_is_told_so() -> None:
    base = outcome(0)
    failed = [outcome(n, verdict=Verdict.CAPACITY) for n in (1, 2)]
    assert "tried" in only_default_worked([base])
    assert only_default_worked([base, *failed]) == (
        "No deployment but the default worked: all 2 others failed."
    )
    assert "the only other one failed" in only_default_worked([base, failed[0]])
    assert only_default_worked([base, *failed, outcome(3)]) == ""


def test_status_tells_what_was_learnt_and_how_often_it_refused() -> None:
    taught = outcome(
        1, deployment={"gpu_memory_utilization": 0.5}, verdict=Verdict.CAPACITY,
        learnt={"rule": "no_kv_memory"},
    )  # fmt: skip
    refused = outcome(
        2, deployment={"gpu_memory_utilization": 0.4}, verdict=Verdict.CAPACITY, launched=False,
        learnt={"rule": "learnt_bound", "bound": "no_kv_memory-1"},
    )  # fmt: skip
    told = [outcome(0, manifest={}), taught, refused]
    words = " ".join(render_status(told, "s", None, learn(told)).split())
    assert "no_kv_memory-1 holds 1 gpu_memory_utilization ≤ 0.5" in words
    assert "bounds study=s drop=ID" in words
    assert "learnt" not in render_status([outcome(0)], "s", None, learn([outcome(0)]))


def test_front_at_request_rates_has_names_and_no_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    frame = points_frame(open_study())
    text = render_front(frame, recommend(frame, SelectConfig(slo=SloConfig(e2e_p95_ms=500))))
    chosen = next(line for line in text.splitlines() if line.lstrip().startswith("►"))
    assert "2 requests/s (poisson)" in chosen
    assert "4 requests/s (poisson), saturated" in text
    assert "alternative (lowest latency): trial 1 at 1 requests/s (poisson)" in text
    assert "None" not in text
    assert "nan" not in text


def test_text_from_outside_does_not_steer_the_terminal() -> None:
    failed = outcome(1, verdict=Verdict.INFRA, cause="bad \x1b[2J text", learnt={})
    assert "\x1b" not in render_status([failed]) + render_misses([failed])
