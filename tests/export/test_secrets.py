from __future__ import annotations

from sweeper.export import secrets
from tests.export.conftest import make_source


def test_keys_can_be_given_where_they_have_a_use() -> None:
    plain = make_source(flags={}, env={})
    assert secrets.variables(plain) == {"HF_TOKEN": False, "VLLM_API_KEY": False}
    local = make_source(flags={}, env={}, model_path="/data/model")
    assert secrets.variables(local) == {"VLLM_API_KEY": False}


def test_what_the_deployment_had_is_needed() -> None:
    source = make_source(
        flags={"api-key": "sk-x-secret", "ssl_key_password": "p"}, env={"PGPASSWORD": "p"}
    )
    assert secrets.variables(source) == {
        "HF_TOKEN": False,
        "PGPASSWORD": True,
        "VLLM_API_KEY": True,
    }
    assert secrets.needed(source) == ["PGPASSWORD", "VLLM_API_KEY"]
    assert secrets.lost_flags(source) == ["--ssl-key-password"]
