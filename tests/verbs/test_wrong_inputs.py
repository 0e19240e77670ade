"""Wrong inputs of every verb: one clear message, its remedy, the exit code, and nothing started.

In process, because a hundred commands would take minutes; `test_bad_input` runs some as commands.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.config.schema import SweeperConfig
from sweeper.config.stored import study_text
from sweeper.config.yaml_text import MAX_BYTES
from sweeper.tracking.journal import Journal
from sweeper.verdicts import Verdict
from tests.factories import outcome, study
from tests.yardstick import hydra_s, stretched

MOCK = ["engine=mock", "hardware=h100_80gb"]
SLOWEST_S = 1.0


def store(name: str) -> Path:
    """A finished study in the folder of studies."""
    root = Path("studies") / name
    root.mkdir(parents=True)
    (root / "study.yaml").write_text(study_text(SweeperConfig(study=name), {"name": name}))
    for item in study():
        Journal(root / "trials.jsonl").append(item)
    return root


def damage() -> None:
    """Studies with one thing wrong in each."""
    journal = store("damaged") / "trials.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], lines[1][:60], *lines[2:]]) + "\n")
    journal = store("newer") / "trials.jsonl"
    first = json.dumps({**json.loads(lines[0]), "schema_version": 99})
    journal.write_text("\n".join([first, *lines[1:]]) + "\n")
    settings = store("other") / "study.yaml"
    settings.write_text(settings.read_text().replace("config:\n", "config:\n  forgotten: 3\n"))
    (store("brokenyaml") / "study.yaml").write_text("identity: {a: [\n")
    (store("nosettings") / "study.yaml").unlink()
    journal = store("folder") / "trials.jsonl"
    journal.unlink()
    journal.mkdir()
    journal = store("infeasible") / "trials.jsonl"
    journal.unlink()
    Journal(journal).append(outcome(0, verdict=Verdict.CAPACITY))
    (store("empty") / "trials.jsonl").write_text("")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a study in order, studies that are not, and files of every wrong kind."""
    folder, before = tmp_path_factory.mktemp("wrong"), Path.cwd()
    os.chdir(folder)
    store("good")
    damage()
    files = {
        "broken.yaml": b"name: [a\n b: {",
        "empty.yaml": b"",
        "binary.yaml": bytes(range(256)) * 8,
        "latin.yaml": "café: 1\n".encode("latin-1"),
        "huge.yaml": b"a: " + b"x" * (MAX_BYTES + 1),
        "list.yaml": b"- 1\n",
        "wrongtype.yaml": b"parameters: 5\n",
        "typo.yaml": b"paramters: {}\n",
        "alias.yaml": b"a: &a [*a]\nb: *nothing\n",
        "good.yaml": b"name: x\nparameters:\n  max_num_seqs: {choices: [4, 8], default: 8}\n",
        "unknown.yaml": b"parameters:\n  warp_speed: {choices: [1, 2]}\n",
        "broken.json": b"{broken",
        "empty.json": b"",
        "other.json": b'{"x": 1}',
        "binary.log": bytes(range(256)) * 8,
        "text.log": b"hello\n",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "afolder").mkdir()
    yield folder
    os.chdir(before)


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong input that is taken for right fails here, and starts no server."""

    def started(*_: object) -> int:
        raise AssertionError("a study would have started")

    monkeypatch.setattr("sweeper.verbs.running.run_study", started)


# (command line, exit code, words of the message or the remedy)
WRONG: list[tuple[list[str], int, str]] = [
    # verbs and the shape of a command line
    (["sweeep"], 2, "did you mean `sweep`"),
    (["Pareto", "study=good"], 2, "did you mean `pareto`"),
    (["model", "qwen7b"], 2, "did you mean model=qwen7b"),
    (["--model", "qwen7b"], 2, "settings have no dashes"),
    (["=5"], 2, "no key before '='"),
    (["budget.launches==3"], 2, "two '='"),
    (["model@x=qwen7b"], 2, "'@' is not used"),
    (["~model"], 2, "cannot be left out"),
    (["load.concurrency=1,8"], 2, "[1,8]"),
    (["space.parameters.x={choices: [1"], 2, "is missing"),
    # keys, groups, values, units
    (["MODEL=qwen7b"], 2, "did you mean model"),
    (["budget.launchs=3"], 2, "did you mean budget.launches"),
    (["hydra.run.dir=x"], 2, "no configuration key hydra.run.dir"),
    (["engine.env.1B=2"], 2, "begins with a digit"),
    (["model=qwen7"], 2, "did you mean qwen7b"),
    (["model="], 2, "no option ''"),
    (["engine=vlm"], 2, "did you mean vllm"),
    (["hardware=h100"], 2, "h100_80gb"),
    (["quantize=[awq,foo]"], 2, "no option 'foo'"),
    (["budget.launches=abc"], 2, "a whole number"),
    (["budget.launches=1.5"], 2, "a whole number"),
    (["budget.launches=nan"], 2, "a whole number"),
    (["budget.launches=[1,2]"], 2, "a whole number"),
    (["budget.minutes=10min"], 2, "a number or null"),
    (["select.slo.ttft_p95_ms=500ms"], 2, "a number or null"),
    (["load.concurrency=8"], 2, "[1, 4, 8]"),
    (["load.concurrency=[1,nan]"], 2, "whole numbers"),
    (["tracking.enabled=maybe"], 2, "true or false"),
    (["model.facts=5"], 2, "a mapping"),
    # names that cannot be a folder's
    (["study=日本"], 2, "letters, digits"),
    (["study=a/b", *MOCK], 2, "has a slash"),
    (["study=..", *MOCK], 2, "begins with '.'"),
    (["status", "study=../../etc"], 2, "has a slash"),
    (["pareto", "study=mlflow.db"], 2, "taken by something else"),
    (["export", "study=" + "a" * 120], 2, "more than 100"),
    # files that are none
    (["space=missing.yaml"], 2, "does not exist"),
    (["space=broken.yaml"], 2, "not valid YAML: line 2"),
    (["space=empty.yaml"], 2, "holds nothing"),
    (["space=binary.yaml"], 2, "not a text file"),
    (["space=latin.yaml"], 2, "UTF-8"),
    (["space=huge.yaml"], 2, "more than 1000000"),
    (["space=list.yaml"], 2, "a list, not a mapping"),
    (["space=wrongtype.yaml"], 2, "space.parameters takes a mapping"),
    (["space=typo.yaml"], 2, "did you mean space.parameters"),
    (["space=alias.yaml"], 2, "not valid YAML"),
    (["space=unknown.yaml", *MOCK], 2, "unknown parameter warp_speed"),
    (["workload=file", "workload.path=empty.json", *MOCK], 2, "is empty"),
    (["workload=file", "workload.path=binary.log", *MOCK], 2, "not UTF-8"),
    (["model.path=afolder"], 2, "no config.json"),
    (["engine=replay", "engine.table=broken.json"], 2, "none of the tables"),
    (["studies_dir=text.log", *MOCK], 2, "is a file, not a folder"),
    (["cache_dir=text.log/x", *MOCK], 2, "is a file, not a folder"),
    (["engine.python=/no/python"], 2, "is not there"),
    (["engine.python=text.log"], 2, "cannot be executed"),
    # numbers and settings that cannot be
    (["load.concurrency=[8,1]", *MOCK], 2, "not strictly increasing"),
    (["load.concurrency=[1,99999999]", *MOCK], 2, "no ports"),
    (["load=open", "load.rate_per_s=[nan]", *MOCK], 2, "not a finite number"),
    (["load=open", "load.rate_per_s=[1e9]", *MOCK], 2, "would send"),
    (["engine.args.gpu_memory_utilization=nan", *MOCK], 2, "not a finite number"),
    (["budget.money=5", *MOCK], 2, "hardware.price_per_hour"),
    (["objective=slo", *MOCK], 2, "select.slo.ttft_p95_ms=500"),
    (["model.path=", *MOCK], 2, "model.path is empty"),
    (["export.targets=[foo]", *MOCK], 2, "'foo' is not known"),
    (["tracking.uri=./mlruns", *MOCK], 2, "sqlite:"),
    (["engine.base_url=http://x"], 2, "engine=openai"),
    # studies that are not there, not whole, or of another version
    (["resume"], 2, "studies here:"),
    (["resume", "study=absent"], 2, "there is no study `absent`"),
    (["status", "study=godo"], 2, "did you mean study=good"),
    (["pareto", "good"], 2, "did you mean study=good"),
    (["resume", "study=good", "model=qwen7b"], 2, "cannot be swapped"),
    (["status", "study=newer"], 1, "schema_version 99"),
    (["status", "study=other"], 2, "with other settings"),
    (["pareto", "study=damaged"], 1, "line 2"),
    (["pareto", "study=brokenyaml"], 2, "not valid YAML"),
    (["sync", "study=nosettings"], 1, "study.yaml is gone"),
    (["bounds", "study=folder"], 1, "Is a directory"),
    (["pareto", "study=infeasible"], 1, "status study="),
    (["pareto", "study=empty"], 1, "status study="),
    (["export", "study=infeasible"], 1, "status study="),
    # what verbs take of their own
    (["status", "foo=1"], 2, "study=NAME"),
    (["status", "studies_dir=/nowhere"], 2, "is not there"),
    (["status", "studies_dir=text.log"], 2, "is a file"),
    (["status", "study=good", "watch=maybe"], 2, "use one of false, true"),
    (["bounds", "study=good", "drop=xx"], 2, "drop=xx"),
    (["pareto", "study=good", "format=xml"], 2, "use one of table, json, csv"),
    (["pareto", "study=good", "select.slo.ttft=5"], 2, "ttft_p95_ms"),
    (["pareto", "study=good", "select.slo.ttft_p95_ms=-1"], 2, "must be above 0"),
    (["pareto", "study=good", "select.prefer=fast"], 2, "throughput"),
    (["export", "study=good", "target=k9s"], 2, "did you mean k8s"),
    (["export", "study=good", "trial=99"], 2, "trials are 0 to 4"),
    (["export", "study=good", "trial=-1"], 2, "trials are 0 to 4"),
    (["compare", "a=good/0"], 2, "b= is missing"),
    (["compare", "a=good/0", "b=good/99"], 2, "has no trial"),
    (["compare", "a=good/0", "b=broken.json"], 2, "neither JSON"),
    (["compare", "a=good/0", "b=other.json"], 2, "no known format"),
    (["compare", "a=good/0", "b=good/1", "c=3"], 2, "does not take c=3"),
    (["compare", "a=good/0", "b=good/1", "load=77"], 2, "load=77"),
    (["estimate", "hardware=h100"], 2, "h100_80gb"),
    (["estimate", "format=xml"], 2, "use one of table, json"),
    (["diagnose"], 2, "log=FILE"),
    (["diagnose", "text.log"], 2, "log=text.log"),
    (["diagnose", "log=missing.log"], 2, "is not there"),
    (["diagnose", "log=afolder"], 2, "without a server.log"),
    (["diagnose", "log=binary.log"], 2, "is no text"),
    (["checkpoints", "limit_gib=-1"], 2, "limit_gib=50"),
    (["checkpoints", "limit_gib=nan"], 2, "limit_gib=50"),
    (["checkpoints", "cache_dir=text.log"], 2, "is a file"),
    (["checkpoints", "prune=xx", "cache_dir=afolder"], 2, "the cache is empty"),
    (["doctor", "limit_s=0"], 2, "limit_s=60"),
    (["doctor", "deep=perhaps"], 2, "use one of false, true"),
    (["completion"], 2, "bash|zsh|fish"),
    (["completion", "tcsh"], 2, "zsh"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "words"), WRONG, ids=[" ".join(w[0])[:60] for w in WRONG]
)
def test_one_message_with_a_remedy(
    place: Path,
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(arguments) == code
    told = capsys.readouterr()
    assert told.err.startswith("sweeper: ")
    assert told.err.count("\n  remedy: ") == 1
    assert words in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


def test_no_wrong_input_leaves_anything_behind(place: Path) -> None:
    """Run last in this file: commands that were refused made no folder and no database."""
    made = {path.name for path in (place / "studies").iterdir()}
    assert made <= {
        "good",
        "damaged",
        "newer",
        "other",
        "brokenyaml",
        "nosettings",
        "folder",
        "infeasible",
        "empty",
    }
    assert not list((place / "studies").rglob("recommended"))


def test_permission_denied_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = place / "secret.yaml"
    path.write_text("name: x\n")
    path.chmod(0)
    assert main(["space=secret.yaml"]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_the_mock_engine_needs_no_gpu(place: Path) -> None:
    """On a machine without one its imaginary device holds its imaginary model."""
    from sweeper.config.compose import compose
    from sweeper.engine.mock.machine import Machine
    from sweeper.engine.mock.options import MockOptions

    cfg = compose(["engine=mock"], device_kind="cpu")
    deployment = {**cfg.engine.args, **cfg.space.fixed}
    assert Machine.of(deployment, MockOptions()).refusal() is None


@pytest.mark.parametrize("arguments", [["budget.launches=abc"], ["status", "study=absent"]])
def test_the_answer_comes_at_once(
    place: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(arguments)
    started = time.monotonic()
    main(arguments)
    assert time.monotonic() - started < stretched(SLOWEST_S, hydra_s())
