"""The one owner of every path of a study, and the only way its whole files are written."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import ConfigError, StudyError

_TORN = ".?*.????????*"
"""Names of files and folders in the making: a dot, the name to be, and what makes it unique."""


@dataclass(frozen=True)
class StudyPaths:
    """Where a study keeps what it leaves behind: ``<studies_dir>/<name>/...``.

    Args:
        studies_dir: folder of all studies; made absolute, links kept.
        name: the study's name, already checked (no slash, no ``..``).
    """

    studies_dir: Path
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "studies_dir", Path(os.path.abspath(self.studies_dir)))  # noqa: PTH100

    @property
    def root(self) -> Path:
        """The study's own folder."""
        return self.studies_dir / self.name

    @property
    def study_yaml(self) -> Path:
        """Resolved configuration and identity."""
        return self.root / "study.yaml"

    @property
    def trials_jsonl(self) -> Path:
        """The journal: one line a trial, the source of truth."""
        return self.root / "trials.jsonl"

    @property
    def optuna_journal(self) -> Path:
        """Optuna's own journal storage."""
        return self.root / "optuna.journal"

    @property
    def trials_dir(self) -> Path:
        """Folder of the launches' own files."""
        return self.root / "trials"

    def trial_dir(self, number: int, attempt: int = 1) -> Path:
        """Folder of one launch; a retry gets its own, so that the first log is kept."""
        folder = self.trials_dir / str(number)
        return folder if attempt == 1 else folder / f"attempt-{attempt}"

    def server_log(self, number: int, attempt: int = 1) -> Path:
        """The engine's log of one launch."""
        return self.trial_dir(number, attempt) / "server.log"

    def argv_json(self, number: int, attempt: int = 1) -> Path:
        """The engine's command line of one launch."""
        return self.trial_dir(number, attempt) / "argv.json"

    @property
    def pareto_csv(self) -> Path:
        """The front, one row an operating point."""
        return self.root / "pareto.csv"

    @property
    def report_md(self) -> Path:
        """The same in short, as Markdown."""
        return self.root / "report.md"

    @property
    def report_html(self) -> Path:
        """The self-contained report."""
        return self.root / "report.html"

    @property
    def recommended_dir(self) -> Path:
        """Deployment files of the recommendation."""
        return self.root / "recommended"

    @property
    def verify_dir(self) -> Path:
        """Launches of exported files: a numbered folder each, with the engine's log."""
        return self.root / "verify"

    @property
    def lock(self) -> Path:
        """Held by the tuner that works on the study."""
        return self.root / "study.lock"

    @property
    def in_flight_json(self) -> Path:
        """The trial being launched: number, attempt, kind and deployment. Absent between trials."""
        return self.root / "in_flight.json"

    @property
    def now_json(self) -> Path:
        """What the running study is doing now, for onlookers. Absent between runs."""
        return self.root / "now.json"

    @property
    def launch_record(self) -> Path:
        """What is running now, by which a later run finds orphans."""
        return self.root / "launch.json"

    @property
    def dropped_bounds_json(self) -> Path:
        """Learnt bounds that the study's user took back. Absent until one is."""
        return self.root / "dropped_bounds.json"

    @property
    def reference_json(self) -> Path:
        """The reference the quality of every deployment is judged against."""
        return self.root / "reference.json"

    @property
    def mlflow_record(self) -> Path:
        """Which MLflow run this study is."""
        return self.root / "mlflow.json"

    @property
    def mirror_lock(self) -> Path:
        """Held by the one process that mirrors the study into MLflow."""
        return self.root / "mirror.lock"

    @property
    def ended_json(self) -> Path:
        """How the last run ended. Absent while one runs, and after one that was killed."""
        return self.root / "ended.json"

    @property
    def reserve(self) -> Path:
        """Room on the disk that is kept for the journal's next line."""
        return reserve_beside(self.trials_jsonl)

    @property
    def mlflow_db(self) -> Path:
        """The embedded MLflow database, shared by all studies of the folder."""
        return self.studies_dir / "mlflow.db"

    @property
    def mlflow_artifacts(self) -> Path:
        """Artifacts of the embedded MLflow."""
        return self.studies_dir / "mlflow-artifacts"

    @property
    def mlflow_lock(self) -> Path:
        """Held while the embedded MLflow database is made."""
        return self.studies_dir / ".mlflow.lock"

    def create(self) -> None:
        """Make the study's folders and prove that they can be written.

        Raises:
            ConfigError: the folder cannot be made or written; nothing has been started yet.
        """
        try:
            self.trials_dir.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise ConfigError(
                f"studies_dir: cannot write into {self.root} ({error.strerror or error})",
                "make the folder writable, free space on its disk, or name another one with "
                "studies_dir=/path/to/folder",
            ) from error

    def clear_torn(self) -> None:
        """Remove what a tuner that was killed while it wrote has left; only with the lock held."""
        for torn in [*self.root.glob(_TORN), *self.trials_dir.rglob(_TORN)]:
            if torn.is_dir() and not torn.is_symlink():
                shutil.rmtree(torn, ignore_errors=True)
            else:
                with suppress(OSError):
                    torn.unlink(missing_ok=True)


def reserve_beside(path: Path) -> Path:
    """The reserve of the study that a file belongs to."""
    return path.with_name(".reserve")


def atomic_write_text(path: Path, text: str, *, mode: int = 0o644, flushed: bool = True) -> None:
    """Write a whole file so that a reader sees the old one or the new one, never a part.

    Args:
        path: the file; its folder must exist.
        text: the content, written as UTF-8.
        mode: permission bits of the new file.
        flushed: whether it must survive a power cut; it survives its writer's death in any case.

    Raises:
        StudyError: the file cannot be written; the old one is untouched.
    """
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as handle:
            handle.write(text)
            handle.flush()
            if flushed:
                os.fsync(handle.fileno())
        temporary.chmod(mode & ~_umask())
        temporary.replace(path)
        if flushed:
            sync_folder(path.parent)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise StudyError(
            f"cannot write {path} ({error.strerror or error})",
            "make its folder writable or free space on its disk, then run the same command again",
        ) from error


def replace_folder(path: Path, files: dict[str, tuple[str, int]]) -> None:
    """Write a folder of files all or nothing: the old folder stays until the new one is whole.

    Args:
        path: the folder; its parent must exist.
        files: file name → (text, permission bits).

    Raises:
        StudyError: something cannot be written; the old folder is untouched.
    """
    fresh: Path | None = None
    try:
        fresh = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        fresh.chmod(0o755 & ~_umask())
        for name, (text, mode) in files.items():
            atomic_write_text(fresh / name, text, mode=mode)
        _swap(fresh, path)
    except OSError as error:
        raise StudyError(
            f"cannot write the folder {path} ({error.strerror or error})",
            "make its parent writable or free space on its disk, then run the same command again",
        ) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def _umask() -> int:
    """The user's mask for new files. Read where the kernel shows it: to ask is to change it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0o022
    told = next((line for line in status.splitlines() if line.startswith("Umask:")), "Umask: 022")
    return int(told.split()[1], 8)


def _swap(fresh: Path, path: Path) -> None:
    """Put `fresh` in the place of `path`; a folder cannot be renamed over a full one."""
    old = fresh.with_name(f"{fresh.name}.old")
    if path.exists():
        path.rename(old)
    try:
        fresh.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename or a new name in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
