"""Checks of the `workload` group, and the longest request it can ask for. Pure but for a path."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from sweeper.config.schema import SweeperConfig, WorkloadConfig
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError

KINDS = ("synthetic", "shared_prefix", "conversation", "file", "standard", "trace")
DISTRIBUTIONS = ("fixed", "uniform", "normal", "lognormal")
FORMATS = {
    "file": ("auto", "jsonl", "sharegpt"),
    "trace": ("auto", "azure_csv", "mooncake_jsonl"),
}
MAX_SPREAD = {"uniform": 1.0, "normal": 1.0, "lognormal": 3.0}
MAX_OVER_MEAN = 4
"""Longest length by default, in means."""

MIN_ROOM_OVER_MEAN = 1.1
"""Below it no distribution of the spread asked for could keep its mean."""

MADE_HERE = frozenset({"synthetic", "shared_prefix", "conversation"})
"""Kinds whose lengths are the configuration's own."""

RETOKENIZED_SHARE = 0.1
"""Room for a conversation's text, which may encode to more tokens than its parts had."""


def longest_by_config(work: WorkloadConfig) -> tuple[int, int] | None:
    """(input, output) tokens of the longest request, None if only a file's lines can tell."""
    if work.kind not in MADE_HERE:
        return None
    longest_input = longest_length(work, "input")
    longest_output = longest_length(work, "output")
    if work.kind == "conversation":
        said = work.turns * longest_input + (work.turns - 1) * longest_output
        longest_input = math.ceil(said * (1 + RETOKENIZED_SHARE))
    return longest_input, longest_output


def longest_length(work: WorkloadConfig, side: str) -> int:
    """Longest length that is drawn for one prompt (`side` input) or output."""
    mean, spread, most = length_fields(work, side)
    if work.length_distribution == "fixed" or spread == 0:
        return mean
    most = mean * MAX_OVER_MEAN if most is None else most
    if work.length_distribution == "uniform":
        return min(most, math.floor(mean * (1 + spread)))
    return most


def length_fields(work: WorkloadConfig, side: str) -> tuple[int, float, int | None]:
    """(mean, spread, most) of one side: input or output."""
    if side == "input":
        return work.input_tokens, work.input_spread, work.input_tokens_max
    return work.output_tokens, work.output_spread, work.output_tokens_max


def check_workload(cfg: SweeperConfig) -> None:
    """Run every check of the workload. Raises ConfigError for the first fault."""
    for one in _CHECKS:
        one(cfg.workload)
    _trace_and_replay(cfg)
    _fits(cfg)


def _positive(work: WorkloadConfig) -> None:
    for field in ("input_tokens", "output_tokens", "input_tokens_max", "output_tokens_max",
                  "prefix_groups", "turns", "max_requests", "beam_width", "top_k"):  # fmt: skip
        value = getattr(work, field)
        if value is not None and value < 1:
            raise ConfigError(
                f"workload.{field}={value} must be above 0", f"set workload.{field}=1 or more"
            )
    for field in ("input_spread", "output_spread", "prefix_tokens", "think_time_s"):
        value = getattr(work, field)
        if value < 0:
            raise ConfigError(
                f"workload.{field}={value} is negative", f"set workload.{field}=0 or more"
            )


def _two_tokens(work: WorkloadConfig) -> None:
    for field in ("output_tokens", "output_tokens_max"):
        value = getattr(work, field)
        if value is not None and value < 2 and work.kind != "trace":
            raise ConfigError(
                f"workload.{field}={value}: time per output token needs two tokens",
                f"set workload.{field}=2 or more",
            )


def _without_effect(work: WorkloadConfig) -> None:
    """A setting of another kind would be believed to act; it is refused instead."""
    for field, default, kinds in (
        ("length_distribution", "fixed", MADE_HERE),
        ("prefix_tokens", 0, {"shared_prefix"}),
        ("prefix_groups", 1, {"shared_prefix"}),
        ("turns", 1, {"conversation"}),
        ("think_time_s", 0.0, {"conversation"}),
        ("path", None, {"file", "trace"}),
        ("format", "auto", {"file", "trace"}),
        ("max_requests", None, {"file", "trace"}),
    ):
        value = getattr(work, field)
        if value != default and work.kind not in kinds:
            needed = " or ".join(sorted(kinds))
            shown = "null" if default is None else default
            raise ConfigError(
                f"workload.{field}={value} has no effect on workload.kind={work.kind}",
                f"leave workload.{field}={shown}, or set workload.kind={needed}",
            )


def _spread(work: WorkloadConfig) -> None:
    kind = work.length_distribution
    if kind == "fixed":
        for field in ("input_spread", "output_spread"):
            if getattr(work, field) > 0:
                raise ConfigError(
                    f"workload.{field}={getattr(work, field)} has no effect on lengths that are "
                    "fixed",
                    f"set workload.length_distribution=lognormal, or workload.{field}=0",
                )
        return
    if work.input_spread == 0 and work.output_spread == 0:
        raise ConfigError(
            f"workload.length_distribution={kind} has no spread",
            "set workload.input_spread=0.5 or workload.output_spread=0.5, or "
            "workload.length_distribution=fixed",
        )
    for field in ("input_spread", "output_spread"):
        value = getattr(work, field)
        if value > MAX_SPREAD[kind]:
            raise ConfigError(
                f"workload.{field}={value} is too wide for {kind} lengths: their mean would be "
                "another than asked for",
                f"set workload.{field} to {MAX_SPREAD[kind]:g} or less",
            )


def _most(work: WorkloadConfig) -> None:
    if work.kind not in MADE_HERE:
        return
    for side in ("input", "output"):
        mean, _, most = length_fields(work, side)
        if most is not None and work.length_distribution == "fixed":
            raise ConfigError(
                f"workload.{side}_tokens_max={most} has no effect on lengths that are fixed",
                f"leave workload.{side}_tokens_max=null, or set "
                "workload.length_distribution=lognormal",
            )
        if most is not None and most < mean * MIN_ROOM_OVER_MEAN:
            least_most = math.ceil(mean * MIN_ROOM_OVER_MEAN)
            raise ConfigError(
                f"workload.{side}_tokens_max={most} leaves no room above the mean, "
                f"workload.{side}_tokens={mean}",
                f"set workload.{side}_tokens_max={least_most} or more, or lower "
                f"workload.{side}_tokens",
            )


def _uniform_ends(work: WorkloadConfig) -> None:
    """Uniform lengths are not cut: their mean would be another."""
    if work.length_distribution != "uniform":
        return
    for side in ("input", "output"):
        mean, spread, most = length_fields(work, side)
        longest = math.floor(mean * (1 + spread))
        if most is not None and most < longest:
            raise ConfigError(
                f"workload.{side}_tokens_max={most} is below the longest of the uniform lengths, "
                f"{longest}",
                f"leave workload.{side}_tokens_max=null, or lower workload.{side}_spread",
            )
    if work.kind == "shared_prefix":
        shortest = math.ceil(work.input_tokens * (1 - work.input_spread))
        if shortest <= work.prefix_tokens:
            raise ConfigError(
                f"the shortest prompt would have {shortest} tokens, and "
                f"workload.prefix_tokens={work.prefix_tokens} of them are shared",
                "lower workload.input_spread or workload.prefix_tokens",
            )


def _prefix(work: WorkloadConfig) -> None:
    if work.kind == "shared_prefix" and not 0 < work.prefix_tokens < work.input_tokens:
        raise ConfigError(
            f"workload.prefix_tokens={work.prefix_tokens} is not between 1 and "
            f"{work.input_tokens - 1}: it is the shared part of workload.input_tokens="
            f"{work.input_tokens}",
            "set for example workload.input_tokens=1024 workload.prefix_tokens=768",
        )


def _turns(work: WorkloadConfig) -> None:
    if work.kind == "conversation" and work.turns < 2:
        raise ConfigError(
            f"workload.turns={work.turns} is no conversation",
            "set workload.turns=2 or more, or workload=synthetic",
        )


def _file(work: WorkloadConfig) -> None:
    if work.kind not in FORMATS:
        return
    known = FORMATS[work.kind]
    if work.format not in known:
        raise ConfigError(
            f"workload.format={work.format} is no format of workload.kind={work.kind}",
            did_you_mean(work.format, known, what="formats"),
        )
    if not work.path:
        raise ConfigError(
            f"workload.kind={work.kind} needs a file",
            f"set workload.path=FILE, in one of the formats {', '.join(known[1:])}",
        )
    if not Path(work.path).expanduser().is_file():
        raise ConfigError(
            f"workload.path={work.path}: there is no such file",
            "give the path of a file, absolute or from the folder sweeper is started in",
        )


def _decoding(work: WorkloadConfig) -> None:
    if work.top_p is not None and not 0 < work.top_p <= 1:
        raise ConfigError(
            f"workload.top_p={work.top_p} is not a share", "set it above 0 and at most 1"
        )
    if work.sampling_seed is not None and work.sampling_seed < 0:
        raise ConfigError(
            f"workload.sampling_seed={work.sampling_seed} is negative",
            "set workload.sampling_seed=0 or more, or null for none",
        )
    if work.beam_width > 1 and work.temperature != 0:
        raise ConfigError(
            f"workload.beam_width={work.beam_width} is a search, and "
            f"workload.temperature={work.temperature:g} is a sample",
            "set workload.temperature=0, or workload.beam_width=1",
        )
    if work.temperature == 0:
        for field in ("top_p", "top_k", "sampling_seed"):
            if getattr(work, field) is not None:
                raise ConfigError(
                    f"workload.{field}={getattr(work, field)} has no effect on greedy decoding",
                    f"set workload.temperature above 0, or workload.{field}=null",
                )


def _trace_and_replay(cfg: SweeperConfig) -> None:
    is_trace, is_replay = cfg.workload.kind == "trace", cfg.load.kind == "replay"
    if is_trace and not is_replay:
        raise ConfigError(
            f"workload.kind=trace has arrival times of its own, and load.kind={cfg.load.kind} "
            "does not keep them",
            "set load.kind=replay, or another workload",
        )
    if is_replay and not is_trace:
        raise ConfigError(
            f"load.kind=replay needs a recorded trace, and workload.kind={cfg.workload.kind} "
            "has none",
            "set workload=trace workload.path=FILE, or another load",
        )


def _fits(cfg: SweeperConfig) -> None:
    limit, longest = cfg.space.fixed.get("max_model_len"), longest_by_config(cfg.workload)
    if longest is None or not isinstance(limit, int) or sum(longest) <= limit:
        return
    asked = sum(longest)
    parts = "workload.input_tokens + workload.output_tokens"
    if longest != (cfg.workload.input_tokens, cfg.workload.output_tokens):
        parts = f"{longest[0]} + {longest[1]} tokens, the longest this workload can ask for,"
    raise ConfigError(
        f"a request of {parts} = {asked} tokens does "
        f"not fit into space.fixed.max_model_len={limit}",
        f"set space.fixed.max_model_len={asked} or more, or shorten the workload",
    )


_CHECKS: tuple[Callable[[WorkloadConfig], None], ...] = (
    _positive,
    _two_tokens,
    _without_effect,
    _spread,
    _most,
    _prefix,
    _uniform_ends,
    _turns,
    _file,
    _decoding,
)
