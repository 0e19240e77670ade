"""What a checkpoint that could not be made proves of other deployments. Pure.

It was made without a server: so neither batch limits nor anything else that the engine is told can
be to blame, only the recipe, and of some faults the tool as such. Such a fault is believed once it
is the recipe's (it does not fit, it is refused), or once a second try has failed as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.search.bounds.bound import Rest
from sweeper.search.bounds.teaching import Teaching
from sweeper.search.faults import is_of_machine
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase

RECIPE = Teaching("could not make its checkpoint", same=("quantization",), rest=Rest.RECIPE_SAME)
"""Other bits, groups or texts may pass."""

_TOOL: Mapping[str, Teaching] = {
    rule: Teaching(told, same=("quantization",), rest=Rest.ANY)
    for rule, told in {
        "no_cuda": "needed a GPU to make its checkpoint",
        "no_environment": "used a tool that has no environment here",
        "autoawq_transformers": "used a tool that does not work with what is installed beside it",
        "old_transformers": "used a tool that cannot read the model's tokenizer",
        "architecture_not_quantizable": "used a tool that does not know the model's architecture",
        "remote_code": "needed code of the model's own to be run",
        "model_gated": "needed a model that is not to be had without a login",
        "model_missing": "needed a model that is not there",
        "weights_missing": "needed weights that are not there",
    }.items()
}
"""Faults that no value of the recipe's fields avoids."""


def teaching_of(rule: str) -> Teaching:
    """What the fault of a rule proves."""
    return _TOOL.get(rule, RECIPE)


def is_certain(outcome: TrialOutcome) -> bool:
    """Whether a trial shows that its checkpoint cannot be made here.

    A full disk or a busy device does not: every other recipe would meet it, and it passes.
    """
    if outcome.phase != Phase.QUANTIZE or is_of_machine(outcome):
        return False
    was_retried = outcome.verdict.is_retryable and outcome.attempt % 2 == 0
    return outcome.verdict.is_config_fault or was_retried
