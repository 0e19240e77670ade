"""The `openai` engine: a server that somebody else started, driven where it is and never stopped.

How it was deployed is given, so only load and workload can be varied. What it says of itself
(version, model, arguments) is part of the study's identity and manifest: after a change there it
is another study.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sweeper.config.engine_checks import NEEDS_ADDRESS
from sweeper.config.schema import EngineConfig
from sweeper.config.server_address import EXAMPLE, plain_address
from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.openai import asking
from sweeper.engine.openai.asking import Address, Served
from sweeper.engine.options import read_options
from sweeper.engine.protocol import (
    SERVED_MODEL,
    EngineFacts,
    LaunchFailure,
    LaunchRequest,
    ParameterValue,
    RunningServer,
)
from sweeper.engine.vllm import effective
from sweeper.errors import ConfigError, EngineError
from sweeper.redaction import remember
from sweeper.verdicts import Diagnosis, Phase, Verdict

FACTS_TIMEOUT_S = 30.0
UNKNOWN = "unknown"
MAX_MODEL_LEN = "max_model_len"
LOG_TEXT = "This server was not started here; its log is kept where it runs.\n"


@dataclass(frozen=True)
class OpenAiOptions:
    """This engine has no settings of its own."""


class OpenAiEngine:
    """An OpenAI-compatible server at an address.

    Args:
        cfg: `base_url`, `served_model` and `api_key_env` say where it is and how it is spoken to.
        cache_dir: not used.

    Raises:
        ConfigError: an address that cannot be one, or a key that cannot be sent.
    """

    name = "openai"
    kind = "served"
    predicted = False
    needs_checkpoint = False

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        self.cfg = cfg
        read_options(OpenAiOptions, cfg.options)
        if not cfg.base_url:
            raise ConfigError(f"engine={self.name} {NEEDS_ADDRESS}", EXAMPLE)
        self._address = Address(plain_address(cfg.base_url), cfg.api_key_env, _key(cfg.api_key_env))

    def facts(self) -> EngineFacts:
        """What the server says of itself (cached).

        Raises:
            EngineError: it does not answer, or not as such a server should.
        """
        return self._facts

    @cached_property
    def _facts(self) -> EngineFacts:
        try:
            served = asking.find_model(self._address, self.cfg.served_model, FACTS_TIMEOUT_S)
        except LaunchFailure as failure:
            raise EngineError(failure.diagnosis.cause, failure.diagnosis.remedy) from None
        details = {SERVED_MODEL: served.name, **_of_model(served)}
        return EngineFacts(
            name=self.name,
            version=asking.version(self._address, FACTS_TIMEOUT_S) or UNKNOWN,
            distribution=str(served.entry.get("owned_by") or UNKNOWN),
            device="remote",
            details=details,
        )

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """Nothing is launched, so nothing is sent: flags are refused with the configuration."""
        return FlagCheck()

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """Prove that the server answers. It is left alone on leaving. See `Engine.serve`."""
        started = time.monotonic()
        deadline = started + request.start_timeout_s
        request.run_dir.mkdir(parents=True, exist_ok=True)
        log_path = request.run_dir / "server.log"
        log_path.write_text(LOG_TEXT)
        address = self._address
        served = asking.find_model(address, self.cfg.served_model, _left_s(deadline))
        asking.first_token(address, served.name, _left_s(deadline))
        ready_after_s = time.monotonic() - started
        yield RunningServer(
            base_url=address.base_url,
            served_name=served.name,
            api_key=address.api_key,
            pid=0,
            ready_after_s=ready_after_s,
            argv=(),
            effective_args=self._effective_args(served),
            learnt={},
            # Whether it lives is seen by its answers only; asking here would block the client.
            is_alive=lambda: True,
            log_path=log_path,
        )

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """A server without a log here is only known to answer no more. Pure."""
        return Diagnosis(
            Verdict.INFRA,
            phase,
            f"{self._address.base_url} answers no more",
            "look into that server's own log, where it runs",
        )

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Only the model: how the server was started is not known here."""
        return {"model": model_path}, {}

    def _effective_args(self, served: Served) -> dict[str, Any]:
        address = self._address
        told = effective.ask(address.base_url, address.api_key, server_info=True)
        limit = served.entry.get(MAX_MODEL_LEN)
        return {MAX_MODEL_LEN: limit, **told} if isinstance(limit, int) else told


def _of_model(served: Served) -> dict[str, str]:
    """What the list of models says beside the name, as far as it stays the same."""
    told = {"model_root": served.entry.get("root"), MAX_MODEL_LEN: served.entry.get(MAX_MODEL_LEN)}
    return {name: str(value) for name, value in told.items() if value not in (None, "")}


def _left_s(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _key(variable: str) -> str:
    """The key from the environment, empty if there is none."""
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"the environment variable {variable} holds something that cannot be sent as a key",
            "a key has letters, digits and signs, and no spaces or line ends: set it again",
        )
    remember(key)
    return key
