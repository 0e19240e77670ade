from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from sweeper.errors import ConfigError, StudyError
from sweeper.tracking.paths import StudyPaths, atomic_write_text, replace_folder


def test_every_path_lies_inside_the_study(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path, "a")
    inside = [
        paths.study_yaml,
        paths.trials_jsonl,
        paths.optuna_journal,
        paths.trial_dir(3),
        paths.server_log(3, 2),
        paths.pareto_csv,
        paths.report_html,
        paths.recommended_dir,
        paths.lock,
        paths.launch_record,
        paths.dropped_bounds_json,
        paths.reference_json,
        paths.mlflow_record,
        paths.mirror_lock,
        paths.ended_json,
        paths.reserve,
    ]
    assert len(set(inside)) == len(inside)
    assert all(paths.root in path.parents for path in inside)
    assert paths.mlflow_db.parent == tmp_path


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert StudyPaths(Path("studies"), "a").root == tmp_path / "studies" / "a"


def test_a_retry_does_not_overwrite_the_first_log(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path, "a")
    assert paths.server_log(1) != paths.server_log(1, attempt=2)


def test_create_is_idempotent(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path / "new", "a")
    paths.create()
    paths.create()
    assert paths.trials_dir.is_dir()


def test_studies_dir_that_is_a_file_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "studies").write_text("")
    with pytest.raises(ConfigError, match="studies_dir"):
        StudyPaths(tmp_path / "studies", "a").create()


def test_studies_dir_nobody_may_write_to_names_the_remedy() -> None:
    """/proc refuses new folders to everyone, root included."""
    with pytest.raises(ConfigError, match="remedy"):
        StudyPaths(Path("/proc/studies"), "a").create()


def test_atomic_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    atomic_write_text(target, "one\n")
    atomic_write_text(target, "zwei ß\n", mode=0o755)
    assert target.read_text(encoding="utf-8") == "zwei ß\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert os.listdir(tmp_path) == ["a.txt"]  # noqa: PTH208


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match="No space left"):
        atomic_write_text(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]  # noqa: PTH208


def test_replace_folder_drops_what_the_new_one_does_not_have(tmp_path: Path) -> None:
    folder = tmp_path / "recommended"
    replace_folder(folder, {"a": ("1", 0o644), "b": ("2", 0o755)})
    replace_folder(folder, {"a": ("3", 0o644)})
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "3"}
    assert [path.name for path in tmp_path.iterdir()] == ["recommended"]


def test_replace_folder_keeps_the_old_one_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recommended"
    replace_folder(folder, {"a": ("1", 0o644)})
    original = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if Path(target) == folder and not self.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return original(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StudyError, match="cannot write the folder"):
        replace_folder(folder, {"a": ("2", 0o644)})
    assert (folder / "a").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["recommended"]


def test_what_a_killed_tuner_had_in_the_making_goes(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path, "s")
    paths.create()
    run_dir = paths.trial_dir(3, 2)
    run_dir.mkdir(parents=True)
    kept = [paths.reserve, paths.study_yaml, run_dir / "server.log", tmp_path / ".mlflow.lock"]
    for path in kept:
        path.touch()
    (paths.root / ".study.yaml.ab12_xyz").touch()
    (paths.root / ".recommended.ab12_xyz.old").mkdir()
    (paths.root / ".recommended.ab12_xyz.old" / "file").touch()
    (run_dir / ".server.log.ab12_xyz").touch()
    paths.clear_torn()
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)
    assert not list(paths.root.glob(".recommended*"))


WRITERS = {
    # The journals append; everything else that is written here is derived, or made by a launch.
    "sweeper/search/optuna_file.py",
    "sweeper/search/priors/kept.py",  # a cache beside the studies; a torn line is computed again
    "sweeper/tracking/journal.py",
    "sweeper/tracking/paths.py",
    "sweeper/tracking/mlflow_fill.py",
}


def test_whole_files_are_written_by_the_atomic_writers_alone() -> None:
    """In the rooms that write into a study's folder: a crash leaves the old file or the new one."""
    root = Path(__file__).resolve().parents[2]
    rooms = ("tracking", "search", "report", "export", "verbs", "pareto", "config")
    for room in rooms:
        for path in (root / "sweeper" / room).rglob("*.py"):
            text, name = path.read_text(encoding="utf-8"), str(path.relative_to(root))
            writes = re.findall(r"\.write_(?:text|bytes)\(|open\(\s*[\"'][wax]", text)
            assert not writes or name in WRITERS, f"{name} writes past atomic_write_text"
