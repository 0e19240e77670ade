"""The `transformers` engine: the library's own `generate` behind a streaming HTTP interface.

It is measured by the same client, workload and levels as every other engine, so that "the
Transformers way" can be compared with a server made for the purpose.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import sweeper
from sweeper.config.schema import EngineConfig
from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.local_http import Endpoint, call
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.protocol import EngineFacts, LaunchRequest, ParameterValue
from sweeper.engine.served import Command, ServedEngine
from sweeper.engine.transformers.facts import Installation, probe
from sweeper.engine.transformers.flags import check, deployment_flags, engine_flags
from sweeper.engine.transformers.options import transformers_options
from sweeper.engine.transformers.telling import API_KEY_VARIABLE, INFO_PATH, told
from sweeper.verdicts import Diagnosis, Phase

SERVER_MODULE = "sweeper.engine.transformers.server"
SETTINGS_FILE = "transformers.json"
INFO_TIMEOUT_S = 30.0


class TransformersEngine(ServedEngine):
    """transformers, of whatever version the configured interpreter has.

    Args:
        cfg: `engine.args` count as parameters of every deployment, and its own win;
            `engine.options` are those of `sweeper.engine.transformers.options`.
        cache_dir: not used.

    Raises:
        ConfigError: an option that does not exist, or a flag that belongs to the launch.
    """

    name = "transformers"

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        super().__init__(cfg, cache_dir=cache_dir)
        self._options = transformers_options(cfg.options)
        self._args = engine_flags(cfg.args)

    @cached_property
    def _installation(self) -> Installation:
        return probe(self.cfg.python, self._options.device)

    def facts(self) -> EngineFacts:
        """The installed transformers. Raises EngineError if there is none."""
        return self._installation.facts

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """Hold flags against those of this engine's own server. Costs nothing."""
        return check(asked)

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""
        # Imported when it is needed: hundreds of patterns that most commands never compile.
        from sweeper.engine.transformers.diagnosis import diagnose_transformers

        return diagnose_transformers(log_text, phase, exit_code)

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The server's settings that reproduce a deployment, host, port and name left open."""
        asked, env = deployment_flags(parameters)
        return {"model": model_path, **self._args, **asked}, {**self.cfg.env, **env}

    def command(self, request: LaunchRequest, endpoint: Endpoint) -> Command:
        """The server's module in the engine's interpreter, settings in a file of the launch."""
        asked, env = deployment_flags(request.parameters)
        flags = {**self._args, **asked}
        if request.dtype not in (None, "auto", "default"):
            flags.setdefault("dtype", request.dtype)
        settings = request.run_dir / SETTINGS_FILE
        note = {
            "model": _model(request.model_path),
            "revision": request.revision,
            "trust_remote_code": request.trust_remote_code,
            "served_name": request.served_name,
            "flags": flags,
            "options": vars(self._options),
        }
        settings.write_text(json.dumps(note, indent=2) + "\n")
        argv = [self.cfg.python or sys.executable, "-m", SERVER_MODULE, "--host", LOOPBACK]
        argv += ["--port", str(endpoint.port), "--settings", str(settings.resolve())]
        full = {
            "TOKENIZERS_PARALLELISM": "false",
            **({"HF_HUB_OFFLINE": "1"} if Path(request.model_path).is_dir() else {}),
            **self.cfg.env,
            **env,
            "PYTHONPATH": str(self._import_folder(request.run_dir)),
            API_KEY_VARIABLE: endpoint.api_key,
        }
        return Command(tuple(argv), full, flags)

    def effective_args(self, endpoint: Endpoint, log_text: str) -> dict[str, Any]:
        """Arguments in effect, as the server reads them off the loaded model; none if it dies."""
        try:
            info = call(endpoint, INFO_PATH, timeout_s=INFO_TIMEOUT_S).json()
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        return info if isinstance(info, dict) else {}

    def learnt(self, log_text: str) -> dict[str, float | int | str]:
        """Memory of the weights and times of the start."""
        return told(log_text, "loaded")

    def _import_folder(self, run_dir: Path) -> Path:
        """A folder from which the engine's interpreter can import this package.

        Another interpreter must not see what else is installed beside it here: our torch would
        come before its own. It gets a folder with a link to the package alone.
        """
        package = Path(sweeper.__file__).resolve().parent
        if self.cfg.python is None or Path(self.cfg.python).absolute() == Path(sys.executable):
            return package.parent
        folder = (run_dir / "import").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / package.name
        if not link.exists():
            link.symlink_to(package)
        return folder


def _model(path: str) -> str:
    """A local folder by its full path; a hub id as it is."""
    return str(Path(path).resolve()) if Path(path).is_dir() else path
