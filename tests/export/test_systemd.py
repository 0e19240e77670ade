from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.export.systemd import quoted, render, unit_text
from tests.export.conftest import make_source
from tests.export.readers import unit_words
from tests.export.sources import SOURCES
from tests.export.test_hostile_values import HOSTILE


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=20))
def test_a_word_is_read_back_as_it_was(text: str) -> None:
    for word in (text, *HOSTILE):
        assert unit_words(quoted(word)) == [word]
        assert "\n" not in quoted(word)


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    env = {f"V{at}": value for at, value in enumerate(HOSTILE)}
    sources = [*(make() for make in SOURCES.values()), make_source(env=env, served_name="%n\\")]
    units = []
    for at, source in enumerate(sources):
        unit = tmp_path / f"vllm-{at}.service"
        # The program of the unit is not on this machine, and systemd looks for it.
        unit.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", unit_text(source)))
        units.append(unit)
    done = subprocess.run(
        [program, "verify", "--man=no", *units],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "vllm-" in line]
    assert not told, done.stderr
    assert done.returncode == 0, done.stderr


def test_the_unit_starts_what_the_package_has() -> None:
    assert (
        "\nExecStart=/opt/vllm/bin/vllm serve --config /etc/vllm/vllm-qwen7b.yaml\n"
        in unit_text(SOURCES["gpu"]())
    )
    assert "/opt/vllm/bin/python -m vllm.entrypoints" in unit_text(SOURCES["cpu"]())


def test_secrets_come_from_a_file_and_may_be_missing() -> None:
    assert "\nEnvironmentFile=-/etc/vllm/vllm-tiny.env\n" in unit_text(make_source())


@pytest.mark.parametrize(
    ("model", "home"), [("/home/me/model", "read-only"), ("/data/model", "yes"), ("org/m", "yes")]
)
def test_folders_of_users_are_hidden_unless_the_model_is_there(model: str, home: str) -> None:
    assert f"\nProtectHome={home}\n" in unit_text(make_source(model_path=model))


def test_the_configuration_is_written_beside_it() -> None:
    assert set(render(make_source())) == {"vllm.service", "vllm.yaml"}
