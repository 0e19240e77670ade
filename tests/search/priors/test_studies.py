from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.errors import ConfigError
from sweeper.search.priors.studies import StudiesPrior, family, make
from sweeper.tracking.journal import Journal
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.search.priors.made import config, curve, measured, setup, trial

H100 = {"model": {"name": "qwen7b", "path": "Qwen/X"}, "hardware": {"name": "NVIDIA H100"}}
OTHER = {"model": {"name": "llama3_8b", "path": "meta/L"}, "hardware": {"name": "NVIDIA H100"}}
SAME_GPU = {**OTHER, "hardware": {"name": "NVIDIA H200"}}


def journal(folder: Path, outcomes: list[TrialOutcome], manifest: dict[str, Any]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    written = Journal(folder / "trials.jsonl")
    for one in outcomes:
        one.manifest = manifest
        written.append(one)
    return str(folder)


def finished() -> list[TrialOutcome]:
    """The baseline, two deployments, one that failed and one that was cut short."""
    cut = measured(4, {"max_num_seqs": 128})
    cut.partial = "dominated"
    return [
        measured(0, {}),
        measured(1, {"max_num_seqs": 256, "block_size": 32}),
        measured(2, {"max_num_seqs": 8}),
        trial(3, {"max_num_seqs": 16}, verdict=Verdict.CAPACITY),
        cut,
    ]


def prior(tmp_path: Path, outcomes: list[TrialOutcome]) -> StudiesPrior:
    path = journal(tmp_path / "other", outcomes, H100)
    made = make(setup(tmp_path, config(studies=[path])), print)
    assert isinstance(made, StudiesPrior)
    return made


def test_what_was_measured_there_is_predicted_here(tmp_path: Path) -> None:
    known, default = prior(tmp_path, finished()).predict([{"max_num_seqs": 256}, {}])
    assert known is not None and default is not None
    assert not known.inferred
    assert [point.metrics for point in known.points] == [p.metrics for p in curve(16.0)]
    assert [point.metrics for point in default.points] == [p.metrics for p in curve(8.0)]


def test_between_them_is_inferred_and_failures_and_cut_launches_are_left_out(
    tmp_path: Path,
) -> None:
    between, failed = prior(tmp_path, finished()).predict(
        [{"max_num_seqs": 128}, {"max_num_seqs": 16}]
    )
    assert between is not None and failed is not None
    assert between.inferred and failed.inferred
    throughput = between.points[0].metrics["output_tokens_per_s_per_gpu"]
    assert 8.0 < throughput < 16.0


def test_parameters_that_only_one_of_the_studies_has_are_named(tmp_path: Path) -> None:
    notes = " ".join(prior(tmp_path, finished()).notes)
    assert "block_size: not in this space" in notes
    assert "tensor_parallel_size: always at the default there" in notes


def test_the_first_study_that_knows_is_asked(tmp_path: Path) -> None:
    far = journal(tmp_path / "b", [measured(0, {}, speed=lambda _: 99.0)], H100)
    near = journal(tmp_path / "a", finished(), H100)
    made = make(setup(tmp_path, config(studies=[near, f"{far}/trials.jsonl"])), print)
    assert isinstance(made, StudiesPrior)
    (known,) = made.predict([{}])
    assert known is not None
    assert known.points[0].metrics["output_tokens_per_s_per_gpu"] == 8.0


def test_a_study_must_be_of_the_same_family_or_gpu(tmp_path: Path) -> None:
    stranger = journal(tmp_path / "stranger", finished(), OTHER)
    with pytest.raises(ConfigError, match=r"another model .*NVIDIA H100"):
        make(setup(tmp_path, config(studies=[stranger])), print)
    kin = journal(tmp_path / "kin", finished(), SAME_GPU)
    assert isinstance(make(setup(tmp_path, config(studies=[kin])), print), StudiesPrior)


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no") as missing:
        make(setup(tmp_path, config(studies=[str(tmp_path / "none")])), print)
    assert "studies/NAME" in missing.value.remedy
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "trials.jsonl").write_text("no json\n{}\n")
    with pytest.raises(ConfigError, match=r"prior\.studies"):
        make(setup(tmp_path, config(studies=[str(broken)])), print)
    empty = journal(tmp_path / "empty", [trial(0, {}, verdict=Verdict.CAPACITY)], H100)
    with pytest.raises(ConfigError, match="no measured trial"):
        make(setup(tmp_path, config(studies=[empty])), print)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("qwen7b", "qwen"),
        ("/models/Llama-3/", "llama"),
        ("7b", ""),
    ],
)
def test_families_go_by_the_first_word(name: str, expected: str) -> None:
    assert family(name) == expected
