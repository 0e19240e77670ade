"""Findings for the eye and for programs. Pure."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from sweeper.doctor.checks import is_ready
from sweeper.doctor.finding import Finding, State

WIDTH = 100
_LOUD = {State.PROBLEM: "PROBLEM", State.WARNING: "WARNING"}


def as_text(findings: Sequence[Finding], title: str) -> str:
    """One line a check, remedies below, and the verdict last."""
    state_width = max((len(finding.state) for finding in findings), default=0)
    name_width = max((len(finding.check) for finding in findings), default=0)
    indent = " " * (state_width + name_width + 4)
    lines = [title]
    for finding in findings:
        state = _LOUD.get(finding.state, str(finding.state))
        head = f"{state:<{state_width}}  {finding.check:<{name_width}}  "
        lines += _wrapped(finding.told, head, indent)
        if finding.remedy:
            lines += _wrapped(f"remedy: {finding.remedy}", f"{indent}  ", f"{indent}    ")
    return "\n".join([*lines, verdict(findings)])


def as_json(findings: Sequence[Finding]) -> str:
    """``{"ready": ..., "findings": [...]}``, in ASCII."""
    data = {"ready": is_ready(findings), "findings": [asdict(finding) for finding in findings]}
    return json.dumps(data, indent=2)


def verdict(findings: Sequence[Finding]) -> str:
    """Whether this machine is ready, one line."""
    counts = Counter(finding.state for finding in findings)
    told = [
        f"{counts[state]} {word}{'s' if counts[state] > 1 else ''}"
        for state, word in (
            (State.PROBLEM, "problem"),
            (State.WARNING, "warning"),
        )
        if counts[state]
    ]
    if counts[State.UNKNOWN]:
        told.append(f"{counts[State.UNKNOWN]} that cannot be told")
    ready = "ready" if is_ready(findings) else "not ready"
    return f"{ready}: {', '.join(told)}" if told else f"{ready}: nothing to mend"


def _wrapped(text: str, first: str, further: str) -> list[str]:
    # Paths and commands stay whole, so that they can be copied.
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
