"""What only a study can do about a fault: refuse without a launch, launch again, stop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sweeper.verdicts import Phase, Verdict
from tests.faults.cells import OOM

CORRUPT = (
    "RuntimeError: vLLM failed to compile the model. The most likely reason for this is that a "
    "previous compilation failed, leading to a corrupted compilation artifact."
)
SPACE = """
name: s
parameters:
  max_num_seqs: {choices: [default, 512, 768, 1024]}
  max_num_batched_tokens: {choices: [default, 512, 40960, 49152]}
seeds:
  - {max_num_seqs: 1024, max_num_batched_tokens: 512}
  - {max_num_batched_tokens: 40960}
  - {max_num_batched_tokens: 49152}
  - {max_num_seqs: 512}
  - {max_num_seqs: 768}
"""
ARGUMENTS = [
    "engine=mock",
    "hardware=h100_80gb",
    "model=qwen7b",
    "space=s.yaml",
    "study=s",
    "workload.input_tokens=8",
    "workload.output_tokens=8",
    "load.concurrency=[1]",
    "load.requests_per_stream=2",
    "quality=none",
    "budget.launches=5",
    "sampler=random",
    "tracking=none",
]


def study(folder: Path, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, journal and messages of a study."""
    (folder / "s.yaml").write_text(SPACE)
    done = subprocess.run(
        [sys.executable, "-m", "sweeper", *ARGUMENTS, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    path = folder / "studies" / "s" / "trials.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return done.returncode, [json.loads(line) for line in lines], done.stdout + done.stderr


def test_what_is_refused_and_what_is_launched_again(tmp_path: Path) -> None:
    """One study for all of it: phase plan with its verdicts, and a cache that was corrupt once."""
    once = f"{{die_at: start, once: '{tmp_path / 'compiled'}', log_text: '{CORRUPT}'}}"
    oom = f"{{die_at: ready, log_text: '{OOM}', when: {{max_num_seqs: [512, 768]}}}}"
    code, trials, told = study(tmp_path, f"+engine.options.faults=[{once},{oom}]")
    assert code == 0, told
    assert [(t["number"], t["attempt"], t["verdict"], t["phase"]) for t in trials[:7]] == [
        (0, 1, Verdict.INFRA, Phase.START),
        (0, 2, Verdict.OK, Phase.STOP),
        (1, 1, Verdict.INFEASIBLE_CONFIG, Phase.PLAN),
        (2, 1, Verdict.CAPACITY, Phase.START),
        (3, 1, Verdict.CAPACITY, Phase.PLAN),
        (4, 1, Verdict.CRASH_UNDER_LOAD, Phase.WARMUP),
        (5, 1, Verdict.CRASH_UNDER_LOAD, Phase.PLAN),
    ]
    assert "compil" in trials[0]["cause"]
    for trial in trials[:7]:
        assert trial["launched"] is (trial["phase"] != Phase.PLAN)
        assert trial["verdict"] == Verdict.OK or (trial["cause"] and trial["remedy"])
