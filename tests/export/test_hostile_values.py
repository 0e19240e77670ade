"""Whatever a name or value holds, exported files say exactly it, and run nothing: every target."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.export import markdown
from sweeper.export.bundle import ExportInput, File, write_bundle
from sweeper.export.container import name_of
from sweeper.export.provenance import render as provenance
from sweeper.export.registry import TARGETS, render_all, renderer
from sweeper.export.shell import script_text
from sweeper.redaction import redact
from tests.export.conftest import make_source as made_anew
from tests.export.readers import READERS, Seen

HOSTILE = ["a'b", 'a"b', "$(touch x)", "`touch x`", "a\nb", "a;b", "-rf", "--x=y", "${HOME}", "\\"]
HOSTILE += ["a: b", "# a", "- a", "!!python/object", "&a", "*a", "{a}", "[a]", "%", "@", "|", ">"]
HOSTILE += ["null", "~", "true", "1e3", "0x1", "2024-01-01", "\u2028", "\x85", "ü 模型", " a ", "'"]
HOSTILE += ["y", "on", "0o17", ".5", "1_0", "$HOME", "$$", "$(HOME)", "%h", "a\\", "{{ x }}", "<<"]
# Text that settings take (`check_names`): no control characters, no halves of characters.
text = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=30),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join),
)
OWN = {"model", "served-model-name", "host", "port"}
SOURCE = made_anew()
harmless = text.filter(lambda value: redact(value) == value)
# A folder's own path is changed for a container, and is tested by itself.
hub_id = harmless.filter(lambda value: not value.startswith("/"))


def make_source(**changes: Any) -> ExportInput:
    return replace(SOURCE, **changes)


def seen(target: str, **changes: Any) -> Seen:
    return READERS[target](renderer(target)(make_source(**changes)))


def without_home(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in {"HOME", "USER"}}


def hold(target: str, path: str, name: str, values: list[str]) -> None:
    """Every place of a deployment that others fill, filled; and read back from a target's files."""
    env = {f"PLAIN_{at}": value for at, value in enumerate(values)}
    flags: dict[str, Any] = {f"x{at}": value for at, value in enumerate(values)}
    flags |= {"deep": {"method": values[0], "b": values}, "tokenizer": values[-1]}
    found = seen(target, model_path=path, served_name=name, flags=flags, env=env)
    assert found.model == path
    assert found.served_name == (None if target == "trtllm" else name)
    assert without_home(found.env) == ({} if target == "vllm" else env)
    if target in {"sglang", "trtllm"}:
        told = found.flags.get("tokenizer-path", found.flags.get("tokenizer"))
        assert told == values[-1]
        return
    assert {name: found.flags[name] for name in flags if name.startswith("x")} == {
        name: value for name, value in flags.items() if name.startswith("x")
    }
    deep = found.flags["deep"]
    assert (json.loads(deep) if isinstance(deep, str) else deep) == flags["deep"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_says_what_it_was_given(target: str) -> None:
    hold(target, "org/model", "tiny", HOSTILE)
    for path, name in zip(HOSTILE[::2], [*HOSTILE[1::2], "x"], strict=True):
        hold(target, path, name, ["x"])


@pytest.mark.parametrize("target", TARGETS)
@settings(deadline=None, max_examples=12)
@given(hub_id, harmless, harmless)
def test_any_text_comes_back_as_it_was(target: str, path: str, name: str, value: str) -> None:
    hold(target, path, name, [value])


@pytest.mark.parametrize("target", TARGETS)
def test_comments_stay_comments(target: str) -> None:
    evil = "a\nevil: 1\n\x85evil: 2\u2028evil: 3\r\ntouch y"
    changes: dict[str, Any] = {"study": evil, "engine": evil, "hardware": evil, "env": {}}
    changes |= {"flags": {"x_api_key\ntouch y": "v"}}
    plain = renderer(target)(make_source(flags={}, env={}))
    files = renderer(target)(make_source(**changes))
    for name, file in files.items():
        kept = [line for line in file.text.split("\n") if not line.startswith("#")]
        texts = [line for line in kept if "evil" not in line]
        lines = [line for line in plain[name].text.split("\n") if not line.startswith("#")]
        # What is left has the same number of lines: annotations change, and nothing is added.
        assert len(kept) == len(lines), name
        assert not [line for line in texts if line.strip().startswith("touch")]
    assert READERS[target](files).model == SOURCE.model_path


@pytest.mark.parametrize("target", TARGETS)
def test_no_target_holds_a_secret_whatever_it_is_called(target: str) -> None:
    token = "hf_" + "aB3dE" * 7
    flags = {"plain": f"x {token}", "deep": {"auth": {"api_key": "k1-secret"}}, "hf_token": True}
    flags |= {"api_key": "k2-secret"}
    env = {"DB": "postgresql://u:pw@h/d", "OK": "fine", "HF_TOKEN": "t3-secret"}
    files = renderer(target)(make_source(flags=flags, env=env, notes=(f"note {token}",)))
    everything = "\n".join(file.text for file in files.values())
    secrets = (token, "k1-secret", "k2-secret", "t3-secret", ":pw@")
    assert not [secret for secret in secrets if secret in everything]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_no_variable_is_not_exported(target: str) -> None:
    for name in ("A;touch x", "A\ntouch x", "A B", "1A", "$(id)", "", "A=B"):
        files = renderer(target)(make_source(flags={}, env={name: "v"}))
        assert "touch" not in "".join(file.text for file in files.values())
        assert without_home(READERS[target](files).env) == {}


@settings(max_examples=200)
@given(text)
def test_a_name_is_one_that_kubernetes_takes(served: str) -> None:
    name = name_of(make_source(served_name=served))
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)
    # The longest that a platform makes of it: KServe's name of a Knative revision.
    assert len(f"{name}-predictor-00001") <= 63


def test_names_that_had_to_be_changed_stay_apart() -> None:
    names = {name_of(make_source(served_name=n)) for n in ("a.b", "a-b", "A-B", "a b", "模", "型")}
    assert len(names) == 6


@pytest.mark.parametrize("value", HOSTILE)
def test_a_real_shell_takes_it_as_it_was(value: str, tmp_path: Path) -> None:
    script = script_text(make_source(flags={}, env={"PLAIN": value}))
    body = script.partition("set -eu\n")[2].replace('cd -- "$(dirname -- "$0")"\n', "")
    shown = body.partition("# PYTHON")[0] + 'printf %s "$PLAIN"\n'
    done = subprocess.run(
        ["/bin/sh", "-c", shown], cwd=tmp_path, capture_output=True, timeout=20, check=True
    )
    assert done.stdout.decode() == value
    assert list(tmp_path.iterdir()) == []


def test_the_facts_hold_no_secret_either() -> None:
    token = "hf_" + "aB3dE" * 7
    flags = {"plain": f"x {token}", "deep": {"auth": {"api_key": "k1"}}, "hf_token": True}
    env = {"DB": "postgresql://u:pw@h/d", "OK": "fine"}
    source = make_source(flags=flags, env=env, notes=(f"note {token}",))
    files = provenance(source)
    everything = "\n".join(file.text for file in files.values())
    assert not [secret for secret in (token, "k1", ":pw@") if secret in everything]
    assert source.left_out == ["DB", "deep", "plain"]
    assert source.public_flags == {"hf_token": True}
    assert json.loads(files["recommendation.json"].text)["env"] == {"OK": "fine"}


def test_every_target_has_a_reader() -> None:
    assert set(READERS) == set(TARGETS)


def test_two_exports_of_one_trial_are_the_same() -> None:
    assert render_all(["all"], made_anew()) == render_all(["all"], made_anew())


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
