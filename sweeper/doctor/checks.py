"""All checks in the order in which they are told. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sweeper.doctor import device_checks, engine_checks, host_checks, outside_checks, place_checks
from sweeper.doctor.facts import Facts
from sweeper.doctor.finding import Finding, State

CHECKS: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    host_checks.python,
    host_checks.processor,
    host_checks.memory,
    device_checks.gpu,
    engine_checks.interpreter,
    outside_checks.workers,
    outside_checks.model,
    outside_checks.server,
    place_checks.folders,
    host_checks.shared_memory,
    host_checks.limits,
    outside_checks.tracking,
    host_checks.text,
    host_checks.clock,
    place_checks.left_behind,
)


def examine(facts: Facts) -> list[Finding]:
    """Every finding, in order."""
    return [finding for check in CHECKS for finding in check(facts)]


def is_ready(findings: Sequence[Finding]) -> bool:
    """Whether a study would get as far as its first measurement, as far as can be told."""
    return all(finding.state is not State.PROBLEM for finding in findings)
