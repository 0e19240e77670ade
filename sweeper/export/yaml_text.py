"""YAML that every reader takes for what it is. Pure.

Readers differ: `y`, `on` and `1e3` are text to one and a boolean or a number to the next (YAML 1.1
in Kubernetes, 1.2 in Docker, PyYAML's own mixture in vLLM). Text is left bare only where all agree;
all else is quoted, and escaped where it holds what an editor or a parser might change.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import yaml

from sweeper.redaction import shown

_BARE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*")
_OTHER_TYPES = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
)
_WIDTH = 100
_BLOCK_SAFE = re.compile(r"[\x20-\x7e\n]*")


class Block(str):
    """Text of several lines, shown as lines where that keeps it as it is."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Repeat what occurs twice: anchors are for readers who expect them."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    is_bare = _BARE.fullmatch(value) is not None and value.lower() not in _OTHER_TYPES
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, None if is_bare else '"')


def _block(dumper: yaml.SafeDumper, value: Block) -> yaml.ScalarNode:
    style = "|" if _BLOCK_SAFE.fullmatch(value) and " \n" not in value else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Block, _block)


def dump(*documents: Any) -> str:
    """Documents as YAML, keys in the order given."""
    return yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1_000_000,
        explicit_start=len(documents) > 1,
    )


def line(text: str) -> str:
    """Text as part of a comment: one line, which it cannot end, and no secret."""
    return " ".join(shown(text).split())


def comments(lines: Sequence[str]) -> str:
    """Lines of comment, wrapped where they are long; an empty one is a bare mark."""
    return "".join(f"{row}\n" for text in lines for row in _wrapped(line(text)))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or ["#"]
