"""Memory, speed of light and the infeasible part of the space; nothing is launched.

usage: python -m sweeper estimate model=qwen7b hardware=h100_80gb [space=gpu_full]
                                  [format=table|json]

Works without a GPU, without the engine and without the model's weights: from the facts in
conf/model, or from a folder that holds a config.json (model.path=FOLDER). Memory is told by its
parts, with verdicts for the default, the ends of the space and every quantization and degree of
tensor parallelism; docs/memory.md says what stands behind them. All numbers are predicted.

examples:
  python -m sweeper estimate
  python -m sweeper estimate model=qwen7b hardware=h100_80gb space=gpu_full
  python -m sweeper estimate model=qwen3_8b hardware=l4 hardware.device_count=2 format=json

exit codes: 0 shown, whatever it says; 2 bad input
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.config.compose import compose
from sweeper.estimate.estimate_json import estimate_json
from sweeper.estimate.facts import missing_models
from sweeper.estimate.render import render
from sweeper.estimate.report import estimate_space
from sweeper.estimate.weights import Served
from sweeper.hardware import detect as hardware
from sweeper.hardware.peaks import with_measured_peaks
from sweeper.load.workload.lengths import longest
from sweeper.models.cache import cache_dir
from sweeper.models.read import facts_from_config
from sweeper.models.resolve import facts_only, short_name
from sweeper.quantize.published import check_paths
from sweeper.quantize.selection import Selection
from sweeper.space.parse import parse_space
from sweeper.verbs.early import check_interpreter
from sweeper.verbs.studies import choice


def run(arguments: list[str]) -> int:
    """Print the estimate."""
    form, rest = choice(arguments, "format", ["table", "json"])
    cfg = compose(rest, device_kind=hardware.detect().kind)
    check_interpreter(cfg.engine.python)
    machine = with_measured_peaks(
        hardware.resolve(cfg.hardware),
        cfg.hardware,
        python=cfg.engine.python,
        cache_dir=cache_dir(cfg),
    )
    check_paths(cfg)
    facts = facts_only(cfg.model)
    selection = Selection(cfg.quantize, cfg.model.checkpoints, facts, machine.kind)
    draft = facts_from_config(cfg.model.draft_facts) if cfg.model.draft_facts else None

    def serve(deployment: Mapping[str, Any]) -> Served:
        """With the flags that every launch of a study is given."""
        return selection.serve({**cfg.engine.args, **deployment})

    estimate = estimate_space(
        selection.with_own_values(parse_space(cfg.space)),
        facts,
        machine,
        draft=draft,
        required_tokens=sum(longest(cfg.workload)),
        missing=missing_models(cfg.model),
        input_tokens=cfg.workload.input_tokens,
        output_tokens=cfg.workload.output_tokens,
        serve=serve,
    )
    name = short_name(cfg.model)
    if form == "json":
        print(estimate_json(estimate, name, machine.name, machine.device_count))
        return 0
    print(f"{name} on {machine.device_count} x {machine.name} (predicted)\n")
    for line in selection.described():
        print(line)
    print(render(estimate))
    return 0
