"""The mock, started from the ``--config`` YAML that was exported for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeper.config.schema import EngineConfig
from sweeper.engine.local_http import Endpoint
from sweeper.engine.mock.engine import MockEngine
from sweeper.engine.protocol import LaunchRequest, ParameterValue, RunningServer
from sweeper.engine.served import Command
from sweeper.export.verify.files import Exported


class ExportedMock(MockEngine):
    """The stub with the file's flags instead of a deployment; its dials are the study's.

    Args:
        cfg: dials and deadlines; its flags are in the file already.
        cache_dir: not used.
        exported: what is started.
    """

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path, exported: Exported) -> None:
        super().__init__(replace(cfg, args={}), cache_dir=cache_dir)
        self._exported = exported

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """As any launch, under the name that the file gives the model."""
        with super().serve(replace(request, served_name=self._exported.served_names[0])) as server:
            yield server

    def command(self, request: LaunchRequest, endpoint: Endpoint) -> Command:
        """The stub's own command; it takes no YAML, so that its settings are made from it."""
        parameters = stub_parameters(self._exported.flags)
        made = super().command(replace(request, parameters=parameters), endpoint)
        return replace(made, env={**made.env, **self._exported.env})


def stub_parameters(flags: Mapping[str, Any]) -> dict[str, ParameterValue]:
    """vLLM's flags in the words of a deployment, which is what the stub takes. Pure."""
    plain = {name: value for name, value in flags.items() if name != "speculative_config"}
    drafting = flags.get("speculative_config")
    if isinstance(drafting, Mapping) and "method" in drafting:
        others = {name: value for name, value in drafting.items() if name != "method"}
        plain |= {"speculative": drafting["method"], **others}
    return plain
