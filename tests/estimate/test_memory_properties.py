"""Properties of the memory model: what holds for every deployment, and for every true device.

The second half plays a device whose true memory lies anywhere within the stated errors, and holds
the model to its promise: what it calls a misfit never fits, whatever it learnt on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import DOES_NOT, FITS, MemoryVerdict, verdict
from sweeper.estimate.memory_calibrate import calibrate
from sweeper.estimate.memory_launch import Calibration, Launch
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from tests.estimate.facts import CPU, H100, QWEN3, QWEN7B, SMOLLM2, T4
from tests.estimate.test_memory import GEMMA3, LLAMA8B, MIXTRAL

MANY = settings(max_examples=60, deadline=None)
SHARES = st.sampled_from([0.2, 0.5, 0.8, 0.9, 0.95])
LENGTHS = st.sampled_from([512, 2048, 8192, 32_768])
SEQS = st.sampled_from([1, 8, 64, 256, 1024])
TOKENS = st.sampled_from([1024, 2048, 8192, 16_384])
DEGREES = st.sampled_from([1, 2, 4, 8])
MODELS = st.sampled_from([QWEN7B, QWEN3, SMOLLM2, LLAMA8B, MIXTRAL, GEMMA3])
DEVICES = st.sampled_from([H100, T4, replace(T4, memory_gib=22.5), CPU, replace(CPU, memory_gib=2)])
FIXED = {
    "gpu_memory_utilization": SHARES,
    "max_model_len": LENGTHS,
    "max_num_seqs": SEQS,
    "max_num_batched_tokens": TOKENS,
}
OPEN = {
    "tensor_parallel_size": DEGREES,
    "pipeline_parallel_size": st.sampled_from([1, 2, 4]),
    "data_parallel_size": DEGREES,
    "quantization": st.sampled_from(["none", "awq", "gptq", "fp8_per_tensor", "strange"]),
    "kv_cache_dtype": st.sampled_from(["auto", "fp8", "nvfp4", "strange"]),
    "dtype": st.sampled_from(["auto", "float16", "float32"]),
    "enforce_eager": st.booleans(),
    "speculative": st.sampled_from(["none", "ngram", "eagle", "draft_model"]),
    "block_size": st.sampled_from([16, 128]),
}
DEPLOYMENTS = st.fixed_dictionaries({}, optional={**FIXED, **OPEN})


def slack(found: MemoryVerdict) -> float:
    """What is left in the best case; a misfit where it is negative."""
    assert found.budget is not None
    return found.budget.gib.most - found.least_needed_gib


@MANY
@given(DEPLOYMENTS, MODELS, DEVICES)
def test_every_part_lies_between_its_bounds(
    deployment: dict[str, Any], facts: ModelFacts, device: HardwareFacts
) -> None:
    found = verdict(deployment, facts, device, 512)
    for part in found.parts:
        assert 0 <= part.least_gib <= part.expected_gib + 1e-9, part
        assert part.most_gib is None or part.expected_gib <= part.most_gib + 1e-9, part
    for span in (found.cache_gib, found.sequences, found.kv_tokens):
        assert span is not None
        assert 0 <= span.least <= span.expected <= span.most
    assert (found.verdict == DOES_NOT) == (slack(found) < 0)


@MANY
@given(
    st.fixed_dictionaries({}, optional={**FIXED, **OPEN}),
    MODELS,
    DEVICES,
    st.sampled_from(
        [
            ("max_num_seqs", 8, 512),
            ("max_model_len", 1024, 32_768),
            ("max_num_batched_tokens", 1024, 16_384),
            ("gpu_memory_utilization", 0.9, 0.4),
            ("tensor_parallel_size", 8, 1),
            ("tensor_parallel_size", 4, 2),
            ("pipeline_parallel_size", 4, 1),
            ("kv_cache_dtype", "fp8", "auto"),
        ]
    ),
)
def test_a_misfit_stays_one_in_the_worse_direction(
    deployment: dict[str, Any],
    facts: ModelFacts,
    device: HardwareFacts,
    worse: tuple[str, Any, Any],
) -> None:
    name, good, bad = worse
    better = verdict({**deployment, name: good}, facts, device)
    worsened = verdict({**deployment, name: bad}, facts, device)
    assert slack(worsened) <= slack(better) + 1e-9
    if better.verdict == DOES_NOT:
        assert worsened.verdict == DOES_NOT


@dataclass(frozen=True)
class Truth:
    """A device whose every part lies somewhere within its error.

    Attributes:
        seen: its memory over what the driver says.
        at: where between least and most each part lies.
        noise_gib: by which starts of one deployment differ.
    """

    seen: float
    at: float
    noise_gib: float

    def parts(self, deployment: dict[str, Any]) -> tuple[float, float, float]:
        """(weights, everything beside weights and cache, cache of one sequence), GiB."""
        found = verdict(deployment, QWEN7B, DEVICE, 512)
        sizes = [
            part.least_gib + self.at * ((part.most_gib or 0.0) - part.least_gib)
            for part in found.parts[:-1]
        ]
        return sizes[0], sum(sizes[1:]) + self.noise_gib, found.sequence.expected_gib

    def left_gib(self, deployment: dict[str, Any]) -> float:
        """For the cache."""
        share = float(deployment["gpu_memory_utilization"])
        return share * self.seen * DEVICE.memory_gib - sum(self.parts(deployment)[:2])

    def fits(self, deployment: dict[str, Any]) -> bool:
        return self.parts(deployment)[2] <= self.left_gib(deployment)

    def launch(self, trial: int, deployment: dict[str, Any], *, tells_model: bool) -> Launch:
        works = self.fits(deployment)
        weights, _, sequence = self.parts(deployment)
        return Launch(
            trial=trial,
            parameters=deployment,
            model_gib=weights if tells_model else None,
            cache_gib=self.left_gib(deployment),
            request_gib=sequence,
            request_tokens=deployment["max_model_len"],
            started=works,
            short=not works,
        )


DEVICE = replace(T4, memory_gib=20.0)
STUDY = Context({}, QWEN7B, DEVICE, None, None, 512)
TRUTHS = st.builds(
    Truth, st.floats(0.966, 0.999), st.floats(0.05, 0.95), st.sampled_from([0.0, -0.04, 0.04])
)
TRIED = st.fixed_dictionaries(
    {
        "gpu_memory_utilization": st.sampled_from([0.8, 0.85, 0.9, 0.95]),
        "max_model_len": LENGTHS,
        "max_num_seqs": SEQS,
        "max_num_batched_tokens": TOKENS,
    },
    optional={"enforce_eager": st.just(True)},
)


def learn(truth: Truth, launched: list[dict[str, Any]], *, tells_model: bool) -> Calibration:
    """What launches teach; every second one was a little luckier."""
    launches = [
        replace(truth, noise_gib=truth.noise_gib * (trial % 2)).launch(
            trial, deployment, tells_model=tells_model
        )
        for trial, deployment in enumerate(launched)
    ]
    return calibrate(launches, STUDY)


@MANY
@given(TRUTHS, st.lists(TRIED, max_size=4), TRIED, st.booleans())
def test_what_is_called_a_misfit_never_fits(
    truth: Truth, launched: list[dict[str, Any]], asked: dict[str, Any], tells_model: bool
) -> None:
    told = learn(truth, launched, tells_model=tells_model)
    found = verdict(asked, QWEN7B, DEVICE, 512, told)
    if found.verdict == DOES_NOT:
        assert not replace(truth, noise_gib=0.0).fits(asked)


@MANY
@given(TRUTHS, st.lists(TRIED, min_size=1, max_size=4), st.booleans())
def test_no_launch_that_worked_is_ever_called_a_misfit(
    truth: Truth, launched: list[dict[str, Any]], tells_model: bool
) -> None:
    told = learn(truth, launched, tells_model=tells_model)
    for launch in told.launches:
        if launch.started:
            found = verdict(launch.parameters, QWEN7B, DEVICE, 512, told)
            assert found.verdict == FITS
            assert found.missing_gib == 0.0


@MANY
@given(
    TRUTHS,
    st.lists(TRIED, max_size=4),
    TRIED,
    st.sampled_from(
        [
            ("max_num_seqs", 2048),
            ("max_model_len", 65_536),
            ("max_num_batched_tokens", 32_768),
            ("gpu_memory_utilization", 0.6),
        ]
    ),
)
def test_a_measured_misfit_stays_one_in_the_worse_direction(
    truth: Truth,
    launched: list[dict[str, Any]],
    asked: dict[str, Any],
    worse: tuple[str, Any],
) -> None:
    told = learn(truth, launched, tells_model=True)
    if verdict(asked, QWEN7B, DEVICE, 512, told).verdict == DOES_NOT:
        worsened = {**asked, worse[0]: worse[1]}
        assert verdict(worsened, QWEN7B, DEVICE, 512, told).verdict == DOES_NOT
