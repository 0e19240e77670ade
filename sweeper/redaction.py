"""Secrets are neither written down nor shown: known by their value, their shape, or their name.

    text of foreign origin ──► redact()       secrets become (hidden), all else stays
                           └─► shown()        likewise, and nothing is left that steers a terminal
    nested plain data ───────► redact_data()  every text in it, and what a name says is secret

In doubt a flag or variable is a secret by its name (`is_secret`): a name wrongly hidden costs a
look, a secret written down costs a new one. In running text it is the other way round: `redact`
knows fewer names, because log lines are full of tokens and keys that are none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "(hidden)"
MIN_KNOWN_CHARS = 6
"""Shorter values are no secrets that could be told apart from words."""
LONG_CHARS = 16
"""From this length on a known value is hidden inside a longer word too."""

_SECRET = re.compile(r"key|token|secret|passw|passphrase|credential")
# Tokens that are counted, split or numbered by an engine, and paths of files.
_HARMLESS = re.compile(
    r"tokeniz\w*"
    r"|(?:num|max|min|batched|speculative)_tokens?(?![a-z])"
    r"|token_(?:ids?|threshold|len\w*|limit)(?![a-z])"
    r"|(?<!api_)(?<!auth_)(?<!access_)(?<!bearer_)(?<!refresh_)(?<!hf_)(?<!hub_)tokens(?![a-z])"
    r"|(?:key|token)_?(?:file|path)(?![a-z])"
)
_PLAIN_WORDS = frozenset(
    {"", "none", "null", "true", "false", "yes", "no", "on", "off", "auto", "default", "str"}
    | {"disabled", "enabled", "unknown", "optional", "bearer", "basic", "token", HIDDEN}
)
# Variables that say where a secret lies: the place is none.
_PLACE = re.compile(r"(?:_FILE|_PATH|_DIR|_SOCK|_CREDENTIALS)$")

_NAME = (
    r"(?:(?i:(?:[a-z0-9]+[_-]){0,8}(?:api[_-]?keys?|access[_-]?key(?:[_-]?id)?"
    r"|secret(?:[_-]?(?:access[_-]?)?key)?|(?:private|signing|encryption|master)[_-]?key"
    r"|(?:pg)?pass(?:word|wd|phrase)|credentials?|authorization"
    r"|(?:hf|hub|auth|access|bearer|refresh|session|security|api|id|github|git|tracking|client)"
    r"[_-]?token))"
    r"|(?!(?:BOS|EOS|PAD|UNK|CLS|SEP|MASK)_)[A-Z][A-Z0-9_]{0,60}_(?:TOKEN|KEY|SECRET|PASSWD))"
)
_NAME_ALONE = re.compile(_NAME)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\n){0,20000}"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----)?"
)
# A password may hold an '@', and in what people type a '/'; digits and a '/' are a port.
_URI = re.compile(
    r"(?P<head>\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s:/@\"'<>]{0,200}:)(?!\d{1,5}/)"
    r"(?:[^\s/\"'<>]{1,500}(?=@)|[^\s@\"'<>]{1,500}(?=@))"
)
_QUERY = re.compile(
    r"(?P<head>[?&;](?i:x-(?:amz|goog)-(?:signature|credential|security-token)|signature|sig|policy"
    r"|key-pair-id|awsaccesskeyid|(?:[a-z]+_)?token|(?:api[_-]?)?key|auth|password|secret)=)"
    r"[^&\s\"'<>#]+"
)
_SCHEME = re.compile(
    r"(?i)(?P<head>\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+"
    r"|\bbearer\s+(?=[\w.~+/=-]*\d))[\w.~+/=-]{6,}"
)
_NAMED = re.compile(
    rf"(?<![A-Za-z0-9_-])(?P<head>(?P<flag>--)?{_NAME}(?:[\"']?\s?[=:]\s?\[?|(?(flag)\s+(?!-)|(?!))))"
    r"(?:(?P<quote>[bru]?[\"'])(?P<quoted>[^\"'\n]*)|(?P<bare>[^\s\"',;&|<>()\[\]{}]+))"
)
_SHAPE = re.compile(
    r"(?<![A-Za-z0-9_])(?:hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}"
    r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})(?![A-Za-z0-9_])"
    r"|(?<![A-Za-z0-9_/-])(?:"
    r"sk-(?:(?:proj|ant|or|svcacct|admin|sweeper|live|test)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|glpat-[A-Za-z0-9_-]{20,}"
    r"|nvapi-[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r")(?![A-Za-z0-9])"
)
# One of these stands, in whatever case, in every line that a pattern above but the first fits: most
# lines of a log cost no more than looking for them.
_HINTS = (
    *("key", "token", "secret", "passw", "passphrase", "credential", "auth", "bearer", "://"),
    *("?sig", "&sig", ";sig", "?policy", "&policy", ";policy", "hf_", "api_org_", "sk-", "glpat"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_", "akia", "asia", "aiza", "nvapi", "dapi"),
    *("xox", "eyj"),
)
# Escape sequences as terminals take them: CSI, then strings up to their end, then two characters.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# Controls, marks that turn the direction of writing, halves of characters.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff]"
)
_UNPRINTABLE = re.compile(rf"{_ESCAPES.pattern}|\r|{_CONTROLS.pattern}")

_remembered: set[str] = set()


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """True if a flag or variable of this name would carry a secret."""
    plain = name.lower().replace("-", "_")
    return bool(_SECRET.search(_HARMLESS.sub("", plain)))


def carries_secret(name: str, value: Any) -> bool:
    """True if what is given under a name is a secret: the name says so, and it is text that may be.

    ``hf_token=true`` tells an engine to use the token it has, and is none.
    """
    if isinstance(value, list | tuple):
        return any(carries_secret(name, item) for item in value)
    return isinstance(value, str) and is_secret(name) and value.lower() not in _PLAIN_WORDS


def remember(*secrets: str | None) -> None:
    """Make values known as secrets to this process, besides those in its environment."""
    _remembered.update(form for secret in secrets if secret for form in _forms(secret))


def redact(text: str) -> str:
    """The text with every secret replaced by ``(hidden)``; the same object if there is none.

    Secrets are the values of this process's environment whose names say so, what was remembered,
    keys and tokens of known shape, passwords in addresses, signatures in queries, and values named
    as secrets (``api_key='...'``, ``--hf-token ...``, ``Authorization: Bearer ...``).
    """
    return _redacted(text, _known_pattern())


def redact_data(data: Any) -> Any:
    """Nested plain data (mappings, lists, scalars) with every text in it redacted; a copy."""
    return _redacted_data(data, _known_pattern())


def printable(text: str) -> str:
    """Text that cannot steer a terminal: no escape sequences and no control characters.

    Line breaks and tabs stay; a carriage return, with which progress bars overwrite a line, becomes
    a line break.
    """
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("\ufffd", plain)


def shown(text: str) -> str:
    """Text of foreign origin as it may be shown: without secrets, and unable to steer a terminal.

    Escape sequences go first, so that a colour inside a token does not hide it from `redact`.
    """
    return redact(printable(text))


def printable_data(data: Any) -> Any:
    """Nested plain data with every text in it, names too, made `printable`; a copy."""
    if isinstance(data, str):
        return printable(data) if _UNPRINTABLE.search(data) else data
    if isinstance(data, Mapping):
        return {printable_data(key): printable_data(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(printable_data, data))
    return data


def _redacted(text: str, known: re.Pattern[str] | None) -> str:
    changed = _PEM.sub(HIDDEN, text) if "PRIVATE KEY" in text else str(text)
    if _is_suspect(changed):
        changed = "".join(map(_redacted_line, changed.splitlines(keepends=True)))
    if known is not None:
        changed = known.sub(HIDDEN, changed)
    return text if changed == text else changed


def _redacted_line(line: str) -> str:
    if not _is_suspect(line):
        return line
    for pattern in (_URI, _QUERY, _SCHEME):
        line = pattern.sub(_head_only, line)
    return _SHAPE.sub(HIDDEN, _NAMED.sub(_named, line))


def _is_suspect(text: str) -> bool:
    # Engines count tokens in line after line; no pattern knows a name that ends so.
    lower = text.lower().replace("tokens", "")
    return any(hint in lower for hint in _HINTS)


def _redacted_data(data: Any, known: re.Pattern[str] | None) -> Any:
    if isinstance(data, str):
        return _redacted(data, known)
    if isinstance(data, Mapping):
        return {key: _redacted_entry(key, value, known) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(_redacted_data(item, known) for item in data)
    return data


def _redacted_entry(key: Any, value: Any, known: re.Pattern[str] | None) -> Any:
    if isinstance(key, str) and _NAME_ALONE.fullmatch(key) and carries_secret(key, value):
        return HIDDEN
    return _redacted_data(value, known)


def _head_only(match: re.Match[str]) -> str:
    return f"{match['head']}{HIDDEN}"


def _named(match: re.Match[str]) -> str:
    value = match["quoted"] if match["quote"] else match["bare"]
    if value.lower() in _PLAIN_WORDS or HIDDEN in value:
        return match[0]
    return f"{match['head']}{match['quote'] or ''}{HIDDEN}"


def _known_pattern() -> re.Pattern[str] | None:
    found = {
        form
        for name, value in os.environ.items()
        if is_secret(name) and not _is_place(name, value)
        for form in _forms(value)
    }
    return _pattern(frozenset(found | _remembered))


@lru_cache(maxsize=8)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """One pattern for all known values, the longest first."""
    words = [
        re.escape(secret)
        if len(secret) >= LONG_CHARS
        else rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])"
        for secret in sorted(secrets, key=lambda text: (-len(text), text))
    ]
    return re.compile("|".join(words)) if words else None


def _forms(secret: str) -> set[str]:
    """A value as it is, and as it stands in an address; nothing if it cannot be told from words."""
    plain = secret.strip()
    if len(plain) < MIN_KNOWN_CHARS or plain.lower() in _PLAIN_WORDS or plain in HIDDEN:
        return set()
    if plain.isdigit() and len(plain) < LONG_CHARS:
        return set()
    return {plain, unquote(plain), quote(plain, safe="")}


def _is_place(name: str, value: str) -> bool:
    return bool(_PLACE.search(name)) and value.startswith(("/", "~", "."))
