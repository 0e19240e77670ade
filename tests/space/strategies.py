"""Random but well-formed spaces and coordinates for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from sweeper.config.schema import SpaceConfig
from sweeper.space.model import Raw, Space
from sweeper.space.parse import parse_space

COUNTS = st.lists(st.integers(1, 512), min_size=1, max_size=4, unique=True)


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    """`parameters` of a space: words, numbers, ranges, and branches two deep."""
    parameters: dict[str, Any] = {
        "speculative": {"choices": draw(st.permutations(["none", "ngram", "eagle"]))},
        "num_speculative_tokens": {
            "choices": draw(st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True)),
            "when": {"speculative": draw(st.sampled_from([["ngram"], ["ngram", "eagle"]]))},
        },
        "flag.inner": {"choices": ["a", "b"], "when": {"num_speculative_tokens": [1, 2, 3]}},
        "max_num_seqs": {"choices": draw(COUNTS)},
        "kv_cache_dtype": {"choices": ["auto", "fp8"]},
        "enable_prefix_caching": draw(st.sampled_from([["default", False], [True, False]])),
        "env.THREADS": {"low": 1, "high": 9, "step": draw(st.integers(1, 4)), "default": 1},
        "gpu_memory_utilization": {"choices": [0.8, 0.9, 0.92], "default": 0.92},
    }
    tokens = parameters["num_speculative_tokens"]["choices"]
    if not set(tokens) & {1, 2, 3}:
        del parameters["flag.inner"]
    kept = draw(st.sets(st.sampled_from(sorted(parameters)), min_size=1))
    if "flag.inner" in kept:
        kept.add("num_speculative_tokens")
    if "num_speculative_tokens" in kept:
        kept.add("speculative")
    order = draw(st.permutations(sorted(kept & set(parameters))))
    return {name: parameters[name] for name in order}


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """A parsed space, sometimes with fixed parameters."""
    fixed = draw(st.sampled_from([{}, {"enforce_eager": True}, {"quantization": "none"}]))
    return parse_space(SpaceConfig(name="random", fixed=fixed, parameters=draw(forms())))


@st.composite
def coordinates(draw: st.DrawFn, space: Space) -> Raw:
    """Full raw coordinates in a space, closed branches included."""
    return {p.name: draw(st.sampled_from(p.values or ())) for p in space.parameters}


@st.composite
def spaces_with_coordinates(draw: st.DrawFn) -> tuple[Space, Raw]:
    space = draw(spaces())
    return space, draw(coordinates(space))
