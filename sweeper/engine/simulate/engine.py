"""The `simulate` engine: vLLM as a simulator predicts it. Nothing is launched, no GPU is needed.

    deployment ──► quick prediction ──┬──► no: its verdict
                                      └──► load levels, each answered with predicted figures

Every figure is predicted: see `EngineFacts.predicted`, and docs/simulation.md for what it is worth.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sweeper.config.schema import EngineConfig
from sweeper.engine.flag_check import AskedFlag, FlagCheck
from sweeper.engine.levels import LevelAnswer, LevelAsk
from sweeper.engine.modelling import Foreseen, Surroundings
from sweeper.engine.protocol import (
    EngineFacts,
    LaunchFailure,
    LaunchRequest,
    ParameterValue,
    RunningServer,
)
from sweeper.engine.simulate.foresight import within
from sweeper.engine.simulate.options import simulate_options
from sweeper.engine.vllm import flags
from sweeper.errors import ConfigError, ModelError
from sweeper.estimate.simulator.answer import SimulatorAnswer
from sweeper.estimate.simulator.ask import SimulatorAsk, to_config
from sweeper.estimate.simulator.client import VERSION, Prediction, Simulator
from sweeper.estimate.simulator.modelled import MODELLED, is_word
from sweeper.estimate.simulator.systems import SYSTEMS, system_of
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.space.model import Space
from sweeper.verdicts import Diagnosis, Phase, Verdict

MEAN_LENGTHS = "requests of the workload's mean lengths are simulated, all alike"
NO_QUALITY = "what a deployment writes cannot be predicted: this study knows nothing of quality"


class SimulateEngine:
    """vLLM on a simulated GPU.

    Args:
        cfg: `options` are the assumptions, see `SimulateOptions`; `python` an interpreter that has
            the simulator, None makes an environment for it; `args` count for every deployment.
        cache_dir: the simulator's log is written there.

    Raises:
        ConfigError: an option that does not exist or cannot be, or a flag of the launch's own.
    """

    name = "simulate"
    kind = "direct"
    predicted = True
    needs_checkpoint = True

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        self.cfg = cfg
        self.options = simulate_options(cfg.options)
        self._args = flags.engine_flags(cfg.args)
        self._log_path = cache_dir / "simulator" / "worker.log"
        self._simulator: Simulator | None = None
        self._surroundings: Surroundings | None = None

    def facts(self) -> EngineFacts:
        """The simulator's version, which its worker pins; nothing is asked."""
        return EngineFacts(
            name=self.name,
            version=VERSION,
            distribution="aisimulate",
            device="cuda",
            predicted=True,
            details={"models": "vllm"},
        )

    def check_flags(
        self, asked: Sequence[AskedFlag], progress: Callable[[str], None] | None
    ) -> FlagCheck:
        """What it has no model of is told by `foresee`. See `Engine.check_flags`."""
        return FlagCheck()

    def check_hardware(self, hardware: HardwareFacts) -> None:
        """See `Modelling.check_hardware`."""
        if hardware.kind != "cuda":
            known = ", ".join(system.known_as for system in SYSTEMS)
            raise ConfigError(
                f"engine=simulate predicts a GPU, and this machine has none ({hardware.name})",
                f"name one that need not be here: hardware=h200; the simulator has: {known}",
            )
        system_of(hardware.name)

    def foresee(
        self, surroundings: Surroundings, space: Space, tell: Callable[[str], None]
    ) -> Foreseen:
        """See `Modelling.foresee`."""
        self._surroundings = surroundings
        self._simulator = Simulator(self._log_path, python=self.cfg.python, tell=tell)
        weakref.finalize(self, self._simulator.close)
        self._check_model(surroundings)
        found = within(
            space,
            self._try,
            repeats_prompts=surroundings.workload.kind in {"shared_prefix", "conversation"},
            acceptance_known=self.options.ngram_acceptance is not None,
        )
        return replace(found, notes=(*found.notes, *self._notes(surroundings)))

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """Predict whether it starts, then answer for its load levels. See `Engine.serve`."""
        parameters = {**self._args, **request.deployment}
        ask = self._quick(parameters, request.weights)
        found = self._predict(ask)
        if isinstance(found, Diagnosis):
            raise LaunchFailure(found, virtual_s=self.options.start_s)
        (request.run_dir / "simulator.json").write_text(json.dumps(to_config(ask), indent=2) + "\n")
        deployed = _Deployed(ask, self._predict, self.options.start_s)
        yield RunningServer(
            base_url="",
            served_name=request.served_name,
            api_key="",
            pid=0,
            ready_after_s=self.options.start_s,
            argv=(),
            effective_args={k: v for k, v in parameters.items() if k in MODELLED},
            learnt={**found.learnt, **({"tables": found.tables} if found.tables else {})},
            is_alive=lambda: True,
            log_path=request.run_dir / "server.log",
            answer=deployed.answer,
            virtual_s=lambda: deployed.spent_s,
        )

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Nothing runs, so nothing can die. Pure."""
        return Diagnosis(Verdict.UNKNOWN, phase, "a simulated server cannot die", "report this")

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The flags that vLLM itself would take for the deployment."""
        # A recipe's name is none of vLLM's words, and its checkpoint was never made.
        sent = {k: v for k, v in parameters.items() if k != "quantization" or is_word(v)}
        asked, env = flags.deployment_flags(sent)
        return {"model": model_path, **self._args, **asked}, {**self.cfg.env, **env}

    def _check_model(self, surroundings: Surroundings) -> None:
        """Refuse a model of which nothing was timed: no deployment of it has a prediction."""
        found = self._try({})
        if found is not None and found.verdict is Verdict.UNKNOWN:
            name = surroundings.model_config.get("architectures") or ["?"]
            raise ModelError(
                f"the simulator cannot predict {name[0]} on {surroundings.hardware.name}: "
                f"{found.cause}",
                f"{found.remedy}; it says: {found.evidence[:300]}",
            )

    def _notes(self, surroundings: Surroundings) -> list[str]:
        work = surroundings.workload
        varied = work.length_distribution != "fixed" or work.kind not in {
            "synthetic",
            "shared_prefix",
        }
        ignored = sorted(set(self._args) - MODELLED)
        told = [NO_QUALITY]
        if varied:
            told.append(MEAN_LENGTHS)
        if ignored:
            told.append(f"without effect on predictions: {', '.join(ignored)} (engine.args)")
        return told

    def _try(self, parameters: Mapping[str, Any]) -> Diagnosis | None:
        surroundings = self._known()
        weights = surroundings.serve(parameters).weights
        found = self._predict(self._quick({**self._args, **parameters}, weights))
        return found if isinstance(found, Diagnosis) else None

    def _quick(
        self, parameters: Mapping[str, Any], weights: QuantizedWeights | None
    ) -> SimulatorAsk:
        """One short request: shows whether a deployment can be predicted at all."""
        surroundings = self._known()
        return SimulatorAsk(
            model_config=surroundings.model_config,
            hardware=surroundings.hardware.name,
            parameters={k: v for k, v in parameters.items() if k in MODELLED},
            weights=weights,
            ngram_acceptance=self.options.ngram_acceptance,
            tables=self.options.tables,
            input_tokens=128,
            output_tokens=2,
            requests=1,
            concurrency=1,
        )

    def _predict(self, ask: SimulatorAsk) -> Prediction:
        if self._simulator is None:
            raise RuntimeError("foresee comes before the first launch")
        return self._simulator.predict(ask)

    def _known(self) -> Surroundings:
        if self._surroundings is None:
            raise RuntimeError("foresee comes before the first launch")
        return self._surroundings


@dataclass
class _Deployed:
    """A deployment while it is asked for its levels.

    Attributes:
        asked: the deployment; its load level is replaced by each in turn.
        predict: of the simulator.
        spent_s: on the virtual clock, the start included.
    """

    asked: SimulatorAsk
    predict: Callable[[SimulatorAsk], Prediction]
    spent_s: float

    def answer(self, level: LevelAsk) -> LevelAnswer:
        """Predicted figures. Raises LaunchFailure if the simulator has none of the deployment."""
        found = self.predict(_at(self.asked, level))
        if isinstance(found, Diagnosis):
            raise LaunchFailure(replace(found, phase=Phase.LOAD))
        spent_s = _driving_s(found)
        self.spent_s += spent_s
        return LevelAnswer(found.metrics, found.n, spent_s)


def _at(ask: SimulatorAsk, level: LevelAsk) -> SimulatorAsk:
    return replace(
        ask,
        input_tokens=max(1, round(level.input_tokens)),
        output_tokens=max(1, round(level.output_tokens)),
        requests=level.requests,
        concurrency=level.concurrency,
        rate_per_s=level.rate_per_s,
        constant=level.arrivals == "constant",
        prefix_tokens=round(level.shared_tokens),
        seed=level.seed,
    )


def _driving_s(found: SimulatorAnswer) -> float:
    """What a level would have taken: its own time, and one request a stream before to warm up."""
    return found.duration_s + found.metrics.get("e2e_mean_ms", 0.0) / 1e3
