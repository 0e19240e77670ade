"""Flags of the transformers engine: what they mean and which do not go together. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import SpaceConfig
from sweeper.engine.transformers.deployment import Deployment, RefusedError, read_deployment
from sweeper.engine.transformers.flags import deployment_flags, engine_flags
from sweeper.errors import ConfigError
from sweeper.space.canonical import enumerate_canonical
from sweeper.space.parse import parse_space


def test_no_flag_is_one_request_at_a_time() -> None:
    assert read_deployment({}) == Deployment()
    assert read_deployment({}).batch_limit == 1


def test_parameters_become_flags_and_environment() -> None:
    flags, env = deployment_flags(
        {
            "dtype": "float32",
            "flag.batching": "static",
            "max_num_seqs": 16,
            "flag.attn-implementation": "eager",
            "env.OMP_NUM_THREADS": 2,
        }
    )
    assert flags == {
        "dtype": "float32",
        "batching": "static",
        "max_num_seqs": 16,
        "attn_implementation": "eager",
    }
    assert env == {"OMP_NUM_THREADS": "2"}


def test_a_word_for_the_default_is_left_out() -> None:
    parameters = {"dtype": "auto", "quantization": "none", "max_num_seqs": "default"}
    assert deployment_flags(parameters) == ({}, {})
    assert deployment_flags({"quantization": "compressed-tensors"}) == ({}, {}), "in config.json"


@pytest.mark.parametrize("name", ["model", "port", "served-name"])
def test_what_belongs_to_the_launch_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="set by every launch itself"):
        engine_flags({name: "x"})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"max_num_seq": 4}, "did you mean max_num_seqs"),
    "of another engine": ({"tensor_parallel_size": 2}, "no flag tensor_parallel_size"),
    "quantized": ({"quantization": "fp8"}, "no flag quantization"),
    "dtype": ({"dtype": "int8"}, "dtype=int8 is not known"),
    "batching": ({"batching": "dynamic"}, "batching=dynamic is not known"),
    "draft model": ({"speculative": "eagle"}, "speculative=eagle is not known"),
    "no batch": ({"max_num_seqs": 4}, "max_num_seqs needs batching=static or continuous"),
    "no wait": ({"batching": "continuous", "batch_wait_ms": 5}, "batch_wait_ms needs"),
    "no pages": ({"batching": "static", "block_size": 16}, "block_size needs batching=continuous"),
    "batched lookup": (
        {"batching": "static", "speculative": "ngram", "num_speculative_tokens": 2},
        "speculative needs batching=none",
    ),
    "no length": ({"speculative": "ngram"}, "without num_speculative_tokens"),
    "no method": ({"num_speculative_tokens": 2}, "need speculative=ngram"),
    "compiled lookup": (
        {"compile": True, "speculative": "ngram", "num_speculative_tokens": 2},
        "takes back what it drafted",
    ),
    "no number": ({"batching": "static", "max_num_seqs": 0}, "not a whole number from 1"),
    "true": ({"max_model_len": True}, "not a whole number from 1"),
    "share": ({"batching": "continuous", "gpu_memory_utilization": 1.5}, "not a share"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_with_the_reason(case: str) -> None:
    flags, reason = REFUSED[case]
    with pytest.raises(RefusedError, match=reason):
        read_deployment(flags)


def test_every_deployment_of_the_space_is_one_the_engine_takes() -> None:
    from omegaconf import OmegaConf

    from sweeper.config.location import conf_dir

    stored = OmegaConf.load(conf_dir() / "space" / "transformers.yaml")
    space = parse_space(SpaceConfig(**OmegaConf.to_container(stored)))  # type: ignore[arg-type]
    deployments = enumerate_canonical(space, 10_000)
    assert deployments is not None
    assert len(deployments) > 20
    kinds = {read_deployment(deployment_flags(d)[0]).batching for d in deployments}
    assert kinds == {"none", "static", "continuous"}


@pytest.mark.parametrize(
    ("device", "space", "dtype"),
    # A processor may have to emulate bfloat16, at seconds a token.
    [("cpu", "transformers_batching", "float32"), ("cuda", "transformers", None)],
)
def test_the_engine_brings_its_own_space_and_no_flags_of_another(
    device: str, space: str, dtype: str | None
) -> None:
    from sweeper.config.compose import compose

    cfg = compose(["engine=transformers"], device_kind=device)
    assert (cfg.space.name, cfg.model.dtype) == (space, dtype)
    assert cfg.engine.args == {}
