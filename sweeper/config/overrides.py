"""Overrides as a user types them → overrides that Hydra composes, each checked on the way.

Every fault is found here, one override at a time, because here the key is known and the message can
name it; Hydra's own errors speak of structs and tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from sweeper.config.fields import find
from sweeper.config.files import is_file_option
from sweeper.config.location import groups, options
from sweeper.config.names import STUDY_NAMES, study_name_fault
from sweeper.config.suggest import did_you_mean, nearest
from sweeper.config.values import check_value, show, unknown_key
from sweeper.errors import ConfigError

LISTED_GROUPS = ("quantize",)
"""Groups of which several options may be chosen at once, `quantize=[awq,gptqmodel]`."""

SPACE_EDITS = ("space.parameters.", "space.fixed.")
RECIPE_EDITS = "quantize.recipes."
EDITS = (*SPACE_EDITS, RECIPE_EDITS)
"""Keys whose edits are carried out by `sweeper.config.edits`, not by Hydra."""

_NEEDS_QUOTES = "its value has characters that need quotes"


@dataclass(frozen=True)
class Override:
    """One override, understood.

    Attributes:
        key: group or dotted key.
        value: plain value; for a group the option's name or file, for a listed group all of them.
        group: True if it chooses a group's option.
        delete: True for ``~key``.
        text: what Hydra is given; empty if nothing.
    """

    key: str
    value: Any
    group: bool
    delete: bool
    text: str


def read_overrides(texts: list[str]) -> list[Override]:
    """Parse and check overrides against groups and schema.

    Raises:
        ConfigError: the first one that is wrong, with the nearest valid name.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser = OverridesParser.create()
    read = [_read(parser, text.strip()) for text in texts]
    return _last_of_each_group([one for item in read for one in _each_edit(item)])


def _last_of_each_group(read: list[Override]) -> list[Override]:
    """The last option of a group counts, as the last value of a key does (Hydra would refuse)."""
    last = {item.key: item for item in read if item.group}
    return [item for item in read if not item.group or item is last[item.key]]


def _each_edit(item: Override) -> list[Override]:
    """A mapping of whole parameters (``space.fixed={a:1,b:2}``) as one edit a parameter."""
    if item.group or item.delete or f"{item.key}." not in EDITS:
        return [item]
    edits = item.value.items()
    return [replace(item, key=f"{item.key}.{name}", value=value) for name, value in edits]


def _read(parser: Any, text: str) -> Override:
    parsed = _parse(parser, text)
    key = str(parsed.key_or_group)
    body = text.lstrip("+")
    if parsed.package is not None:
        raise ConfigError(f"{text}: '@' is not used here", f"write {key}=OPTION")
    if text.startswith("~"):
        return _read_deletion(key, text)
    if parsed.is_sweep_override():
        raise _sweep(key, text)
    if "." not in key and key in groups():
        return _read_group(key, _plain(parsed.value()), body)
    value = _plain(parsed.value())
    check_value(key, value)
    field = find(key)
    # Free keys of `engine.args` and the like do not exist yet: `++` sets them either way.
    free = field is not None and field.kind in ("inside", "open")
    text = "" if f"{key}.".startswith(EDITS) else f"++{body}" if free else body
    return Override(key, value, group=False, delete=False, text=text)


def _parse(parser: Any, text: str) -> Any:
    from hydra.errors import HydraException

    _check_shape(text)
    try:
        return parser.parse_override(text)
    except HydraException as error:
        raise _unreadable(text) from error


def _unreadable(text: str) -> ConfigError:
    """What Hydra's grammar has no rule for: in the key, in a study's name, or in any value."""
    key, _, value = text.partition("=")
    if re.search(r"(?:^|\.)\d", key.lstrip("+~")):
        return ConfigError(
            f"cannot read {text}: a part of a key begins with a digit",
            "write the mapping as a value: 'engine.env={NAME: value}', or name it otherwise",
        )
    if value.startswith("="):
        return ConfigError(f"cannot read {text}: there are two '='", f"write {key}{value}")
    fault = _fault(value)
    if fault == _NEEDS_QUOTES and key == "study" and (odd := study_name_fault(value)):
        # Quotes would only lead to the next message.
        return ConfigError(f"study={value}: the name {odd}", STUDY_NAMES)
    return ConfigError(f"cannot read {text}: {fault}", _quote(key, value))


def _check_shape(text: str) -> None:
    """``key=value`` with a plain key; what the shell or old habits make of it is named."""
    key, equals, _ = text.partition("=")
    bare = key.lstrip("+~-")
    if key.startswith("-"):
        raise ConfigError(f"cannot read {text}: settings have no dashes", _remedy_no_equals(bare))
    if not equals and not text.startswith("~"):
        raise ConfigError(f"cannot read '{text}': there is no '='", _remedy_no_equals(bare))
    if not re.fullmatch(r"[A-Za-z0-9_.@/$-]+", bare):
        what = f"'{bare}' is not a key" if bare else "there is no key before '='"
        raise ConfigError(f"cannot read '{text}': {what}", _remedy_no_equals(bare))


def _remedy_no_equals(word: str) -> str:
    if word in groups():
        return f"write {word}=OPTION, options: {', '.join(options(word))}"
    if find(word) is not None:
        return f"write {word}=VALUE"
    return "settings are written key=value, for example budget.launches=10"


def _fault(value: str) -> str:
    """What is unbalanced, in words; else that the text needs quotes."""
    for opening, closing in ("[]", "{}", "()"):
        if value.count(opening) != value.count(closing):
            lacks = closing if value.count(opening) > value.count(closing) else opening
            return f"a '{lacks}' is missing"
    for quote in ("'", '"'):
        if value.count(quote) % 2:
            return f"a {quote} is not closed"
    return _NEEDS_QUOTES


def _quote(key: str, value: str) -> str:
    if value[:1] in "[{":
        return "lists are written [a,b], mappings {a:1,b:2}, with one quote pair around the whole"
    bare = value.strip("'\"")
    return f"quote the value within the shell's quotes: '{key}=\"{bare}\"'"


def _sweep(key: str, text: str) -> ConfigError:
    value = text.partition("=")[2]
    remedy = f"write a list, '{key}=[{value}]', or one value (what is searched: space.parameters)"
    if key in groups() and key not in LISTED_GROUPS:
        remedy = f"one study has one: {key}={value.partition(',')[0]}"
    return ConfigError(f"{text}: several values at once are not taken here", remedy)


def _read_deletion(key: str, text: str) -> Override:
    field = find(key)
    if key in groups():
        raise ConfigError(
            f"{text}: a group cannot be left out",
            f"choose an option, {key}=OPTION: {', '.join(options(key))}",
        )
    if field is None:
        raise unknown_key(key)
    if field.kind != "inside":
        raise ConfigError(f"{text}: this key cannot be removed", f"set it: {key}=null")
    hydra_text = "" if key.startswith(EDITS) else text
    return Override(key, None, group=False, delete=True, text=hydra_text)


def _read_group(group: str, value: Any, body: str) -> Override:
    if group in LISTED_GROUPS:
        return _read_listed(group, value)
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise ConfigError(
            f"{group} takes the name of an option or a YAML file, not {show(value)}",
            f"options: {', '.join(options(group))}; single values: {group}.KEY=VALUE",
        )
    option = str(value)
    if is_file_option(option) and group != "profile":
        return Override(group, option, group=True, delete=False, text="")
    if option not in options(group):
        raise _unknown_option(group, option)
    return Override(group, option, group=True, delete=False, text=body)


def _read_listed(group: str, value: Any) -> Override:
    given = value if isinstance(value, list) else [value]
    chosen = [_read_one(group, item) for item in given]
    return Override(group, chosen, group=True, delete=False, text="")


def _read_one(group: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(
            f"{group} takes names of options or YAML files, not {show(value)}",
            f"options: {', '.join(options(group))}; several: '{group}=[a,b]'",
        )
    if not is_file_option(value) and value not in options(group):
        raise _unknown_option(group, value)
    return value


def _unknown_option(group: str, option: str) -> ConfigError:
    known = options(group)
    remedy = did_you_mean(option, known, what="options")
    if group == "model" and "/" in option:
        remedy = f"write model.path={option}; {remedy}"
    elif group == "model":
        remedy += "; any other model: model.path=FOLDER_OR_HUB_ID"
    elif nearest(option, known) is None:
        remedy += f"; your own: {group}=FILE.yaml"
    return ConfigError(f"{group}={option}: the group {group} has no option '{option}'", remedy)


def _plain(value: Any) -> Any:
    """Hydra's parsed value without its quoting wrappers."""
    from hydra.core.override_parser.types import QuotedString

    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    return value
