"""The simulator as a prior: a load curve by the engine's scheduler over timed operators.

A prediction takes some 70 ms, so of a large space a sample is simulated (`prior.predictions` load
levels) and the rest inferred from it; whatever comes near being launched is then simulated itself.
Deployments that differ only in what cannot be modelled are one to it. Answers are kept in the cache
folder, so that a study that is taken up again does not wait for them.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.errors import ConfigError, EngineError
from sweeper.estimate.simulator.answer import SimulatorAnswer
from sweeper.estimate.simulator.ask import SimulatorAsk
from sweeper.estimate.simulator.client import Simulator
from sweeper.estimate.simulator.modelled import MODELLED
from sweeper.estimate.simulator.systems import system_of
from sweeper.load.level import OPEN, LoadLevel
from sweeper.models.cache import cache_dir
from sweeper.models.read import read_config
from sweeper.search.priors.kept import Kept
from sweeper.search.priors.ladder import predicted_levels
from sweeper.search.priors.neighbours import Neighbours
from sweeper.search.priors.prior import FEW, Deployment, PredictedPoint, Prediction, Prior, Say
from sweeper.search.priors.trust import TRUST
from sweeper.space.canonical import baseline

if TYPE_CHECKING:
    from sweeper.search.setup import StudySetup

DRAFTING = frozenset({"speculative", "num_speculative_tokens"})
"""How many drafts are accepted is not known before a launch: no gain and no cost is predicted."""
PRECISIONS = frozenset({"quantization", "kv_cache_dtype"})
"""Parameters whose values need operators timed for them."""
STREAMS_OF_REQUESTS = 4
"""Requests of a predicted level, by its streams, at least: there is a steady state to predict."""
MOST_REQUESTS = 1_000
SECONDS_EACH = 0.1
"""Of a prediction, for what is said beforehand."""

Row = tuple[tuple[str, Any], ...]
"""A deployment as far as it can be modelled."""


def make(setup: StudySetup, say: Say) -> Prior | str:
    """The simulator of a study's model and GPU, or why there is none.

    Raises:
        ConfigError: `prior.hardware` names a GPU that it has no tables of.
    """
    wanted = setup.cfg.prior.hardware
    if wanted is not None:
        hardware = system_of(wanted).known_as
    elif setup.engine_facts.name == "simulate":
        return "the study's own engine is the simulator; prior.hardware=NAME takes another GPU's"
    elif setup.hardware.kind != "cuda":
        return "it models GPUs only; prior.hardware=h100_80gb takes one for a model of the ranking"
    else:
        try:
            hardware = system_of(setup.hardware.name).known_as
        except ConfigError as error:
            return f"{error.message}; prior.hardware=NAME takes another one in its place"
    config = _model_config(setup)
    if config is None:
        return "the model's config.json is not known (model.facts)"
    if not predicted_levels(setup.cfg.load):
        return f"load.kind={setup.cfg.load.kind} has no steady state"
    return SimulatorPrior(setup, config, hardware, say)


def _model_config(setup: StudySetup) -> dict[str, Any] | None:
    """Fields of config.json: those of the configuration, else of the folder that is served."""
    if setup.cfg.model.facts:
        return dict(setup.cfg.model.facts)
    folder = Path(setup.model.path)
    return read_config(folder) if (folder / "config.json").is_file() else None


class SimulatorPrior:
    """Simulated load curves.

    Args:
        setup: of the study.
        model_config: fields of the model's config.json.
        hardware: the GPU that is simulated.
        say: told what takes time.
    """

    kind = "simulator"
    trust = TRUST[kind]

    def __init__(
        self, setup: StudySetup, model_config: Mapping[str, Any], hardware: str, say: Say
    ) -> None:
        self._setup = setup
        self._say = say
        self._config = model_config
        self._hardware = hardware
        self._levels = predicted_levels(setup.cfg.load)
        searched = set(setup.space.names)
        self._names = sorted((searched | set(setup.space.fixed)) & MODELLED - DRAFTING)
        self._exact: dict[Row, Prediction | None] = {}
        self._sample: Neighbours | None = None
        self._lacking: set[tuple[str, Any]] = set()
        self._folder = cache_dir(setup.cfg) / "predictions"
        self._kept = Kept(self._folder)
        self._broken = False
        self._simulator: Simulator | None = None
        self.notes: list[str] = []
        if hardware != setup.cfg.hardware.name and setup.cfg.prior.hardware is not None:
            self.notes.append(f"simulates {hardware} in place of {setup.hardware.name}")
        if unseen := sorted(searched - set(self._names)):
            self.notes.append(f"cannot tell {', '.join(unseen)} apart")

    def suggestions(self) -> list[dict[str, Any]]:
        return []

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        rows = [self._row(deployment) for deployment in deployments]
        if len(rows) <= FEW:
            self._simulate(list(dict.fromkeys(rows)))
            return [self._exact.get(row) for row in rows]
        distinct = list(dict.fromkeys(rows))
        if self._sample is None:
            self._draw(distinct)
        new = [row for row in distinct if row not in self._exact]
        told: dict[Row, Prediction | None] = dict.fromkeys(new)
        open_ = [row for row in new if not self._lacking & set(row)]
        if self._sample is not None and open_:
            inferred = self._sample.predict([dict(row) for row in open_])
            told |= dict(zip(open_, inferred, strict=True))
        return [told[row] if row in told else self._exact[row] for row in rows]

    def _row(self, deployment: Deployment) -> Row:
        return tuple((name, deployment[name]) for name in self._names if name in deployment)

    def _draw(self, rows: Sequence[Row]) -> None:
        """Simulate what the budget allows: all, or a sample from which the rest is inferred."""
        most = max(1, self._setup.cfg.prior.predictions // len(self._levels))
        self._lacking = self._without_timing(rows)
        rows = [row for row in rows if not self._lacking & set(row)]
        drawn = list(rows)
        if len(rows) > most:
            drawn = random.Random(self._setup.cfg.sampler.seed).sample(drawn, most)
            self.notes.append(
                f"simulated {most} of {len(rows)} deployments that it can tell apart, the rest is "
                "inferred (prior.predictions)"
            )
        self._simulate(drawn)
        known = [
            (dict(row), prediction)
            for row in drawn
            if (prediction := self._exact.get(row)) is not None
        ]
        defaults = {
            name: None if value == "default" else value
            for name, value in baseline(self._setup.space).items()
        }
        self._sample = Neighbours(known, self._names, defaults) if known else None

    def _without_timing(self, rows: Sequence[Row]) -> set[tuple[str, Any]]:
        """Precisions that the simulator refuses by themselves: nothing is inferred for them."""
        values = dict.fromkeys(
            (name, value) for row in rows for name, value in row if name in PRECISIONS
        )
        self._simulate([(), *((value,) for value in values)])
        if self._exact[()] is None:
            return set()
        lacking = {value for value in values if self._exact[value,] is None}
        if lacking:
            told = ", ".join(f"{name}={value}" for name, value in sorted(lacking))
            self.notes.append(f"has nothing timed for {told}")
        return lacking

    def _simulate(self, rows: Sequence[Row]) -> None:
        new = [row for row in rows if row not in self._exact]
        if not new:
            return
        asks = {row: [self._ask(row, level) for level in self._levels] for row in new}
        every = [ask for row in new for ask in asks[row]]
        answers = self._answers(every)
        per_level = iter(answers)
        for row in new:
            told = [(level, next(per_level)) for level in self._levels]
            points = tuple(
                PredictedPoint(level.asked(), metrics) for level, metrics in told if metrics
            )
            self._exact[row] = Prediction(points) if points else None

    def _answers(self, asks: Sequence[SimulatorAsk]) -> list[Mapping[str, float] | None]:
        """Figures of each ask, None where the simulator refuses; from the cache where they are."""
        found = self._kept.read(asks)
        new = [ask for ask, answer in zip(asks, found, strict=True) if answer is None]
        if not new or self._broken:
            return [answer or None for answer in found]
        if len(new) > FEW * len(self._levels):
            self._say(
                f"prior simulator: predicting {len(new)} load levels, about "
                f"{len(new) * SECONDS_EACH:.0f} s"
            )
        try:
            answers = self._opened().predict_all(new)
        except (EngineError, ConfigError) as error:
            self._broken = True
            self.notes.append(f"predicts nothing: {error.message}; {error.remedy}")
            return [answer or None for answer in found]
        figures = [
            dict(answer.metrics) if isinstance(answer, SimulatorAnswer) else {}
            for answer in answers
        ]
        self._kept.add(new, figures)
        fresh = iter(figures)
        return [(next(fresh) if answer is None else answer) or None for answer in found]

    def _opened(self) -> Simulator:
        """One worker for the whole study: it takes seconds to load, and none while it waits."""
        if self._simulator is None:
            log = self._folder / "simulator.log"
            self._simulator = Simulator(log, python=None, tell=self._say)
            weakref.finalize(self, self._simulator.close)
        return self._simulator

    def _ask(self, row: Row, level: LoadLevel) -> SimulatorAsk:
        setup, workload = self._setup, self._setup.cfg.workload
        given = {**setup.cfg.engine.args, **dict(row)}
        served = setup.selection.serve(given)
        parameters = {
            name: value for name, value in served.parameters.items() if name not in DRAFTING
        }
        streams = level.concurrency or 1
        return SimulatorAsk(
            model_config=self._config,
            hardware=self._hardware,
            parameters=parameters,
            input_tokens=max(1, workload.input_tokens),
            output_tokens=max(1, workload.output_tokens),
            requests=min(MOST_REQUESTS, max(level.requests, STREAMS_OF_REQUESTS * streams)),
            concurrency=None if level.kind == OPEN else streams,
            rate_per_s=level.rate_per_s if level.kind == OPEN else None,
            constant=level.arrivals == "constant",
            prefix_tokens=workload.prefix_tokens,
            weights=served.weights,
        )
