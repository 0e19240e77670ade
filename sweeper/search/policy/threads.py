"""Linear algebra on one thread.

The matrices of a search are small. On a machine whose cores serve a model at the same time, threads
that wait for each other make a fit of 10 ms take seconds.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """While it lasts, numpy and scipy compute on the calling thread alone."""
    found: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> Any:
    import numpy  # noqa: F401  libraries are found once they are loaded
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
