"""Secrets are told by their names, the same in every file that is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper.engine.secret_names import is_secret
from sweeper.engine.served import Command, note_command

SECRET = [
    "api_key",
    "api-key",
    "hf-token",
    "HF_TOKEN",
    "VLLM_API_KEY",
    "OPENAI_APIKEY",
    "API_TOKENS",
    "AWS_SECRET_ACCESS_KEY",
    "DB_PASSWORD",
    "PGPASSWORD",
    "REDIS_PASSWD",
    "GOOGLE_CREDENTIALS",
    "MAX_API_TOKEN",
]
OPEN = [
    "max_num_batched_tokens",
    "max-num-batched-tokens",
    "num_speculative_tokens",
    "long_prefill_token_threshold",
    "return_tokens_as_token_ids",
    "enable_prompt_tokens_details",
    "VLLM_MAX_TOKENS_PER_EXPERT_FUSED_MOE",
    "tokenizer",
    "tokenizer_mode",
    "TOKENIZERS_PARALLELISM",
    "ssl_keyfile",
    "kv_cache_dtype",
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", OPEN)
def test_no_secret(name: str) -> None:
    assert not is_secret(name)


def test_the_note_of_a_launch_hides_secrets_only(tmp_path: Path) -> None:
    env = {"HF_TOKEN": "very-secret", "TOKENIZERS_PARALLELISM": "false"}
    note_command(tmp_path, Command(("server",), env))
    note = json.loads((tmp_path / "argv.json").read_text())
    assert note["env"] == {"HF_TOKEN": "(hidden)", "TOKENIZERS_PARALLELISM": "false"}
