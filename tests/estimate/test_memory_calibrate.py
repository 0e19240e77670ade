"""What launches do to verdicts: they sharpen them, and a contradiction widens them and is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import DOES_NOT, FITS, UNCERTAIN, MemoryVerdict, verdict
from sweeper.estimate.memory_calibrate import calibrate
from sweeper.estimate.memory_launch import Calibration, Launch
from sweeper.estimate.memory_part import BESIDE, WEIGHTS
from sweeper.estimate.weights import QuantizedWeights
from tests.estimate.facts import CPU, QWEN7B, SMOLLM2, T4, broken

DEVICE = replace(T4, name="A10G", memory_gib=22.5)
STUDY = Context({}, QWEN7B, DEVICE, None, None, 640)
BASE: dict[str, Any] = {"gpu_memory_utilization": 0.9, "max_model_len": 8192}
ROOM = 20.25  # 0.9 of the device
FIRST = Launch(
    0,
    BASE,
    in_effect={"max_num_seqs": 256, "max_num_batched_tokens": 2048},
    model_gib=14.27,
    cache_gib=3.7,
    request_gib=0.4375,
    request_tokens=8192,
)


def judged(told: Calibration | None = None, **changes: Any) -> MemoryVerdict:
    return verdict({**BASE, **changes}, QWEN7B, DEVICE, 640, told)


def after(*launches: Launch) -> Calibration:
    return calibrate(launches, STUDY)


def test_the_first_launch_decides_what_was_uncertain() -> None:
    told = after(FIRST)
    assert told.notes == ()
    # 65,536 tokens need 3.5 GiB; 3.7 are left at 0.9, hence at 0.8 about 1.45.
    for length, share, expected in [
        (32_768, 0.9, FITS),
        (32_768, 0.8, DOES_NOT),
        (16_384, 0.8, FITS),
        (8192, 0.75, UNCERTAIN),
        (16_384, 0.73, DOES_NOT),
    ]:
        asked: dict[str, Any] = {"max_model_len": length, "gpu_memory_utilization": share}
        assert judged(**asked).verdict == UNCERTAIN, asked
        assert judged(told, **asked).verdict == expected, asked


def test_measured_parts_say_so_and_add_up() -> None:
    found = judged(after(FIRST))
    weights, beside, sequence = found.parts
    assert (weights.name, weights.expected_gib, weights.measured) == (WEIGHTS, 14.27, True)
    assert (beside.name, beside.measured, sequence.measured) == (BESIDE, True, True)
    assert beside.expected_gib == pytest.approx(ROOM - 3.7 - 14.27)
    assert beside.most_gib is not None
    assert 0.1 < beside.most_gib - beside.least_gib < 0.5  # a spread, because starts differ
    assert found.cache_gib is not None
    assert found.cache_gib.expected == pytest.approx(3.7)
    assert found.kv_tokens is not None
    assert found.kv_tokens.expected == pytest.approx(3.7 / 0.4375 * 8192)


def test_larger_batches_need_no_less_and_smaller_ones_no_more() -> None:
    told = after(FIRST)
    larger = judged(told, max_num_seqs=1024, max_num_batched_tokens=4096)
    smaller = judged(told, max_num_seqs=64, max_num_batched_tokens=1024)
    exact = judged(told)
    mixed = judged(told, max_num_seqs=64, max_num_batched_tokens=4096)
    for found, bounded in [(larger, (True, False)), (smaller, (False, True))]:
        is_least = found.least_needed_gib == pytest.approx(exact.least_needed_gib)
        is_most = found.most_needed_gib == pytest.approx(exact.most_needed_gib)
        assert (is_least, is_most) == bounded
    assert mixed.least_needed_gib < exact.least_needed_gib
    assert mixed.most_needed_gib is not None
    assert exact.most_needed_gib is not None
    assert mixed.most_needed_gib > exact.most_needed_gib
    assert smaller.needed_gib < exact.needed_gib < larger.needed_gib


def test_defaults_that_nobody_told_are_compared_only_with_each_other() -> None:
    told = after(replace(FIRST, in_effect={}))
    assert judged(told, gpu_memory_utilization=0.6, max_model_len=4096).verdict == DOES_NOT
    asked = judged(told, max_num_seqs=2048)
    assert asked.least_needed_gib < judged(told).least_needed_gib


def test_another_kind_keeps_to_arithmetic() -> None:
    told = after(replace(FIRST, cache_gib=4.0))
    for changes in ({"tensor_parallel_size": 2}, {"enforce_eager": True}, {"flag.x": 1}):
        with_it, without = judged(told, **changes), judged(**changes)
        assert with_it.least_needed_gib == without.least_needed_gib
        assert with_it.most_needed_gib == without.most_needed_gib
    # Only the guess moves, and only where as many devices share: the same surplus is expected.
    assert judged(told, tensor_parallel_size=2).parts == judged(tensor_parallel_size=2).parts
    surplus = judged(told, enforce_eager=True).needed_gib - judged(enforce_eager=True).needed_gib
    plain = judged()
    weights = plain.parts[0].expected_gib
    beside = plain.needed_gib - weights - plain.sequence.expected_gib
    assert surplus == pytest.approx(ROOM * 0.985 - 4.0 - 14.27 - beside)
    # The same parameters with another recipe behind them are another checkpoint.
    four, three = QuantizedWeights("m", 4), QuantizedWeights("m", 3)
    asked = {**BASE, "quantization": "awq"}
    made = after(replace(FIRST, parameters=asked, weights=four, model_gib=5.2, cache_gib=12.0))
    same = verdict(asked, QWEN7B, DEVICE, 640, made, weights=four)
    other = verdict(asked, QWEN7B, DEVICE, 640, made, weights=three)
    assert same.parts[0].measured
    assert not other.parts[0].measured


def test_a_device_that_shows_less_than_the_driver_says_is_no_trap() -> None:
    """A launch at one share says of another only what the unknown size of the device allows."""
    exact, lower = (
        judged(after(FIRST), gpu_memory_utilization=share).parts[1] for share in (0.9, 0.5)
    )
    assert lower.least_gib == pytest.approx(exact.least_gib - 0.4 * 0.035 * 22.5, abs=0.02)
    higher = judged(after(FIRST), gpu_memory_utilization=0.95).parts[1]
    assert higher.most_gib is not None
    assert exact.most_gib is not None
    assert higher.most_gib == pytest.approx(exact.most_gib + 0.05 * 0.035 * 22.5, abs=0.02)


def test_a_failed_start_teaches_too() -> None:
    """The error names what one sequence needs and what there was."""
    failed = replace(
        FIRST,
        parameters={**BASE, "max_model_len": 131_072},
        model_gib=None,
        request_gib=7.0,
        request_tokens=131_072,
        started=False,
        short=True,
    )
    told = after(failed)
    assert told.notes == ()
    assert judged(told, max_model_len=131_072).verdict == DOES_NOT
    assert judged(told, max_model_len=32_768).verdict == FITS


def test_a_processor_that_tells_no_weights() -> None:
    machine = replace(CPU, memory_gib=14.6)
    study = Context({}, SMOLLM2, machine, None, None, 40)
    seen = Launch(
        0,
        {"gpu_memory_utilization": 0.4},
        {"max_model_len": 8192},
        cache_gib=4.82,
        request_gib=4.82 / 27.44,
        request_tokens=8192,
    )
    told = calibrate([seen], study)
    lower = verdict({"gpu_memory_utilization": 0.2}, SMOLLM2, machine, 40, told)
    assert lower.cache_gib is not None
    # The real machine left 1.84 GiB at 0.2, for a deployment with a little more in it.
    assert lower.cache_gib.expected == pytest.approx(1.9, abs=0.02)
    assert lower.cache_gib.least < 1.84 < lower.cache_gib.most
    assert verdict({"gpu_memory_utilization": 0.06}, SMOLLM2, machine, 40, told).verdict == DOES_NOT


def test_weights_smaller_than_the_least_lower_the_least() -> None:
    odd = replace(FIRST, parameters={**BASE, "quantization": "fp8_per_tensor"}, model_gib=5.0)
    told = after(odd)
    assert told.weights_scale < 0.7
    assert "trial 0 loaded 5.00 GiB of weights, where" in told.notes[0]
    assert judged(told).parts[0].least_gib == pytest.approx(
        judged().parts[0].least_gib * told.weights_scale
    )


def test_a_cache_smaller_than_the_least_lowers_the_least() -> None:
    told = after(replace(FIRST, request_gib=0.2))
    assert told.cache_scale == pytest.approx(0.2 / 0.4375)
    assert "a sequence of 8,192 tokens needed 0.20 GiB" in told.notes[0]
    other = {"enforce_eager": True}
    assert judged(told, **other).sequence.least_gib == pytest.approx(0.2)


def test_a_misfit_that_works_takes_certainty_away() -> None:
    """Two launches that cannot both be: the proof is held back by what it missed."""
    liar = replace(FIRST, trial=1, cache_gib=-0.5, started=False, short=True, request_gib=None)
    works = replace(
        FIRST,
        trial=2,
        parameters={**BASE, "gpu_memory_utilization": 0.72, "max_num_seqs": 256},
        cache_gib=None,
        model_gib=None,
        request_gib=None,
    )
    asked = {"gpu_memory_utilization": 0.70, "max_num_seqs": 256}
    liar = replace(liar, parameters={**BASE, "max_num_seqs": 256})
    before = judged(after(liar), **asked)
    told = after(liar, works)
    assert before.verdict == DOES_NOT
    assert told.doubt_gib > 2
    assert "trial 2 works, although" in told.notes[-1]
    assert judged(told, **asked).least_needed_gib == pytest.approx(
        before.least_needed_gib - told.doubt_gib
    )
    assert judged(told, gpu_memory_utilization=0.72, max_num_seqs=256).verdict == FITS


def test_what_was_said_to_fit_and_failed_makes_careful() -> None:
    fits = {"gpu_memory_utilization": 0.9, "max_model_len": 16_384}
    failed = Launch(1, fits, started=False, short=True)
    told = after(FIRST, failed)
    assert judged(after(FIRST), **fits).verdict == FITS
    assert told.worry_gib > 1
    assert "trial 1 was said to fit and did not" in told.notes[0]
    assert judged(told, **fits, block_size=32).verdict != FITS


def test_nothing_is_learnt_without_facts() -> None:
    assert calibrate([FIRST], replace(STUDY, model=None)) == Calibration()
    assert calibrate([], STUDY) == Calibration()


def test_the_rule_speaks_of_measured_parts() -> None:
    asked = {**BASE, "max_model_len": 32_768, "gpu_memory_utilization": 0.8}
    around = {"hardware": DEVICE, "model": QWEN7B}
    assert broken(asked, **around) == {}
    told = calibrate([FIRST], replace(STUDY, engine=None))
    violation = broken(asked, **around, calibration=told)["memory_fits"]
    assert "weights 14.3 as measured, beside weights 2.1 as measured" in violation.cause
    assert "one sequence 1.7 as measured" in violation.cause
    assert "the engine may use 18.0 GiB" in violation.cause


def test_a_larger_deployment_that_held_less_shows_that_a_smaller_ones_figure_was_noise() -> None:
    eight, many = ({**BASE, "max_num_seqs": number} for number in (8, 64))
    lucky = replace(FIRST, trial=1, parameters=many, cache_gib=4.7)
    alone = after(replace(FIRST, parameters=eight))
    both = after(replace(FIRST, parameters=eight), lucky)
    between = {"max_num_seqs": 16}
    assert (
        judged(alone, **between).least_needed_gib > judged(both, **between).least_needed_gib + 0.9
    )
    assert judged(both, **between).least_needed_gib == pytest.approx(
        judged(both, max_num_seqs=64).least_needed_gib
    )
