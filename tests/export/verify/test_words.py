"""What a verification says, and what it leaves in the folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import SelectConfig
from sweeper.export.verify.judge import Figure, LimitCheck, Status, overall
from sweeper.export.verify.outcome import Argument, Verification
from sweeper.export.verify.text import paragraph, render, write_verification
from sweeper.export.verify.words import of_failure, of_judgement
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.verdicts import Verdict
from tests.factories import outcome, point
from tests.pareto.again import searched

CHOSEN = recommend(points_frame(searched(100.0, 130.0)), SelectConfig())
BASE = Verification(
    status=Status.CANNOT_TELL,
    reasons=(),
    study="chat",
    trial=1,
    level="concurrency 8",
    config_sha256="0" * 64,
    verified_at="2026-11-30T10:00:00+00:00",
)


def figure(metric: str, status: Status, **fields: Any) -> Figure:
    return Figure(
        **{
            "metric": metric,
            "promised": 100.0,
            "verified": 90.0,
            "promised_interval": (98.0, 102.0),
            "verified_interval": None,
            "change_percent": -10.0,
            "margin_percent": 2.0,
            "status": status,
            "why": "" if status is Status.KEPT else "worse by more than launches differ",
            **fields,
        }
    )


def judged(*parts: Figure | LimitCheck, **fields: Any) -> Verification:
    figures = tuple(one for one in parts if isinstance(one, Figure))
    limits = tuple(one for one in parts if isinstance(one, LimitCheck))
    status = overall([one.status for one in parts])
    started = replace(BASE, status=status, launches=1, requests=64, **fields).without_secrets()
    return of_judgement(replace(started, figures=figures, limits=limits), CHOSEN, [point(8)])


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.CAPACITY, Status.NOT_KEPT),
        (Verdict.CRASH_UNDER_LOAD, Status.NOT_KEPT),
        (Verdict.INFEASIBLE_CONFIG, Status.NOT_KEPT),
        (Verdict.INFRA, Status.CANNOT_TELL),
        (Verdict.MEASUREMENT_INVALID, Status.CANNOT_TELL),
        (Verdict.STARTUP_TIMEOUT, Status.CANNOT_TELL),
    ],
)
def test_only_the_deployments_own_fault_breaks_its_promise(
    verdict: Verdict, expected: Status
) -> None:
    found = of_failure(BASE, outcome(1, verdict=verdict, cause="no room", remedy="make room"))
    assert found.status is expected
    assert "no room" in found.reasons[0] and found.remedy == "make room"
    assert "Started on 2026-11-30" in render(found)


def test_the_reason_names_what_is_broken_and_by_how_much() -> None:
    limit = LimitCheck("e2e_p95_ms", 500.0, 620.0, Status.NOT_KEPT, "beyond its limit")
    found = judged(figure("ttft_p95_ms", Status.KEPT), limit)
    assert found.reasons == ("limit e2e_p95_ms (620 of 500): beyond its limit",)
    slow = judged(figure("output_tokens_per_s", Status.NOT_KEPT))
    assert slow.reasons == ("output_tokens_per_s -10.0 %: worse by more than launches differ",)
    assert not slow.is_kept and slow.remedy


def test_a_loss_within_the_noise_is_kept_and_named() -> None:
    found = judged(figure("output_tokens_per_s", Status.KEPT))
    assert found.is_kept and "within the noise (output_tokens_per_s)" in found.reasons[0]
    better = judged(figure("output_tokens_per_s", Status.KEPT, change_percent=4.0))
    assert better.reasons == ("it gives every figure as promised or better",)
    assert better.remedy == ""


def test_what_was_started_and_is_not_what_was_measured_is_told() -> None:
    found = judged(
        figure("output_tokens_per_s", Status.NOT_KEPT),
        edits={"max_num_seqs": (64, 8)},
        changed={"engine.version": ("0.31.0", "0.32.0")},
        arguments=(Argument("max_num_seqs", 8, None, told=False),),
    )
    told = " ".join(found.notes)
    assert "max_num_seqs: 64 → 8" in told and "engine.version: 0.31.0 → 0.32.0" in told
    assert "does not tell max_num_seqs" in told
    assert "export anew" in found.remedy


def test_what_cannot_be_told_names_the_way_to_tell_it() -> None:
    unsure = figure("output_tokens_per_s", Status.CANNOT_TELL, margin_percent=None)
    found = judged(unsure)
    assert "verify=3" in found.remedy
    assert "nobody knows how much launches differ" in " ".join(found.notes)
    disturbed = judged(unsure, busy="Other programs used this machine.")
    assert disturbed.remedy.startswith("verify when nothing else uses the machine")
    assert "Other programs" in " ".join(disturbed.notes)


def test_it_fits_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    limit = LimitCheck("e2e_p95_ms", 500.0, 480.0, Status.KEPT)
    text = render(judged(figure("output_tokens_per_s", Status.CANNOT_TELL), limit))
    table = text[text.index("promised and started") :].split("\n\n")
    assert max(map(len, table[1].splitlines())) <= 100
    assert "cannot tell" in text and "at most 500" in text


def test_the_folder_says_it_once_however_often_it_is_verified(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Recommended\n\nText.\n")
    write_verification(tmp_path, judged(figure("output_tokens_per_s", Status.KEPT)))
    again = judged(figure("output_tokens_per_s", Status.NOT_KEPT))
    write_verification(tmp_path, again)
    readme = (tmp_path / "README.md").read_text()
    assert readme.startswith("# Recommended\n\nText.\n\n## Verified\n\n**It does not keep")
    assert readme.count("## Verified") == 1
    assert json.loads((tmp_path / "verified.json").read_text())["status"] == "not kept"


def test_nothing_secret_and_no_markup_gets_into_the_files(tmp_path: Path) -> None:
    hostile = judged(
        figure("output_tokens_per_s", Status.KEPT),
        edits={"hf_token": (None, "hf_abcdefghijklmnopqrstuvwxyz012345")},
        arguments=(Argument("api_key", "sk-very-secret-value", None, told=False),),
        changed={"engine.version": ("1", "<script>alert(1)</script>")},
    )
    write_verification(tmp_path, hostile)
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "hf_abcdef" not in written and "very-secret" not in written
    assert "<script>" not in paragraph(hostile)
