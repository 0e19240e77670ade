"""Who proposes: this product's search, with and without priors, and what it is held against.

All of them share what the product knows without searching: rules that arithmetic proves, bounds
learnt from failed launches, no deployment twice. So the figures compare proposals alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sweeper.space.model import Parameter, Space

INNERMOST = ("max_num_seqs", "max_num_batched_tokens")
"""vLLM's `auto_tune.sh` walks batched tokens inside sequences, with all else fixed by hand."""


@dataclass(frozen=True)
class Policy:
    """One way to choose the next deployment.

    Attributes:
        name: in the table.
        sampler: `sampler.kind` of the product.
        prior: none | other_gpu | noisy | shuffled, see `benchmarks.efficiency.priors`.
        is_seeded: False if every seed gives the same study.
    """

    name: str
    sampler: str
    prior: str = "none"
    is_seeded: bool = True

    @property
    def grid(self) -> bool:
        return self.sampler == "grid"

    def order(self, space: Space) -> Space:
        """The space with its parameters and values in the order that a grid walks them."""
        if not self.grid:
            return space
        inner = [p for name in INNERMOST for p in space.parameters if p.name == name]
        outer = [_default_first(p) for p in space.parameters if p.name not in INNERMOST]
        return replace(space, parameters=(*outer, *inner))


RANDOM = Policy("random", "random")
OURS = Policy("ours, no prior", "auto")
OTHER_GPU = Policy("ours, prior: simulator of another GPU", "auto", "other_gpu")
POLICIES = (
    OURS,
    OTHER_GPU,
    Policy("ours, prior distorted (another GPU, noise)", "auto", "noisy"),
    Policy("ours, prior shuffled", "auto", "shuffled"),
    RANDOM,
    Policy("grid in auto_tune's order", "grid", is_seeded=False),
    Policy("plain TPE", "tpe"),
    Policy("NSGA-II", "nsgaii"),
)


def _default_first(parameter: Parameter) -> Parameter:
    if not parameter.choices:
        return parameter
    rest = [value for value in parameter.choices if value != parameter.default]
    first = [value for value in parameter.choices if value == parameter.default]
    return replace(parameter, choices=(*first, *rest))
