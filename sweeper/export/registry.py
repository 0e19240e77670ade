"""Export targets by name, each loaded when it is first asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from sweeper.errors import ConfigError

if TYPE_CHECKING:
    from sweeper.export.bundle import ExportInput, Files

Renderer: TypeAlias = "Callable[[ExportInput], Files]"

TARGETS: dict[str, str] = {
    "vllm": "sweeper.export.vllm_config:render",
    "shell": "sweeper.export.shell:render",
    "compose": "sweeper.export.compose:render",
    "k8s": "sweeper.export.kubernetes:render",
    "helm": "sweeper.export.helm:render",
    "kserve": "sweeper.export.kserve:render",
    "systemd": "sweeper.export.systemd:render",
    "sglang": "sweeper.export.sglang:render",
    "trtllm": "sweeper.export.tensorrt_llm:render",
}

# What was measured on one engine says nothing of how another would do with its flags, and a server
# that somebody else started is not ours to deploy. What is simulated is vLLM itself.
DEPLOYABLE = frozenset({"vllm", "mock", "simulate"})


def is_deployable(engine: str) -> bool:
    """Whether there are targets for what was measured on that engine."""
    return engine in DEPLOYABLE


def resolve(names: Sequence[str]) -> list[str]:
    """Target names, ``all`` spelled out, without repetition.

    Raises:
        ConfigError: a name is not known.
    """
    resolved: dict[str, None] = {}
    for name in names:
        for target in TARGETS if name == "all" else [name]:
            _check(target)
            resolved[target] = None
    return list(resolved)


def renderer(name: str) -> Renderer:
    """The renderer of one target.

    Raises:
        ConfigError: the name is not known.
    """
    _check(name)
    module, _, attribute = TARGETS[name].partition(":")
    return cast(Renderer, getattr(importlib.import_module(module), attribute))


def render_all(names: Sequence[str], source: ExportInput) -> Files:
    """Files of all targets, and the provenance that every export has. Pure.

    Raises:
        ConfigError: a name is not known.
    """
    from sweeper.export.provenance import render as render_provenance

    files: Files = {}
    for name in resolve(names):
        files.update(renderer(name)(source))
    return {**files, **render_provenance(source, files)}


def _check(name: str) -> None:
    if name in TARGETS:
        return
    near = difflib.get_close_matches(name, [*TARGETS, "all"], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        f"export target {name!r} is not known", f"{hint}use one of {', '.join(TARGETS)}, or all"
    )
