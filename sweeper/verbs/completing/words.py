"""What each verb takes of its own, for completion and for the test that holds help to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Source(Enum):
    """Where the values of a key come from, if they are no fixed list."""

    STUDY = "names of studies"
    TRIAL = "numbers of the named study's trials"
    SIDE = "STUDY/TRIAL, or a file"
    TARGET = "export targets"
    PATH = "files and folders, which the shell completes"
    FREE = "anything"


Values = tuple[str, ...] | Source
BOOLEAN = ("true", "false")
TABLE = ("table", "json")


@dataclass(frozen=True)
class Takes:
    """What may follow a verb.

    Attributes:
        keys: of its own, each with its values.
        settings: beginnings of the configuration's keys it takes: `("",)` takes all of them.
        words: words without a key.
    """

    keys: Mapping[str, Values] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


_STUDY: dict[str, Values] = {"study": Source.STUDY, "studies_dir": Source.PATH}
ALL = ("",)

TAKES: dict[str, Takes] = {
    "sweep": Takes(_STUDY, ALL, ("--cfg",)),
    "resume": Takes(_STUDY, ALL),
    "status": Takes({**_STUDY, "watch": BOOLEAN, "format": TABLE}, ()),
    "bounds": Takes({**_STUDY, "drop": ("all",), "restore": ("all",), "format": TABLE}),
    "pareto": Takes({**_STUDY, "format": (*TABLE, "csv")}, ("select.",)),
    "export": Takes(
        {**_STUDY, "target": Source.TARGET, "trial": Source.TRIAL, "verify": BOOLEAN},
        ("select.", "export."),
    ),
    "compare": Takes(
        {
            "a": Source.SIDE,
            "b": Source.SIDE,
            "load": Source.FREE,
            "format": TABLE,
            "studies_dir": Source.PATH,
        },
        ("select.",),
    ),
    "estimate": Takes({"format": TABLE}, ALL),
    "diagnose": Takes({"log": Source.PATH, "format": ("text", "json")}, ("engine",)),
    "doctor": Takes({"deep": BOOLEAN, "limit_s": Source.FREE, "format": TABLE}, ALL),
    "checkpoints": Takes(
        {
            "verify": BOOLEAN,
            "prune": ("all", "damaged"),
            "limit_gib": Source.FREE,
            "cache_dir": Source.PATH,
            "format": TABLE,
        }
    ),
    "sync": Takes(_STUDY, ("tracking.",)),
    "completion": Takes(words=("bash", "zsh", "fish")),
}
"""By verb."""
