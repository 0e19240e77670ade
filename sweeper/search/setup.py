"""Everything a study runs with, resolved once before the first launch."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import sweeper
from sweeper.config.deadlines import quantize_s
from sweeper.config.schema import SweeperConfig
from sweeper.config.trust import runs_model_code
from sweeper.engine.flag_check import FLAG_PREFIX, Refusal
from sweeper.engine.protocol import Engine, EngineFacts, ParameterValue, Tabled
from sweeper.engine.replay.table import Table
from sweeper.estimate import rules
from sweeper.estimate.facts import missing_models
from sweeper.estimate.memory_launch import Calibration
from sweeper.estimate.violation import Violation
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.detect import to_manifest
from sweeper.hardware.facts import HardwareFacts
from sweeper.load.workload.lengths import longest
from sweeper.models.cache import cache_dir
from sweeper.models.facts import ModelFacts
from sweeper.models.resolve import ResolvedModel
from sweeper.quality.key import quality_key
from sweeper.quantize.job import CheckpointJob
from sweeper.quantize.selection import Selection, without_recipe_fields
from sweeper.space.match import same
from sweeper.space.model import Space

# A start reads the weights (a slow disk gives 100 MB/s), fetches them first if they are not here
# (a slow line gives 10 MB/s), and may compile. An engine that has not answered by then is taken
# for hung; one that dies is noticed at once, whatever this says.
START_BASE_S = 600.0
SLOW_DISK_BYTES_PER_S = 100e6
SLOW_LINE_BYTES_PER_S = 10e6


@dataclass(frozen=True)
class Resolved:
    """What is started for a deployment.

    Attributes:
        checkpoint: folder or hub id to serve; the unquantized model's where `to_make` takes its
            place first.
        parameters: for the engine, in its own words.
        to_make: the checkpoint to take from the cache or to make, None if `checkpoint` is served.
        weights: of a quantized checkpoint, as far as they are known.
    """

    checkpoint: str
    parameters: dict[str, ParameterValue]
    to_make: CheckpointJob | None = None
    weights: QuantizedWeights | None = None

    def is_model_itself(self, model: ResolvedModel) -> bool:
        """Whether the study's own model is served, of which the revision is known."""
        return self.to_make is None and self.checkpoint == model.path


@dataclass(frozen=True)
class StudySetup:
    """A study's fixed surroundings.

    Attributes:
        cfg: the whole configuration.
        space: what is searched.
        model: the model as found on this machine.
        draft: facts of the draft model, or None.
        hardware: the devices.
        engine: the engine variant.
        engine_facts: its version and device.
        refused: choices of the space that the installed engine does not take.
        renamed: flag → the study's word → the name by which the installed engine knows it. The
            study keeps its own word everywhere; only the engine is given the other.
    """

    cfg: SweeperConfig
    space: Space
    model: ResolvedModel
    draft: ModelFacts | None
    hardware: HardwareFacts
    engine: Engine
    engine_facts: EngineFacts
    refused: tuple[Refusal, ...] = ()
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def required_tokens(self) -> int:
        """Longest request of the workload, in tokens."""
        return sum(longest(self.cfg.workload))

    @cached_property
    def selection(self) -> Selection:
        """What the values of `quantization` stand for."""
        return Selection(
            self.cfg.quantize, self.cfg.model.checkpoints, self.model.facts, self.hardware.kind
        )

    @property
    def start_timeout_s(self) -> float:
        """Deadline for a server's first completion, scaled by the size of the weights."""
        if self.cfg.engine.start_timeout_s is not None:
            return self.cfg.engine.start_timeout_s
        to_fetch = self.model.source == "hub" and self.model.size_bytes is None
        to_fetch = to_fetch or self.selection.has_published
        rate = SLOW_LINE_BYTES_PER_S if to_fetch else SLOW_DISK_BYTES_PER_S
        return START_BASE_S + self._size_bytes / rate

    @property
    def _size_bytes(self) -> float:
        """Of the unquantized weights; 0 if nothing is known of them."""
        parameters = self.model.facts.parameters if self.model.facts else 0
        return float(self.model.size_bytes or parameters * 2)

    def conditions(self) -> dict[str, Any]:
        """The study's part of every trial's manifest."""
        return {
            "model": {
                "name": self.model.name,
                "path": self.model.path,
                "source": self.model.source,
                "revision": self.model.revision,
                "licence": self.model.licence,
                "digest": self.model.digest,
                "trust_remote_code": runs_model_code(self.cfg),
                "tokenizer": self.cfg.engine.args.get("tokenizer", "the model's own"),
            },
            "hardware": to_manifest(self.hardware),
            "engine": asdict(self.engine_facts),
            "client": {"name": "sweeper", "version": sweeper.__version__},
            "python": platform.python_version(),
            "measured": not self.engine_facts.predicted,
            **({"renamed": self.renamed} if self.renamed else {}),
        }

    def violations(
        self,
        deployment: Mapping[str, Any],
        longest_reference_tokens: int = 0,
        calibration: Calibration | None = None,
    ) -> list[Violation]:
        """Rules a canonical deployment breaks, the flags of every launch counted in.

        Args:
            longest_reference_tokens: longest text of the quality suite, once it is known.
            calibration: what launches of the study told of memory.
        """
        if (refusal := self._not_in_table(deployment)) is not None:
            return [refusal]
        served = self.selection.serve({**self.cfg.engine.args, **deployment})
        sent = served.parameters
        proven = rules.check(
            self.in_words(sent),
            model=self.model.facts,
            hardware=self.hardware,
            engine=self.engine_facts,
            draft=self.draft,
            required_tokens=max(self.required_tokens, longest_reference_tokens),
            missing=missing_models(self.cfg.model),
            weights=served.weights,
            calibration=calibration,
        )
        return [*self._not_taken(deployment, sent), *served.violations, *proven]

    def _not_in_table(self, deployment: Mapping[str, Any]) -> Violation | None:
        """Why a table cannot be asked for a deployment; None if it can, or nothing is tabled."""
        refused = self.table.refusal(deployment) if self.table is not None else None
        # No parameter is to blame: another value of any of them may be in the table.
        return None if refused is None else Violation(*refused, ())

    @property
    def table(self) -> Table | None:
        """The table that stands in the place of launches, None if there are launches."""
        return self.engine.table if isinstance(self.engine, Tabled) else None

    def _not_taken(self, deployment: Mapping[str, Any], sent: Mapping[str, Any]) -> list[Violation]:
        """Values that the installed engine does not take, by the words that it knows them by."""
        return [
            Violation(
                "unknown_to_engine",
                refusal.problem.cause,
                refusal.problem.remedy,
                (refusal.asked.parameter,),
            )
            for refusal in self.refused
            if (name := refusal.asked.parameter) in deployment
            and same(sent[name], refusal.asked.value)
        ]

    def in_words(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """A served deployment in the words that arithmetic is told, which are the engine's."""
        return {name: self._engine_word(name, value) for name, value in sent.items()}

    def _engine_word(self, parameter: str, value: Any) -> Any:
        """The engine's name for a value of the study, mostly the same."""
        words = self.renamed.get(_flag_name(parameter))
        return words.get(value, value) if words and isinstance(value, str) else value

    def _in_engine_words(self, parameters: dict[str, ParameterValue]) -> None:
        """Put the engine's names for the study's words into a deployment.

        `engine.args` are added by the engine, as they are written, to what a deployment leaves
        open: so a word of theirs that is renamed is written into the deployment.
        """
        own = {_flag_name(name) for name in parameters}
        for name, value in self.cfg.engine.args.items():
            word = self._engine_word(name, value)
            if word != value and _flag_name(name) not in own:
                parameters[_flag_name(name)] = word
        for name, value in parameters.items():
            parameters[name] = self._engine_word(name, value)

    def resolve(self, deployment: Mapping[str, Any]) -> Resolved:
        """What is started for a deployment.

        A quantized checkpoint takes the place of the model and of the `quantization` value, because
        it states its method in its config.json; the draft or EAGLE model of the configuration is
        filled in where speculation needs one.
        """
        if self.table is not None:  # it knows deployments by what they are called
            return Resolved(self.model.path, dict(deployment))
        parameters = without_recipe_fields(deployment)
        name = parameters.pop("quantization", None)
        path, method = self.selection.path(deployment), self.selection.method(deployment)
        to_make = self._to_make(deployment)
        if self.engine_facts.predicted and path is None:
            method = name  # nothing is made for an engine that only plays one
        if method is not None:
            parameters["quantization"] = method
        helpers = {
            "draft_model": self.cfg.model.draft_model,
            "eagle": self.cfg.model.eagle_model,
        }
        helper = helpers.get(str(parameters.get("speculative")))
        if helper is not None:
            parameters["speculative_model"] = helper
        self._in_engine_words(parameters)
        weights = self.selection.serve(deployment).weights
        return Resolved(path or self.model.path, parameters, to_make, weights)

    def _to_make(self, deployment: Mapping[str, Any]) -> CheckpointJob | None:
        recipe = self.selection.recipe(deployment)
        if recipe is None or self.engine_facts.predicted:
            return None
        quantize = self.cfg.quantize
        return CheckpointJob(
            recipe=recipe,
            model_path=self.model.path,
            model_digest=self.model.digest,
            cache_dir=cache_dir(self.cfg),
            timeout_s=quantize_s(quantize.timeout_s, self._size_bytes),
            revision=self.model.revision,
            python=quantize.python,
            device=quantize.device,
            memory_gib=quantize.memory_gib,
            cache_limit_gib=quantize.cache_limit_gib,
            trust_remote_code=self.cfg.model.trust_remote_code,
        )

    def quality_key(self, deployment: Mapping[str, Any]) -> str:
        """Hash of what can change a deployment's output."""
        return quality_key(
            {**self.cfg.engine.args, **self.selection.content(deployment)},
            self.engine_facts.version,
            self.cfg.model.dtype,
            self.model.digest or self.model.path,
        )

    def device_count(self, deployment: Mapping[str, Any]) -> int:
        """Devices a deployment occupies: tp * pp * dp on GPUs, one on a CPU.

        A server that was not started here occupies all that its user says it has.
        """
        row = self.table.lookup(deployment) if self.table is not None else None
        if row is not None:
            return row.device_count
        if not self.engine.needs_checkpoint:
            return self.hardware.device_count
        if self.hardware.kind != "cuda":
            return 1
        sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
        count = 1
        for name in sizes:
            count *= int(deployment.get(name, self.cfg.engine.args.get(name, 1)))
        return count


def _flag_name(parameter: str) -> str:
    return parameter.removeprefix(FLAG_PREFIX).lstrip("-").replace("-", "_")
