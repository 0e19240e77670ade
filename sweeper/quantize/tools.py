"""The toolchains that make checkpoints, and what comes of each: a table. Scripts do the work."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sweeper.config.recipe_fields import NAMES
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.estimate.weights import FP8, INT8
from sweeper.quantize.recipe import Recipe

WORKERS = Path(__file__).resolve().parent / "workers"
GPTQ, AWQ, COMPRESSED = "gptq", "awq", "compressed-tensors"


@dataclass(frozen=True)
class Format:
    """What a method makes.

    Attributes:
        quant_method: the engine's word for it, ``quant_method`` in the checkpoint's config.json.
        inputs_of, outputs_of: each layer's features must be a multiple of this.
        activations: precision in which the engine multiplies, None for 16 bits.
    """

    quant_method: str
    inputs_of: int = 1
    outputs_of: int = 1
    activations: str | None = None


@dataclass(frozen=True)
class Tool:
    """One toolchain.

    Attributes:
        name: in recipes.
        formats: method → what it makes; None where there is only one.
        needs_cuda: it refuses to quantize without an NVIDIA GPU.
        instead: what to use where there is none.
    """

    name: str
    formats: Mapping[str | None, Format]
    needs_cuda: bool = False
    instead: str = ""

    @property
    def script(self) -> Path:
        """The worker, with its environment in its head (PEP 723)."""
        return WORKERS / f"make_{self.name}.py"

    @cached_property
    def pins(self) -> dict[str, str]:
        """Distribution → what the script's head demands of its version, ``==0.2.9``."""
        return dict(_parted(text) for text in script_metadata(self.script)["dependencies"])


# AutoAWQ looks for clipping in 64 columns at a time, GPTQModel and AutoGPTQ pack both ways in runs
# of 32, compressed-tensors packs eight inputs into a word.
_AUTOAWQ = Format(AWQ, inputs_of=32, outputs_of=64)
_AWQ = Format(AWQ, inputs_of=32, outputs_of=32)
_GPTQ = Format(GPTQ, inputs_of=32, outputs_of=32)
_PACKED = Format(COMPRESSED, inputs_of=8)

TOOLS: Mapping[str, Tool] = {
    one.name: one
    for one in (
        Tool("autoawq", {None: _AUTOAWQ}),
        Tool(
            "auto_gptq",
            {None: _GPTQ},
            needs_cuda=True,
            instead="use quantize=gptqmodel or quantize=w4a16, which quantize on a CPU too",
        ),
        Tool("gptqmodel", {"gptq": _GPTQ, "awq": _AWQ}),
        Tool(
            "llmcompressor",
            {
                "W4A16": _PACKED,
                "W4A16_AWQ": _PACKED,
                "W4A8": Format(COMPRESSED, activations=INT8),
                "W8A8": Format(COMPRESSED, activations=INT8),
                "FP8_DYNAMIC": Format(COMPRESSED, activations=FP8),
            },
        ),
    )
}


def tool(name: str) -> Tool:
    """The toolchain of this name.

    Raises:
        ConfigError: there is none, or it is one that makes no checkpoints.
    """
    if name not in TOOLS:
        raise ConfigError(
            f"{name} makes no checkpoints",
            did_you_mean(name, TOOLS, what="tools") if name not in NAMES else "choose another tool",
        )
    return TOOLS[name]


def format_of(recipe: Recipe) -> Format:
    """What a recipe makes."""
    return tool(recipe.tool).formats[recipe.method]


def script_metadata(script: Path) -> dict[str, list[str]]:
    """The TOML in a script's comment block ``# /// script`` (PEP 723)."""
    lines = script.read_text(encoding="utf-8").splitlines()
    start = lines.index("# /// script") + 1
    block = lines[start : lines.index("# ///", start)]
    return tomllib.loads("\n".join(line[1:].removeprefix(" ") for line in block))


def _parted(requirement: str) -> tuple[str, str]:
    """``numpy>=2,<3`` → (``numpy``, ``>=2,<3``)."""
    plain = requirement.partition(";")[0].strip()
    end = next((i for i, sign in enumerate(plain) if sign in "=<>!~[ "), len(plain))
    return plain[:end], plain[end:].strip()
