"""MLflow's client as this house uses it: imported late and quietly, impatient, and paced."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

_REJECTED = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "MALFORMED_REQUEST"}
_GONE = {"RESOURCE_DOES_NOT_EXIST", "NOT_FOUND"}
_UNKNOWN = {"ENDPOINT_NOT_FOUND", "FEATURE_DISABLED", "NOT_IMPLEMENTED"}


class Pace:
    """Told before and after every call to MLflow."""

    def before(self) -> None:
        """May wait, or raise to end the work."""

    def after(self) -> None:
        """The call came back."""


class PacedClient:
    """An `MlflowClient` whose every call is announced to a `Pace`."""

    def __init__(self, client: Any, pace: Pace) -> None:
        self._client = client
        self._pace = pace

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._pace.before()
            result = method(*args, **kwargs)
            self._pace.after()
            return result

        return call


def import_client(timeout_s: float) -> Any:
    """Import MLflow quietly, with short time-outs: a dead server must not stall a study."""
    for name, value in {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, round(timeout_s))),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "GIT_PYTHON_REFRESH": "quiet",
    }.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The store is imported by the first client otherwise: beside other threads' imports.
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
        from mlflow import MlflowClient
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return MlflowClient


def is_rejected(error: Exception) -> bool:
    """True if MLflow understood and will never take this: asking again is of no use."""
    return getattr(error, "error_code", None) in _REJECTED


def is_gone(error: Exception) -> bool:
    """True if what was asked for is not there any more."""
    return getattr(error, "error_code", None) in _GONE


def is_unknown(error: Exception) -> bool:
    """True if the server knows no such call: it is older, or of another make."""
    is_lacking = isinstance(error, NotImplementedError)
    return is_lacking or getattr(error, "error_code", None) in _UNKNOWN


def shown_uri(uri: str) -> str:
    """A tracking URI without the user and password it may carry."""
    scheme, separator, rest = uri.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"
