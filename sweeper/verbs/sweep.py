"""Run a study, or continue it: the same command goes on where it stopped.

usage: python -m sweeper [sweep] [model=NAME] [study=NAME] [--cfg] [key=value ...]

  model=smollm2|qwen7b|qwen3_8b|llama3_8b     or model.path=FOLDER_OR_HUB_ID
  space=cpu|gpu|gpu_full                      or space=my_space.yaml
  objective=frontier|slo|point|metrics        what the sampler is told
  select.slo.ttft_p95_ms=500                  a latency promise at P95 (also tpot_, e2e_)
  budget.launches=20 budget.minutes=60        whichever is reached first
  load.concurrency=[1,8,32]                   the ladder every launch is driven through
  load=open load.rate_per_s=[1,2,4]           requests that arrive by the clock (also constant,
                                              burst, ramp, replay)
  load=found                                  streams doubled until throughput stops growing
  load=slo load.goodput.ttft_ms=500           the highest rate whose requests keep the limits
  tracking.uri=http://...                     an MLflow server instead of studies/mlflow.db

Every choice of conf/ is a group (model=qwen7b), every value a key (budget.launches=12), and a
group takes a YAML file of your own. --cfg prints the whole configuration instead of running it.
The first launch is the engine's own defaults; at the end stand the front, a recommendation, a
report and deployment files. Ctrl-C keeps everything measured. Folder of the study: studies/NAME.

examples:
  python -m sweeper
  python -m sweeper model=qwen7b study=chat budget.minutes=240 select.slo.ttft_p95_ms=500
  python -m sweeper model=qwen7b load=open 'load.rate_per_s=[1,2,4]' 'quantize=[awq,w8a8]'
  python -m sweeper model=qwen7b engine=simulate hardware=h200 study=foreseen
  python -m sweeper engine=mock study=trial budget.launches=3 --cfg

exit codes: 0 done, 1 no feasible trial or failed, 2 bad input, 130 interrupted (resume goes on)
"""

from __future__ import annotations

import sys

from sweeper.config.compose import compose
from sweeper.config.secrets import hide
from sweeper.hardware.detect import detect
from sweeper.verbs.early import check_early
from sweeper.verbs.flags_checked import check_flags
from sweeper.verbs.tabled import filled


def run(arguments: list[str]) -> int:
    """Compose the configuration from conf/ and the overrides, and run the study."""
    if "--cfg" in arguments:
        return _show([argument for argument in arguments if argument != "--cfg"])
    cfg = filled(compose(arguments, device_kind=detect().kind))
    early = check_early(cfg)
    check_flags(cfg, early.space, early.engine, progress=None)
    # Only now: bad input is to be answered before everything a study needs has been imported.
    from sweeper.verbs.running import run_study

    return run_study(cfg, early)


def _show(overrides: list[str]) -> int:
    """Print the composed configuration."""
    from dataclasses import asdict

    import yaml

    cfg = filled(compose(overrides, device_kind=detect().kind))
    yaml.safe_dump(hide(asdict(cfg)), sys.stdout, sort_keys=False, allow_unicode=True)
    return 0
