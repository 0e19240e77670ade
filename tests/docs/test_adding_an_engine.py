"""docs/adding-an-engine.md, followed: the toy is made of the page's blocks and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sweeper.engine
from sweeper.engine.registry import ENGINES
from sweeper.verbs import finish
from sweeper.verdicts import Verdict
from tests.docs import desk as desks
from tests.docs.blocks import ROOT, blocks_of
from tests.engine.contract import CONTRACT, Case, Launches

PAGE = ROOT / "docs/adding-an-engine.md"
TOY = Case("toy", works={"max_num_seqs": 8}, dies={"max_num_seqs": 128}, verdict=Verdict.CAPACITY)
SPACE = """
parameters:
  max_num_seqs: {choices: [1, 2, 128], default: 2}
seeds:
  - {max_num_seqs: 128}
"""


def written(folder: Path) -> None:
    """Each block in the file that the line before it names."""
    lines = PAGE.read_text().splitlines()
    for block in blocks_of(PAGE):
        named = lines[block.line - 4].strip().strip(":`") if block.line > 3 else ""
        if block.language == "python" and named.startswith("sweeper/engine/toy/"):
            path = folder / "toy" / Path(named).name
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text + "\n")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder `toy`, where the package looks for engines, and its line in the table."""
    written(tmp_path)
    monkeypatch.setattr(
        sweeper.engine, "__path__", [*sweeper.engine.__path__, str(tmp_path)], raising=True
    )
    registration = next(b.text for b in blocks_of(PAGE) if b.text.startswith("ENGINES["))
    monkeypatch.setitem(ENGINES, "toy", "")  # taken out again at the end
    exec(registration, {"ENGINES": ENGINES})
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("sweeper.engine.toy")]:
        del sys.modules[name]


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_the_toy_keeps_the_contract(toy: Path, clause: Callable[[Launches], None]) -> None:
    launches = Launches(TOY, toy)
    try:
        clause(launches)
    finally:
        launches.end()


def test_a_whole_study_runs_on_the_toy(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Baseline, a deployment that fails with its figure, and one from the sampler."""
    monkeypatch.chdir(toy)
    # Its report is that of any study, and takes longer than its launches.
    monkeypatch.setattr(finish, "write_report", lambda *_: None)
    (toy / "slots.yaml").write_text(SPACE)
    settings = next(b.text for b in blocks_of(PAGE) if b.language == "yaml")
    (toy / "toy.yaml").write_text(settings)
    answer = desks.run(
        [
            "engine=toy.yaml", "model=qwen7b", "hardware=h100_80gb", "study=toy",
            "space=slots.yaml", "quality=none", "workload.input_tokens=16",
            "workload.output_tokens=8", "load.concurrency=[1,4]", "load.requests_per_stream=2",
            "sampler=random", "budget.launches=3", "tracking=none",
        ]
    )  # fmt: skip
    assert answer.code == 0, answer.out + answer.err
    study = sweeper.load_study("toy")
    ends = dict(zip(study.trials["param.max_num_seqs"], study.trials["verdict"], strict=True))
    assert ends.pop(128) == "CAPACITY" and set(ends.values()) == {"OK"}
    failed = study.trials.query("verdict == 'CAPACITY'").iloc[0]
    assert failed["remedy"] == "lower max_num_seqs" and study.source == "predicted"
    assert study.points["valid"].all() and set(study.points["level"]) == {
        "concurrency 1", "concurrency 4",
    }  # fmt: skip
    # One slot makes four streams wait for each other: the toy is really driven.
    waits = study.points.query("level == 'concurrency 4'").set_index("trial")["ttft_p95_ms"]
    one_slot = study.trials.query("`param.max_num_seqs` == 1")["trial"]
    assert waits[one_slot].min() > waits.min()
