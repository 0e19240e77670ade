"""What a trial is made from: everything needed to run it, here or on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.config.deadlines import hang_s
from sweeper.config.schema import LoadConfig, QualityConfig, WorkloadConfig
from sweeper.engine.protocol import ParameterValue
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.quality.reference import Reference
from sweeper.quantize.job import CheckpointJob
from sweeper.trial.outcome import QualityScore
from sweeper.trial.to_beat import ToBeat


@dataclass(frozen=True)
class TrialPlan:
    """One deployment to launch and measure.

    Attributes:
        number: the trial's number in the study.
        kind: baseline | seed | search | confirm.
        attempt: 1, or 2 for the retry of a trial that failed for reasons of its surroundings.
        deployment: canonical parameters, as the journal records them.
        deployment_hash: of `deployment`.
        checkpoint: local folder or hub id that is served (a quantized one where the deployment
            says so).
        engine_parameters: what the engine is started with; `deployment` without what has already
            been turned into a checkpoint.
        run_dir: folder for the launch's log, command line and requests.
        record_path: where the running launch is noted, so that a later run can end what a killed
            tuner left; None for no note.
        token: mark in the environment of every process of the launch.
        start_timeout_s: deadline for the first real completion.
        workload, load, quality: how the server is driven and judged.
        device_count: devices the deployment occupies, for figures per GPU.
        seed: of prompts and bootstrap.
        quality_key: hash of what can change this deployment's output.
        known_quality: score of an earlier trial with the same key; then nothing is read.
        drafting: how tokens are drafted, see `sweeper.quality.key.drafting`.
        to_write: True if the deployment must write the suite although its score is known.
        plain_written: digests of what the same output was without its drafting, None if unknown.
        reference: what the output is compared with; None until it is written.
        may_write_reference: True if this deployment is the reference (unquantized defaults).
        conditions: the study's part of the manifest.
        revision, trust_remote_code, dtype: passed to the engine.
        model, hardware: for the speed of light; None where they are not known.
        record_text: whether prompts and outputs are written to the trial's folder.
        hang_timeout_s: how long a server under load may get on with nothing; None scales with the
            start's deadline.
        to_make: the checkpoint that is made first and then served in the place of `checkpoint`;
            None if `checkpoint` is served as it is.
        weights: of a quantized checkpoint, for the speed of light; None if none is served, or
            nothing is known of it.
        device_wait_s: how long the making of it may wait for devices that another tuner holds.
        repeats: of a confirmation: number of the trial whose deployment it launches again.
        to_beat: what it must beat to matter, see `sweeper.trial.cutting`; None drives it through
            its whole ladder.
    """

    number: int
    kind: str
    attempt: int
    deployment: Mapping[str, ParameterValue]
    deployment_hash: str
    checkpoint: str
    engine_parameters: Mapping[str, ParameterValue]
    run_dir: Path
    record_path: Path | None
    token: str
    start_timeout_s: float
    workload: WorkloadConfig
    load: LoadConfig
    quality: QualityConfig
    device_count: int
    seed: int
    quality_key: str
    known_quality: QualityScore | None = None
    drafting: str = ""
    to_write: bool = False
    plain_written: Sequence[str] | None = None
    reference: Reference | None = None
    may_write_reference: bool = False
    conditions: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: str | None = None
    model: ModelFacts | None = None
    hardware: HardwareFacts | None = None
    record_text: bool = False
    hang_timeout_s: float | None = None
    to_make: CheckpointJob | None = None
    weights: QuantizedWeights | None = None
    device_wait_s: float = 3600.0
    repeats: int | None = None
    to_beat: ToBeat | None = None

    @property
    def hang_after_s(self) -> float:
        """Silence of a server under load that is a hang, in seconds."""
        return hang_s(self.hang_timeout_s, self.start_timeout_s)

    @property
    def served_name(self) -> str:
        """Model name no other server answers to."""
        return f"trial-{self.number}-{self.attempt}-{self.token[-8:]}"
