"""Whatever a name or value holds, exported files say exactly it, and run nothing."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.export import markdown
from sweeper.export.bundle import ExportInput, File, write_bundle
from sweeper.export.provenance import render as provenance
from sweeper.export.vllm_config import config_text, script_text
from sweeper.redaction import redact
from tests.export.conftest import make_source as made_anew

HOSTILE = ["a'b", 'a"b', "$(touch x)", "`touch x`", "a\nb", "a;b", "-rf", "--x=y", "${HOME}", "\\"]
HOSTILE += ["a: b", "# a", "- a", "!!python/object", "&a", "*a", "{a}", "[a]", "%", "@", "|", ">"]
HOSTILE += ["null", "~", "true", "1e3", "0x1", "2024-01-01", "\u2028", "\x85", "ü 模型", " a ", "'"]
# Text that settings take (`check_names`): no control characters, no halves of characters.
text = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=30),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join),
)
OWN = {"model", "served-model-name", "host", "port"}
SOURCE = made_anew()
harmless = text.filter(lambda value: redact(value) == value)


def make_source(**changes: Any) -> ExportInput:
    return replace(SOURCE, **changes)


def one_flag(value: Any) -> Any:
    """The flag `x` as vLLM's loader would find it."""
    loaded = yaml.safe_load(config_text(make_source(flags={"x": value}, env={})))
    return {name: found for name, found in loaded.items() if name not in OWN}


@settings(deadline=None)
@given(harmless)
def test_a_value_comes_back_from_the_yaml_as_it_was(value: str) -> None:
    expected = {f"x={value}": True} if value.startswith("-") else {"x": value}
    assert one_flag(value) == expected
    nested = {"method": value, "deep": [value]}
    assert one_flag(nested) == {"x": nested}


@settings(deadline=None)
@given(harmless, harmless)
def test_names_come_back_from_the_yaml_as_they_were(path: str, name: str) -> None:
    loaded = yaml.safe_load(config_text(make_source(model_path=path, served_name=name, flags={})))
    assert loaded["model"] == path
    entry = f"served-model-name={name}" if name.startswith("-") else "served-model-name"
    assert loaded[entry] == (True if name.startswith("-") else name)


@settings(deadline=None)
@given(harmless)
def test_a_variable_comes_back_from_the_shell_as_it_was(value: str) -> None:
    script = script_text(make_source(flags={}, env={"PLAIN": value}))
    words = shlex.split(script, comments=True)
    assert words[words.index("export") + 1] == f"PLAIN={value}"


@pytest.mark.parametrize("value", HOSTILE)
def test_a_real_shell_takes_it_as_it_was(value: str, tmp_path: Path) -> None:
    script = script_text(make_source(flags={}, env={"PLAIN": value}))
    body = script.partition("set -eu\n")[2].replace('cd -- "$(dirname -- "$0")"\n', "")
    shown = body.partition("exec ")[0] + 'printf %s "$PLAIN"\n'
    done = subprocess.run(
        ["/bin/sh", "-c", shown], cwd=tmp_path, capture_output=True, timeout=20, check=True
    )
    assert done.stdout.decode() == value
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["A;touch x", "A\ntouch x", "A B", "1A", "$(id)", "", "A=B"])
def test_what_is_no_variable_is_not_exported(name: str) -> None:
    assert "touch" not in script_text(make_source(flags={}, env={name: "v"}))


def test_comments_stay_comments() -> None:
    source = make_source(study="a\nevil: 1", flags={"x_api_key\ntouch y": "v"}, env={})
    assert set(yaml.safe_load(config_text(source))) == OWN
    script = script_text(source)
    assert not [line for line in script.splitlines() if line.startswith("touch")]


def test_no_file_holds_a_secret_whatever_it_is_called() -> None:
    token = "hf_" + "aB3dE" * 7
    flags = {"plain": f"x {token}", "deep": {"auth": {"api_key": "k1"}}, "hf_token": True}
    env = {"DB": "postgresql://u:pw@h/d", "OK": "fine"}
    source = make_source(flags=flags, env=env, notes=(f"note {token}",))
    files = {**provenance(source), "a": File(config_text(source)), "b": File(script_text(source))}
    everything = "\n".join(file.text for file in files.values())
    assert not [secret for secret in (token, "k1", ":pw@") if secret in everything]
    assert source.left_out == ["DB", "deep", "plain"]
    assert source.public_flags == {"hf_token": True}
    assert json.loads(files["recommendation.json"].text)["env"] == {"OK": "fine"}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "..", "."])
def test_a_files_name_cannot_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the name of a file"):
        write_bundle(tmp_path / "recommended", {name: File("x")})


def test_code_that_comes_with_the_model_is_named() -> None:
    warned = provenance(make_source(flags={"trust_remote_code": True}))["README.md"].text
    assert "runs code that comes with the model" in warned
    plain = provenance(make_source(flags={}))["README.md"].text
    assert "runs code" not in plain


def test_the_readme_has_no_markup_of_others() -> None:
    evil = "<script>x</script> [a](javascript:x) `b` |c|\n# d\n\x1b[31m"
    page = provenance(make_source(study=evil, served_name=evil, hardware=evil, model_path=evil))
    readme = page["README.md"].text
    assert "\x1b" not in readme
    assert "\n# d" not in readme
    outside_spans = re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", readme)
    assert not re.search(r"(?<!\\)(?:\]\(|<script)", outside_spans)


@given(st.text(max_size=40))
def test_a_code_span_ends_where_its_text_ends(value: str) -> None:
    span = markdown.code(value)
    fence = len(span) - len(span.lstrip("`"))
    inside = span[fence:-fence] if fence else span
    assert "\n" not in span
    assert "`" * fence not in inside.strip(" ").strip("`") or fence > 1 or "`" not in inside


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a_b*c", "a\\_b\\*c"),
        ("<b>", "\\<b\\>"),
        ("# head\nnext", "\\# head next"),
        ("a|b", "a\\|b"),
        ("[x](y)", "\\[x\\](y)"),
        ("plain words 7B", "plain words 7B"),
    ],
)
def test_words_are_no_markup(value: str, shown: str) -> None:
    assert markdown.text(value) == shown
