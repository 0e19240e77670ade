"""Where the packaged configuration lies."""

from __future__ import annotations

from pathlib import Path


def conf_dir() -> Path:
    """Folder with `config.yaml` and the groups: inside a built wheel, else beside the package.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "conf", package.parent / "conf"):
        if (candidate / "config.yaml").is_file():
            return candidate
    raise FileNotFoundError(f"no conf/config.yaml in or beside {package}")


def groups() -> list[str]:
    """Names of the configuration groups, sorted."""
    return sorted(path.name for path in conf_dir().iterdir() if path.is_dir())


def options(group: str) -> list[str]:
    """Names of the options of a group, sorted."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))
