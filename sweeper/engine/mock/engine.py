"""The `mock` engine: a stub server with dialled speed, memory and faults.

It goes through the same launch, readiness, load and stop as a real engine, in a second or two on
any machine. Its numbers are predicted: they describe the dials, not a device.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sweeper
from sweeper.config.schema import EngineConfig
from sweeper.engine.device_memory import DeviceMemory, FileMemory
from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.local_http import Endpoint
from sweeper.engine.mock.options import mock_options
from sweeper.engine.mock.server import API_KEY_VARIABLE
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.protocol import EngineFacts, LaunchRequest, ParameterValue
from sweeper.engine.served import Command, ServedEngine
from sweeper.engine.vllm import checking, effective, flags, log_facts
from sweeper.engine.vllm.cli import parse_help
from sweeper.engine.vllm.tolerances import TOLERATED
from sweeper.verdicts import Diagnosis, Phase

MOCK_VERSION = "1"
SERVER_MODULE = "sweeper.engine.mock.server"


class MockEngine(ServedEngine):
    """A stub that words its log and its answers like vLLM.

    Args:
        cfg: `engine.options` are the dials, see `sweeper.engine.mock.options`; `engine.args` count
            as parameters of every deployment.
        cache_dir: not used.

    Raises:
        ConfigError: a dial that does not exist, or a value of another type.
    """

    name = "mock"
    predicted = True
    tolerated = TOLERATED

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        super().__init__(cfg, cache_dir=cache_dir)
        self._known_flags = mock_options(cfg.options).known_flags
        self._args = flags.engine_flags(cfg.args)

    def facts(self) -> EngineFacts:
        """The mock is always installed, and its numbers are always predicted."""
        return EngineFacts(
            name="mock",
            version=MOCK_VERSION,
            distribution="sweeper",
            device="cpu",
            predicted=True,
            details={"python": platform.python_version()},
        )

    def devices(self) -> tuple[str, ...]:
        """None, so that many may run at once, but for those that its options name."""
        return tuple(mock_options(self.cfg.options).devices)

    def device_memory(self) -> DeviceMemory | None:
        """A file, if its options name one."""
        path = mock_options(self.cfg.options).device_memory
        return FileMemory(Path(path)) if path else None

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """Hold flags against `engine.options.known_flags` as against vLLM's, if there are any."""
        if not self._known_flags:
            return FlagCheck()
        known = parse_help("\n".join(f"  {entry}" for entry in self._known_flags))
        return checking.check(asked, checking.Installed("the mock", MOCK_VERSION, known))

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""
        # Imported when it is needed: hundreds of patterns that most commands never compile.
        from sweeper.engine.vllm.diagnosis import diagnose_vllm

        return diagnose_vllm(log_text, phase, exit_code)

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The flags that vLLM would take for the deployment."""
        asked, env = flags.deployment_flags(parameters)
        return {"model": model_path, **self._args, **asked}, {**self.cfg.env, **env}

    def command(self, request: LaunchRequest, endpoint: Endpoint) -> Command:
        """The server's module in the tuner's own interpreter, settings in a file of the launch."""
        given = {**self._args, **request.parameters}
        parameters = {k: v for k, v in given.items() if not flags.is_left_out(k, v)}
        settings = request.run_dir / "mock.json"
        note = {
            "served_name": request.served_name,
            "parameters": parameters,
            "options": self.cfg.options,
        }
        settings.write_text(json.dumps(note, indent=2) + "\n")
        argv = [sys.executable, "-m", SERVER_MODULE, "--host", LOOPBACK]
        argv += ["--port", str(endpoint.port), "--settings", str(settings.resolve())]
        env = {
            **self.cfg.env,
            "PYTHONPATH": str(Path(sweeper.__file__).resolve().parent.parent),
            API_KEY_VARIABLE: endpoint.api_key,
        }
        return Command(tuple(argv), env, _asked(parameters))

    def effective_args(self, endpoint: Endpoint, log_text: str) -> dict[str, Any]:
        """Arguments in effect, as the stub tells them."""
        return effective.read_back(endpoint, log_text, server_info=True)

    def echoed_args(self, log_text: str) -> dict[str, Any]:
        """Arguments as the stub was given them. Pure."""
        return log_facts.echoed(log_text)

    def learnt(self, log_text: str) -> dict[str, float | int | str]:
        """Memory, KV-cache size and times of the start."""
        return log_facts.learn(log_text)


def _asked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The deployment by the names under which the stub tells what is in effect."""
    asked = {k: v for k, v in parameters.items() if k not in flags.SPECULATIVE_PARTS}
    asked = {k: v for k, v in asked.items() if not k.startswith(flags.ENV_PREFIX)}
    if "speculative" in parameters:
        tokens = parameters.get("num_speculative_tokens")
        config = {"method": parameters["speculative"], "num_speculative_tokens": tokens}
        asked["speculative_config"] = config
    return asked
