"""The `vllm` engine: vLLM's OpenAI-compatible server as a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sweeper.config.schema import EngineConfig
from sweeper.engine.devices import set_key
from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.local_http import Endpoint
from sweeper.engine.options import read_options
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.protocol import EngineFacts, LaunchRequest, ParameterValue
from sweeper.engine.served import Command, ServedEngine
from sweeper.engine.socket_folder import socket_folder
from sweeper.engine.vllm import checking, effective, flags, log_facts, told
from sweeper.engine.vllm.facts import VllmInstallation, probe
from sweeper.engine.vllm.options import VllmOptions
from sweeper.engine.vllm.tolerances import TOLERATED
from sweeper.verdicts import Diagnosis, Phase

CACHE_VARIABLE = "VLLM_CACHE_ROOT"
SOCKETS_VARIABLE = "VLLM_RPC_BASE_PATH"


class VllmEngine(ServedEngine):
    """vLLM, of whatever version the configured interpreter has.

    Args:
        cfg: `engine.args` become flags of every launch; a deployment's own parameters win.
        cache_dir: vLLM's caches are kept in its subfolder `vllm`, one folder a set of devices.

    Raises:
        ConfigError: an option that does not exist, or a flag that belongs to the launch.
    """

    name = "vllm"
    tolerated = TOLERATED

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        super().__init__(cfg, cache_dir=cache_dir)
        self._options = read_options(VllmOptions, cfg.options)
        self._args = flags.engine_flags(cfg.args)

    @cached_property
    def _installation(self) -> VllmInstallation:
        return probe(self.cfg.python)

    def facts(self) -> EngineFacts:
        """The installed vLLM. Raises EngineError if there is none."""
        return self._installation.facts

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """Hold flags against the installed version's own help. See `Engine.check_flags`."""
        if not self._options.check_flags:
            return FlagCheck()
        folder = self.cache_dir / "flags"
        answer, note = told.known(self._installation, folder, self.cfg.env, progress)
        if answer is None and progress is None:
            return FlagCheck()  # all is told at once, by whoever may take the time
        checked = checking.check(asked, self.takes(answer))
        return checked if note is None else replace(checked, notes=(note, *checked.notes))

    def takes(self, answer: told.Told | None) -> checking.Installed:
        """What a launch can be given; `answer` is what the installation tells, if it does."""
        version = self._installation.facts.version
        title = f"vLLM {version}"
        if answer is None:
            return checking.Installed(title, version, None)
        # A plugin may bring values that stand neither in the help nor in vLLM's own source.
        extended = bool(self._installation.plugins)
        known = answer.flags if extended else answer.with_values()
        return checking.Installed(title, version, known, () if extended else answer.methods)

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""
        # Imported when it is needed: hundreds of patterns that most commands never compile.
        from sweeper.engine.vllm.diagnosis import diagnose_vllm

        return diagnose_vllm(log_text, phase, exit_code)

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Flags and environment that reproduce a deployment, host, port and name left open."""
        asked, env = flags.deployment_flags(parameters)
        return {"model": model_path, **self._args, **asked}, {**self.cfg.env, **env}

    def command(self, request: LaunchRequest, endpoint: Endpoint) -> Command:
        """`python -m` on the server's module; the console script is missing in some builds."""
        asked, env = flags.deployment_flags(request.parameters)
        settings = {**self._args, **model_flags(request), **asked}
        launch = {
            "model": model_place(request.model_path),
            "served_model_name": request.served_name,
            "host": LOOPBACK,
            "port": endpoint.port,
        }
        installation = self._installation
        argv = [installation.python, "-m", installation.server_module]
        argv += flags.to_argv({**launch, **settings})
        return Command(
            tuple(argv),
            {
                **self._environment([request.model_path, *flags.further_models(settings)]),
                **self.cfg.env,
                **env,
                # Through the environment: a command line can be read by every user of the machine.
                "VLLM_API_KEY": endpoint.api_key,
            },
            settings,
        )

    def effective_args(self, endpoint: Endpoint, log_text: str) -> dict[str, Any]:
        """Arguments in effect, from the log, `/metrics` and, if asked for, `/server_info`."""
        return effective.read_back(endpoint, log_text, server_info=self._options.server_info)

    def echoed_args(self, log_text: str) -> dict[str, Any]:
        """Arguments as the server parsed them. Pure."""
        return log_facts.echoed(log_text)

    def learnt(self, log_text: str) -> dict[str, float | int | str]:
        """Memory, KV-cache size and times of the start."""
        return log_facts.learn(log_text)

    def compile_cache(self) -> Path | None:
        """One folder a set of devices; the user's own is never touched."""
        return None if CACHE_VARIABLE in self.cfg.env else self._cache_folder()

    def _cache_folder(self) -> Path:
        return (self.cache_dir / "vllm" / set_key(self.devices())).resolve()

    def sockets(self) -> Path | None:
        """One folder a set of devices; vLLM itself leaves its sockets in the temporary folder."""
        return None if SOCKETS_VARIABLE in self.cfg.env else socket_folder(self.devices())

    def _environment(self, models: list[str]) -> dict[str, str]:
        env = {
            "VLLM_NO_USAGE_STATS": "1",
            # Otherwise the message queue between its processes goes by an outside address.
            "VLLM_HOST_IP": LOOPBACK,
            CACHE_VARIABLE: str(self._cache_folder()),
        }
        if (sockets := self.sockets()) is not None:
            env[SOCKETS_VARIABLE] = str(sockets)
        if all(Path(model).is_dir() for model in models):
            env["HF_HUB_OFFLINE"] = "1"
        if self._options.server_info:
            env["VLLM_SERVER_DEV_MODE"] = "1"
        return env


def model_place(path: str) -> str:
    """A local folder by its full path; a hub id as it is."""
    return str(Path(path).resolve()) if Path(path).is_dir() else path


def model_flags(request: LaunchRequest) -> dict[str, Any]:
    """Flags that a launch takes from the model's configuration."""
    chosen: dict[str, Any] = {}
    if request.dtype is not None and not flags.is_left_out("dtype", request.dtype):
        chosen["dtype"] = request.dtype
    if request.revision is not None and not Path(request.model_path).is_dir():
        chosen["revision"] = request.revision
    if request.trust_remote_code:
        chosen["trust_remote_code"] = True
    return chosen
