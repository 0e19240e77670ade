"""The table of toolchains agrees with the scripts that do the work and with the recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config.recipe_fields import TOOLS as FIELDS
from sweeper.errors import ConfigError
from sweeper.quantize.recipe import Recipe
from sweeper.quantize.tools import TOOLS, format_of, script_metadata, tool


def test_every_tool_and_method_that_a_recipe_may_name_is_there() -> None:
    assert {name: set(one.formats) for name, one in TOOLS.items()} == {
        name: set(methods) for name, methods in FIELDS.items()
    }


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_a_worker_with_pinned_distributions(name: str) -> None:
    one = tool(name)
    assert one.script.is_file()
    own = {"autoawq": "autoawq", "auto_gptq": "auto-gptq"}.get(name, name)
    assert one.pins[own].startswith("==")
    assert one.pins["torch"].startswith("==")
    metadata = script_metadata(one.script)
    assert "requires-python" in metadata


def test_requirements_are_parted_into_name_and_version(tmp_path: Path) -> None:
    script = tmp_path / "make_x.py"
    script.write_text(
        "#!/usr/bin/env python\n# /// script\n"
        '# requires-python = ">=3.11"\n# dependencies = [\n'
        '#     "one==1.0",\n#     "two>=2,<3",\n#     "three",\n'
        "#     \"four ~= 4.1 ; sys_platform == 'linux'\",\n# ]\n# ///\nprint()\n"
    )

    class Here(type(tool("autoawq"))):  # type: ignore[misc]
        script = property(lambda self: tmp_path / "make_x.py")

    assert Here("x", {}).pins == {"one": "==1.0", "two": ">=2,<3", "three": "", "four": "~= 4.1"}


def test_the_format_follows_the_method() -> None:
    words = {
        ("autoawq", None): "awq",
        ("auto_gptq", None): "gptq",
        ("gptqmodel", "gptq"): "gptq",
        ("gptqmodel", "awq"): "awq",
        ("llmcompressor", "W8A8"): "compressed-tensors",
    }
    for (name, method), word in words.items():
        assert format_of(Recipe("mine", name, method=method)).quant_method == word
    activations = {
        method: made.activations for method, made in tool("llmcompressor").formats.items()
    }
    assert activations == {
        "W4A16": None,
        "W4A16_AWQ": None,
        "W4A8": "int8",
        "W8A8": "int8",
        "FP8_DYNAMIC": "fp8",
    }


@pytest.mark.parametrize(("name", "remedy"), [("autoaqw", "did you mean"), ("engine", "another")])
def test_what_makes_no_checkpoints_is_no_tool(name: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match="makes no checkpoints") as raised:
        tool(name)
    assert remedy in raised.value.remedy
