"""Which flags and variables carry a secret, told by their names. For all that is written."""

from __future__ import annotations

import re

_SECRET = re.compile(r"key|token|secret|passw|passphrase|credential")
# Tokens that are counted, split or numbered by an engine, and paths of files.
_HARMLESS = re.compile(
    r"tokeniz\w*"
    r"|(?:num|max|min|batched|speculative)_tokens?(?![a-z])"
    r"|token_(?:ids?|threshold|len\w*|limit)(?![a-z])"
    r"|(?<!api_)(?<!auth_)(?<!access_)(?<!bearer_)(?<!refresh_)(?<!hf_)(?<!hub_)tokens(?![a-z])"
    r"|(?:key|token)_?(?:file|path)(?![a-z])"
)


def is_secret(name: str) -> bool:
    """True if a flag or variable of this name would carry a secret.

    In doubt it is one: a name wrongly hidden costs a look, a secret written down costs a new one.
    """
    plain = name.lower().replace("-", "_")
    return bool(_SECRET.search(_HARMLESS.sub("", plain)))
