"""One MLflow database for all tests of a process: making its tables takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables and without a study; to be copied."""
    from sweeper.tracking.mlflow_client import import_client

    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    import_client(10.0)(tracking_uri=f"sqlite:///{path}").search_experiments(max_results=1)
    return path
