"""What task files say of names and data, without running anything in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.quality.task_files import local_tasks, need_no_network

E2E_TASKS = Path(__file__).parents[1] / "e2e" / "tasks"


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def offline(folder: Path, *names: str) -> bool:
    return need_no_network(names, local_tasks(folder), folder)


def test_the_projects_own_task_needs_no_network() -> None:
    assert set(local_tasks(E2E_TASKS)) == {"everyday"}
    assert offline(E2E_TASKS, "everyday")
    assert not offline(E2E_TASKS, "everyday", "gsm8k")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dataset_path: json\ndataset_kwargs: {data_files: {test: a.jsonl}}", True),
        ("dataset_path: data", True),
        ("dataset_path: openai/gsm8k", False),
        ("dataset_path: json\ndataset_kwargs: {data_files: 'https://x.test/a.jsonl'}", False),
        ("custom_dataset: !function code.load", False),
        ("dataset_path: json\nprocess_docs: !function code.docs", True),
        ("include: common.yml", True),
        ("include: [common.yml, nothing.yml]\ndataset_path: openai/gsm8k", False),
        ("include: t.yaml", False),
    ],
)
def test_where_the_data_is(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path, "common.yml", "dataset_path: csv\n")
    write(tmp_path, "code.py", "raise RuntimeError('task code was run')\n")
    write(tmp_path, "t.yaml", f"task: t\n{text}\n")
    assert offline(tmp_path, "t") is expected


def test_groups_and_broken_files_are_no_tasks(tmp_path: Path) -> None:
    write(tmp_path, "deep/t.yaml", "task: t\n")
    write(tmp_path, "group.yaml", "group: g\ntask: [t]\n")
    write(tmp_path, "broken.yaml", "task: [\n")
    write(tmp_path, "list.yaml", "- task\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    assert set(local_tasks(tmp_path)) == {"t"}
    assert not offline(tmp_path, "g")
