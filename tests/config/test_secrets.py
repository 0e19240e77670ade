"""Secrets in a configuration: refused, or used and not written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sweeper import redaction
from sweeper.config.compose import compose
from sweeper.config.names import study_name
from sweeper.config.schema import SweeperConfig
from sweeper.config.secrets import check_secrets, completed_uri, hide
from sweeper.config.stored import read_study, restore, study_text
from sweeper.config.trust import check_trust, runs_model_code
from sweeper.errors import ConfigError
from sweeper.redaction import HIDDEN, redact

TOKEN = "hf_" + "aB3dE" * 7
DB = "postgresql://me:s3cr3t@db.example/mlflow"
DB_SHOWN = f"postgresql://me:{HIDDEN}@db.example/mlflow"


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test makes known as a secret is none to the tests of the same process."""
    monkeypatch.setattr(redaction, "_remembered", set())


def changed(**groups: dict[str, Any]) -> SweeperConfig:
    cfg = SweeperConfig()
    for group, values in groups.items():
        for name, value in values.items():
            setattr(getattr(cfg, group), name, value)
    return cfg


@pytest.mark.parametrize(
    ("cfg", "key", "variable"),
    [
        (changed(engine={"env": {"HF_TOKEN": "abc"}}), "engine.env.HF_TOKEN", "HF_TOKEN"),
        (changed(engine={"args": {"hf-token": "abc"}}), "engine.args.hf-token", "HF_TOKEN"),
        (changed(engine={"args": {"a": {"api_key": "b"}}}), "engine.args.a.api_key", "API_KEY"),
        (changed(engine={"options": {"my_secret": "b"}}), "engine.options.my_secret", "MY_SECRET"),
        (
            changed(space={"parameters": {"env.HF_TOKEN": {"choices": ["a", "b"]}}}),
            "space.parameters.env.HF_TOKEN.choices",
            "HF_TOKEN",
        ),
        (changed(space={"fixed": {"flag.hf_token": "a"}}), "space.fixed.flag.hf_token", "HF_TOKEN"),
        (changed(space={"seeds": [{"env.X_KEY": "a"}]}), "space.seeds.env.X_KEY", "X_KEY"),
        (changed(engine={"env": {"PLAIN": TOKEN}}), "engine.env.PLAIN", "PLAIN"),
        (changed(model={"path": f"https://u:{TOKEN}@h/x"}), "model.path", "PATH"),
    ],
)
def test_a_secret_is_refused_without_being_repeated(
    cfg: SweeperConfig, key: str, variable: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_secrets(cfg)
    assert key in caught.value.message
    assert f"export {variable}=" in caught.value.remedy
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "cfg",
    [
        SweeperConfig(),
        changed(engine={"args": {"hf_token": True, "max_num_batched_tokens": 512}}),
        changed(engine={"env": {"TOKENIZERS_PARALLELISM": "false"}}),
        changed(engine={"args": {"tokenizer": "org/other", "ssl_keyfile": "/etc/key.pem"}}),
        changed(model={"path": "/models/a b", "revision": "0" * 40}),
        changed(tracking={"uri": DB}),
    ],
)
def test_what_is_no_secret_is_taken(cfg: SweeperConfig) -> None:
    check_secrets(cfg)


def test_a_variable_of_the_environment_must_not_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", "plain-but-secret")
    with pytest.raises(ConfigError, match=r"engine\.env\.OTHER"):
        compose(["engine.env.OTHER=${oc.env:THEIR_API_KEY}"])


def test_the_password_of_mlflow_is_used_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cfg = compose([f"tracking.uri={DB}"])
    assert cfg.tracking.uri == DB
    path = tmp_path / "study.yaml"
    path.write_text(study_text(cfg, {"a": 1}))
    assert "s3cr3t" not in path.read_text()
    assert restore(read_study(path)).tracking.uri == DB_SHOWN
    assert restore(read_study(path), [f"tracking.uri={DB}"]).tracking.uri == DB
    monkeypatch.setenv("MLFLOW_TRACKING_URI", DB)
    assert restore(read_study(path)).tracking.uri == DB
    # Once read, it is a secret wherever it turns up.
    assert redact("FATAL: s3cr3t is wrong") == f"FATAL: {HIDDEN} is wrong"
    assert hide({"tracking": {"uri": None}}) == {"tracking": {"uri": None}}


HTTP_SHOWN = f"https://me:{HIDDEN}@ml.example/x"
LOGIN = {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "pw"}


@pytest.mark.parametrize(
    ("stored", "environment", "uri"),
    [
        (None, LOGIN, None),
        ("http://h:5000", LOGIN, "http://h:5000"),
        (DB_SHOWN, {"MLFLOW_TRACKING_URI": DB}, DB),
        (DB_SHOWN, {"MLFLOW_TRACKING_URI": DB.replace("db.example", "other")}, DB_SHOWN),
        (DB_SHOWN, LOGIN, DB_SHOWN),
        (HTTP_SHOWN, LOGIN, "https://ml.example/x"),
        (HTTP_SHOWN, {"MLFLOW_TRACKING_TOKEN": "t"}, "https://ml.example/x"),
        (HTTP_SHOWN, {"MLFLOW_TRACKING_USERNAME": "me"}, HTTP_SHOWN),
        (HTTP_SHOWN, {}, HTTP_SHOWN),
    ],
)
def test_what_is_not_stored_comes_from_the_environment(
    stored: str | None, environment: dict[str, str], uri: str | None
) -> None:
    assert completed_uri(stored, environment) == uri


def test_an_older_study_with_a_secret_is_still_read(tmp_path: Path) -> None:
    cfg = SweeperConfig()
    cfg.engine.env = {"HF_TOKEN": "old-secret-value"}
    path = tmp_path / "study.yaml"
    path.write_text(study_text(cfg, {}))
    assert restore(read_study(path), ["budget.launches=3"]).engine.env == cfg.engine.env
    assert redact("old-secret-value") == HIDDEN
    with pytest.raises(ConfigError, match=r"engine\.env\.HF_TOKEN"):
        restore(read_study(path), ["engine.env.HF_TOKEN=another"])


def test_a_study_from_somebody_else_cannot_ask_for_our_environment(tmp_path: Path) -> None:
    text = study_text(SweeperConfig(), {})
    data = yaml.safe_load(text)
    data["config"]["tracking"]["uri"] = "http://evil/${oc.env:HOME}"
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError, match=r"tracking\.uri holds an expression"):
        read_study(path)


@pytest.mark.parametrize(
    ("model", "args", "fixed", "trusts"),
    [
        (False, {}, {}, False),
        (True, {}, {}, True),
        (False, {"trust_remote_code": True}, {}, True),
        (False, {"trust-remote-code": "true"}, {}, True),
        (True, {"trust_remote_code": False}, {}, True),
        (False, {}, {"flag.trust_remote_code": True}, True),
        (True, {}, {"trust_remote_code": False}, False),
        (False, {"--trust-remote-code": False}, {}, False),
    ],
)
def test_one_answer_to_trust(
    model: bool, args: dict[str, Any], fixed: dict[str, Any], trusts: bool
) -> None:
    cfg = changed(model={"trust_remote_code": model}, engine={"args": args}, space={"fixed": fixed})
    assert runs_model_code(cfg) is trusts


def test_trust_is_not_searched() -> None:
    check_trust(SweeperConfig())
    with pytest.raises(ConfigError, match="not searched"):
        check_trust(changed(space={"parameters": {"flag.trust-remote-code": [True, False]}}))


def test_a_study_without_a_usable_name_has_one() -> None:
    cfg = changed(model={"name": "模型"}, space={"name": "../.."}, engine={"name": "日"})
    assert study_name(cfg) == "study"
