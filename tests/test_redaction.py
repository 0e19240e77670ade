"""Secrets are told by their value, their shape or their name, and nothing else is taken out."""

from __future__ import annotations

import string
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeper import redaction
from sweeper.redaction import (
    HIDDEN,
    carries_secret,
    is_secret,
    printable,
    printable_data,
    redact,
    redact_data,
    remember,
    shown,
)

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
WORDS = string.ascii_letters + string.digits
HF = "hf_" + "aB3dE" * 7
# (text, the secret in it)
LEAKS = [
    (f"401 for token {HF}", HF),
    ("key=sk-proj-abcDEF123_-abcDEF123", "abcDEF123_-abcDEF123"),
    ("sk-" + "a1B2" * 12, "a1B2" * 12),
    ("id AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE"),
    ("ghp_" + "a1" * 18, "a1" * 18),
    ("connect postgresql://me:pw@host:5432/db failed", ":pw@"),
    ("https://u:p@ss/w:rd@mlflow.example/api", "p@ss/w:rd"),
    ("mysql+pymysql://root:s3cr3t@db/mlflow?charset=utf8", "s3cr3t"),
    ("https://b.s3.example/x?X-Amz-Signature=abc12&X-Amz-Date=1", "abc12"),
    ("https://host/x?a=1&access_token=zz9&b=2", "zz9"),
    ("Authorization: Bearer abcdefgh", "abcdefgh"),
    ("{'authorization': 'Basic dXNlcjpwdw=='}", "dXNlcjpwdw=="),
    ("headers: x-api-key: 12ab34", "12ab34"),
    ("non-default args: {'model': 'm', 'api_key': ['tiny'], 'port': 1}", "tiny"),
    ("args: Namespace(hf_token='abc', port=1)", "'abc'"),
    ("serve --hf-token abcd --port 1", "abcd"),
    ("serve --api-key=abcd --port 1", "abcd"),
    ('{"password": "hunter2"}', "hunter2"),
    ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE+abc/\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ("jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abcdefghijk", "eyJzdWIiOiIxMjM0"),
]
KEPT = [
    "KeyError: 'model.layers.0.weight'",
    "bos_token='<s>', eos_token: </s>, pad_token=None",
    "Unexpected key(s) in state_dict: lm_head.weight",
    "max_num_batched_tokens=2048 is smaller than max_model_len=32768",
    "GET http://127.0.0.1:8000/v1/models@rev HTTP/1.1",
    "/models/sk-llama-3-70b-instruct-gptq/hf_cache/config.json",
    "org/sk-learn-model-of-a-very-long-name",
    "Bearer authentication is required; basic configuration",
    "the next token: the; 20 tokens/s; tokens: 5",
    "hf_transfer is not installed, HF_HUB_OFFLINE=1",
    "api_key=None, password: null, hf_token=True",
    "git@github.com:org/repo and mail me@example.org",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "VLLM_LOGGING_LEVEL=DEBUG TOKENIZERS_PARALLELISM=false",
    "GPU KV cache size: 188,640 tokens, Maximum concurrency for 131,072 tokens per request: 5.23x",
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(redaction, "_remembered", set())
    monkeypatch.setattr(redaction.os, "environ", {})
    yield


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", OPEN)
def test_no_secret_by_its_name(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("hf_token", "abc", True),
        ("hf_token", True, False),
        ("hf_token", "true", False),
        ("api_key", ["a", "b"], True),
        ("api_key", None, False),
        ("max_num_seqs", "abc", False),
    ],
)
def test_what_is_given_under_a_name(name: str, value: object, secret: bool) -> None:
    assert carries_secret(name, value) is secret


@pytest.mark.parametrize(("text", "secret"), LEAKS)
def test_secrets_are_taken_out_and_nothing_twice(text: str, secret: str) -> None:
    hidden = redact(text)
    assert secret not in hidden
    assert HIDDEN in hidden
    assert redact(hidden) == hidden


@pytest.mark.parametrize("text", KEPT)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) is text


def test_what_stands_around_a_secret_stays() -> None:
    assert redact("postgresql://me:pw@host:5432/db") == f"postgresql://me:{HIDDEN}@host:5432/db"
    assert redact("a 'api_key': ['x'], 'b': 1") == f"a 'api_key': ['{HIDDEN}'], 'b': 1"
    assert redact(f"one\ntoken {HF}\r\nthree") == f"one\ntoken {HIDDEN}\r\nthree"


def test_values_of_the_environment_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "MLFLOW_TRACKING_PASSWORD": "correct horse",
        "MY_KEY": "p@ssw0rd+long-enough",
        "SHORT_TOKEN": "abc",
        "COUNT_TOKEN": "123456",
        "SOME_SECRET": "disabled",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/creds.json",
        "HOME": "/home/me-and-me",
    }
    monkeypatch.setattr(redaction.os, "environ", values)
    assert redact("login with correct horse!") == f"login with {HIDDEN}!"
    assert redact("u:p%40ssw0rd%2Blong-enough@h") == f"u:{HIDDEN}@h"
    kept = "abc 123456 disabled /home/me/creds.json /home/me-and-me"
    assert redact(kept) == kept


def test_a_short_known_value_is_hidden_as_a_word_only() -> None:
    remember("secret7")
    assert redact("secret7, secret77, my-secret7") == f"{HIDDEN}, secret77, my-{HIDDEN}"
    remember(None, "", "abc")
    assert redact("abc") == "abc"


def test_data_is_searched_through_and_keeps_its_form() -> None:
    data = {
        "argv": ["serve", "--x", f"t={HF}"],
        "api_key": "anything",
        "hf_token": True,
        "key": "a1b2c3",
        "bos_token": "<s>",
        "n": 3,
        "deep": [{"password": "pw"}, (1, "x")],
        "none": None,
    }
    assert redact_data(data) == {
        "argv": ["serve", "--x", f"t={HIDDEN}"],
        "api_key": HIDDEN,
        "hf_token": True,
        "key": "a1b2c3",
        "bos_token": "<s>",
        "n": 3,
        "deep": [{"password": HIDDEN}, (1, "x")],
        "none": None,
    }


names = st.text(WORDS + "._-", min_size=1, max_size=30)
ordinary = st.one_of(
    st.from_regex(r"[0-9a-f]{7,64}", fullmatch=True),
    st.uuids().map(str),
    st.builds("{}/{}".format, names, names),
    st.lists(names, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts)),
    st.floats(allow_nan=False).map(lambda x: f"throughput={x} tokens/s"),
    st.builds("{}={}".format, st.sampled_from(OPEN), names),
    st.text(string.ascii_lowercase + " .,;\n", max_size=60),
)


@settings(deadline=None)
@given(st.lists(ordinary, min_size=1, max_size=8).map(" ".join))
def test_hashes_ids_paths_and_words_stay(text: str) -> None:
    known = ("sk-", "hf_", "key", "token", "secret", "passw", "credential", "gh", "eyj", "xox")
    if not any(mark in text.replace("tokens", "").lower() for mark in known):
        assert redact(text) == text


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text(WORDS, min_size=20, max_size=40), st.text())
def test_a_token_is_never_left_wherever_it_stands(before: str, body: str, after: str) -> None:
    token = f"hf_{body}"
    assert token not in redact(f"{before} {token} {after}")
    assert token not in shown(f"{before} {token} {after}")


@settings(deadline=None)
@given(st.text(max_size=300))
def test_redaction_is_idempotent_and_lines_stay(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    if "PRIVATE KEY" not in text:
        assert len(once.splitlines()) == len(text.splitlines())


@settings(deadline=None)
@given(st.text(max_size=200))
def test_printable_text_steers_no_terminal(text: str) -> None:
    plain = printable(f"\x1b[31m{text}")
    assert "\x1b" not in plain and "\x9b" not in plain
    assert all(sign in "\n\t" or sign.isprintable() or ord(sign) > 0x9F for sign in plain)
    plain.encode("utf-8")
    assert printable(plain) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("a\x00b\x08c", "a\ufffdb\ufffdc"),
        ("\u202eevil", "\ufffdevil"),
        ("\x1bP1;1|x\x1b\\y", "y"),
        ("tab\tand 中文 stay", "tab\tand 中文 stay"),
    ],
)
def test_escape_sequences_go_as_a_whole(text: str, plain: str) -> None:
    assert printable(text) == plain
    assert printable_data({text: [text, 1]}) == {plain: [plain, 1]}


def test_a_colour_inside_a_token_does_not_hide_it() -> None:
    assert HF[9:] not in shown(f"{HF[:8]}\x1b[0m{HF[8:]}")


PIECES = ["a_", "-", "a://", "a://b:", "?token=", "api_key=", "eyJaaaaaaaaaaaa.", "\x1b]", "A_"]
PIECES += ["http:", "-----BEGIN PRIVATE KEY-----", "--hf-token ", "'api_key': ['", "Bearer a"]


@pytest.mark.parametrize("piece", PIECES)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.perf_counter()
    shown(text)
    assert time.perf_counter() - began < 10  # a twentieth of it is usual
