"""What to type to make the numbers again: the study from nothing, and every step after it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sweeper.config.compose import compose
from sweeper.config.location import conf_dir, groups, options
from sweeper.config.overrides import LISTED_GROUPS
from sweeper.config.schema import SloConfig, SpaceConfig, SweeperConfig
from sweeper.config.secrets import hide
from sweeper.config.yaml_text import read_yaml
from sweeper.pareto.recommendation import Recommendation
from sweeper.redaction import redact_data

_PROGRAM = "python -m sweeper"
_APART = frozenset(
    {"study", "studies_dir", "cache_dir", "tracking", "record", "export", "launcher"}
)
"""Settings that say where things lie, and change no number."""
_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./:+-]*")
_WORDS = frozenset({"null", "true", "false", "nan", "inf", "infinity"})


def commands(
    cfg: SweeperConfig, study: str, recommendation: Recommendation | None, *, deployable: bool
) -> list[tuple[str, str]]:
    """(what it does, what to type), in the order in which one would.

    Args:
        cfg: of the study.
        study: its name.
        recommendation: None if nothing was feasible.
        deployable: whether there are deployment files for its engine.
    """
    named = f"study={shlex.quote(study)}{_folder(cfg)}"
    told = [
        (
            "The same study from nothing, under a new name:",
            " ".join([_PROGRAM, *from_scratch(cfg), f"study={shlex.quote(study)}-again"]),
        ),
        ("Go on with this one, where its folder is:", f"{_PROGRAM} resume {named}"),
    ]
    if recommendation is None:
        return told
    told.append(("Choose again under another promise, measuring nothing:", _choose(named, cfg)))
    if deployable and recommendation.keeps_slo:
        told.append(
            (
                "Write the deployment files, start them, and see whether they keep what was "
                "measured:",
                f"{_PROGRAM} export {named}{_promise(cfg.select.slo)} verify=true",
            )
        )
    if recommendation.to_confirm:
        told.append(("Launch the best and the defaults again:", recommendation.to_confirm))
    return told


def from_scratch(cfg: SweeperConfig) -> list[str]:
    """Overrides that compose this configuration on any machine: options, then single keys.

    The profile is named, because it would follow the machine otherwise; what it or the usual
    options set is left out. Secrets are left out too.
    """
    wanted = _numbers(hide(asdict(cfg)))
    names = {
        group: name
        for group in groups()
        if group in wanted
        and group not in LISTED_GROUPS
        and (name := wanted[group].get("name")) in options(group)
    }
    usual = _chosen_in("config")
    profile = max(options("profile"), key=lambda one: _alike(_chosen_in(f"profile/{one}"), names))
    known = usual | _chosen_in(f"profile/{profile}")
    told = [f"profile={profile}"]
    told += [f"{group}={name}" for group, name in names.items() if known.get(group) != name]
    if cfg.model.path and "model" not in names:
        told.append("model=custom")
    base = compose(told, validate=False)
    if _is_narrower(cfg.space, base.space):
        # What is removed takes with it what hangs on it: from an empty space there is only adding.
        told = [*(one for one in told if not one.startswith("space=")), "space=none"]
        base = compose(told, validate=False)
    return [*told, *_differing(_numbers(asdict(base)), wanted, "")]


def _is_narrower(space: SpaceConfig, base: SpaceConfig) -> bool:
    return bool(base.parameters.keys() - space.parameters or base.fixed.keys() - space.fixed)


def _chosen_in(name: str) -> dict[str, str]:
    """Group → option, as a configuration file's list of defaults has it."""
    path = conf_dir() / f"{name}.yaml"
    listed = read_yaml(path, str(path), "install sweeper again").get("defaults", [])
    told = {
        group: option for one in listed if isinstance(one, dict) for group, option in one.items()
    }
    return {group.removeprefix("override /"): str(option) for group, option in told.items()}


def _alike(implied: Mapping[str, str], names: Mapping[str, str]) -> int:
    """In how many groups a profile has what is wanted, less those where it has something else."""
    return sum(1 if names.get(group) == option else -1 for group, option in implied.items())


def _numbers(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _APART}


def _differing(base: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key in [*wanted, *(key for key in base if key not in wanted)]:
        name, value = f"{prefix}{key}", wanted.get(key)
        if key not in wanted:
            yield shlex.quote(f"~{name}")
        elif isinstance(value, Mapping) and isinstance(base.get(key), Mapping):
            yield from _differing(base[key], value, f"{name}.")
        elif redact_data({key: value}) == {key: value} and (key not in base or base[key] != value):
            yield shlex.quote(f"{name}={_hydra(value)}")


def _hydra(value: Any) -> str:
    """A value as it is written in an override."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_hydra(str(k))}:{_hydra(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(_hydra(one) for one in value) + "]"
    text = str(value)
    if not isinstance(value, str) or (_PLAIN.fullmatch(text) and text.lower() not in _WORDS):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _folder(cfg: SweeperConfig) -> str:
    """`studies_dir=`, where it is not the usual one."""
    usual = Path(cfg.studies_dir).absolute() == Path("studies").absolute()
    return "" if usual else f" studies_dir={shlex.quote(cfg.studies_dir)}"


def _promise(slo: SloConfig) -> str:
    given = {name: value for name, value in vars(slo).items() if value is not None}
    return "".join(f" select.slo.{name}={value:g}" for name, value in given.items())


def _choose(named: str, cfg: SweeperConfig) -> str:
    return f"{_PROGRAM} pareto {named}{_promise(cfg.select.slo) or ' select.slo.ttft_p95_ms=500'}"
