"""All flags of a study, held against the installed engine before the first launch.

    engine.args, space, model.dtype ──► engine.check_flags ──┬──► no study; all of them are named
                                                             ├──► a choice of the space less
                                                             └──► a word by another name

A command line that the engine refuses costs a launch, and every launch of the study alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sweeper.config.schema import SweeperConfig
from sweeper.engine.flag_check import (
    ENV_PREFIX,
    FLAG_PREFIX,
    AskedFlag,
    FlagCheck,
    Refusal,
    Rename,
    as_text,
)
from sweeper.engine.protocol import Engine
from sweeper.errors import ConfigError
from sweeper.models.facts import ModelFacts
from sweeper.quantize.selection import Selection
from sweeper.space.catalogue import RECIPE_PREFIX, is_neutral
from sweeper.space.model import Parameter, Space


def check_flags(
    cfg: SweeperConfig, space: Space, engine: Engine, progress: Callable[[str], None] | None
) -> FlagCheck:
    """Hold everything that a study may send against its engine.

    Args:
        cfg: the configuration.
        space: what is searched.
        engine: the engine.
        progress: told what takes time; None takes no time, and leaves what is not known unchecked.

    Returns:
        What is left: choices to leave out, words to rename, notes.

    Raises:
        ConfigError: a flag that the engine does not have, or a value that every deployment or the
            model asks for and the engine does not take. All of them are named.
        EngineError: there is no usable engine.
    """
    asked = asked_flags(cfg, space)
    found = engine.check_flags(asked, progress)
    gone = _left_without_value(space, asked, found.refusals)
    fatal = [one for one in found.refusals if one.ends_study or one.asked.parameter in gone]
    if fatal:
        raise _refused(fatal)
    return found


def _left_without_value(
    space: Space, asked: Sequence[AskedFlag], refusals: Sequence[Refusal]
) -> set[str]:
    """Parameters without a default of the engine's, all of whose values are refused."""
    count = Counter(one.parameter for one in asked if one.optional)
    count.subtract(one.asked.parameter for one in refusals if one.asked.optional)
    return {name for name, left in count.items() if left == 0 and space[name].required}


def asked_flags(cfg: SweeperConfig, space: Space) -> list[AskedFlag]:
    """Everything that a study may send its engine, words for the engine's default left out."""
    return [*_of_every_launch(cfg, space), *_searched(cfg, space)]


def renames(found: Sequence[Rename], model: ModelFacts | None) -> dict[str, dict[str, str]]:
    """Flag → the study's word → the engine's, of the renames that hold for this model."""
    quantized = model is not None and model.quantization_method is not None
    held = [rename for rename in found if not (rename.online and quantized)]
    names = dict.fromkeys(rename.parameter for rename in held)
    return {name: {r.asked: r.given for r in held if r.parameter == name} for name in names}


def _of_every_launch(cfg: SweeperConfig, space: Space) -> Iterator[AskedFlag]:
    if cfg.model.dtype is not None and not is_neutral("dtype", cfg.model.dtype):
        yield AskedFlag("model.dtype", "dtype", cfg.model.dtype)
    for name, value in cfg.engine.args.items():
        if value is not None:
            yield AskedFlag(f"engine.args.{name}", f"{FLAG_PREFIX}{name}", value)
    for name, value in space.fixed.items():
        if not name.startswith(ENV_PREFIX) and not is_neutral(name, value):
            yield AskedFlag(f"space.fixed.{name}", name, value)


def _searched(cfg: SweeperConfig, space: Space) -> Iterator[AskedFlag]:
    """Values of the space. Of a checkpoint the engine is asked whether it reads the format, because
    it is told nothing else of it."""
    selection = Selection(cfg.quantize, cfg.model.checkpoints)
    for parameter in space.parameters:
        if parameter.name.startswith((ENV_PREFIX, RECIPE_PREFIX)):
            continue
        # Of a range nothing can be left out in the middle: it is the user's to narrow.
        optional = len(parameter.choices) > 1
        key = f"space.parameters.{parameter.name}"
        for value in _sent(parameter):
            if parameter.name != "quantization":
                yield AskedFlag(key, parameter.name, value, optional)
            elif (word := selection.engine_word(str(value))) is not None:
                chosen = f"quantize.recipes.{value}" if value in cfg.quantize.recipes else key
                yield AskedFlag(chosen, parameter.name, word, optional)


def _sent(parameter: Parameter) -> list[object]:
    """Values that are not the engine's default."""
    values = parameter.choices or (parameter.low, parameter.high)
    return [
        value
        for value in dict.fromkeys(values)
        if value is not None
        and not is_neutral(parameter.name, value)
        and not parameter.is_default(value)
    ]


def _refused(refusals: Sequence[Refusal]) -> ConfigError:
    if len(refusals) == 1:
        return ConfigError(f"{_where(refusals[0])}", refusals[0].problem.remedy)
    lines = [f"{_where(refusal)}; {refusal.problem.remedy}" for refusal in refusals]
    return ConfigError(
        f"{len(refusals)} settings do not fit the engine:\n    " + "\n    ".join(lines),
        "correct them all; nothing has been launched",
    )


def _where(refusal: Refusal) -> str:
    """The key, with its value where that is what is wrong, and the cause."""
    asked = refusal.asked
    value = "" if refusal.problem.unknown else f"={as_text(asked.value)}"
    return f"{asked.key}{value}: {refusal.problem.cause}"
