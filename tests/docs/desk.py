"""A folder in which the commands of the docs are typed: studies, files and a planted machine."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from sweeper.__main__ import main
from sweeper.hardware.facts import HardwareFacts
from sweeper.tracking.journal import Journal
from sweeper.tracking.paths import StudyPaths
from sweeper.verdicts import Verdict
from tests.docs.blocks import PAGES, ROOT, blocks_of
from tests.engine.replay.tables import csv_row, write_csv
from tests.factories import outcome

EXAMPLE = ROOT / "studies/example-smollm2-cpu"
STUDIES = ("example-smollm2-cpu", "NAME", "STUDY", "mine", "qwen7b-h100", "smollm2-cpu-vllm")
"""Names by which the docs speak of a finished study; each is a copy of the example."""
BOUND = "no_kv_memory-7"
GPU = HardwareFacts(
    kind="cuda",
    name="NVIDIA H100 80GB HBM3",
    device_count=8,
    memory_gib=79.2,
    free_memory_gib=79.0,
    compute_capability=(9, 0),
    cpu_cores=64,
    host_memory_gib=1000.0,
)
CPU = HardwareFacts(
    kind="cpu",
    name="AMD EPYC",
    device_count=1,
    memory_gib=24.0,
    free_memory_gib=20.0,
    cpu_model="AMD EPYC",
    cpu_cores=2,
    cpu_features=("avx2",),
    host_memory_gib=24.0,
)
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


@dataclass(frozen=True)
class Answer:
    """What a command came to."""

    code: int
    out: str
    err: str


def run(arguments: Iterable[str]) -> Answer:
    """`python -m sweeper ...` in this process; relative paths are of the current folder."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return Answer(code, out.getvalue(), err.getvalue())


def lay_out(folder: Path) -> None:
    """Everything that the docs name: studies, and files a user would have."""
    for name in STUDIES:
        shutil.copytree(EXAMPLE, folder / "studies" / name)
        _with_a_lesson(StudyPaths(folder / "studies", name))
    (folder / "FOLDER").mkdir()
    (folder / "FOLDER/config.json").write_text(json.dumps(MODEL))
    shutil.copy(ROOT / "tests/engine/data/starts/fp8.log", folder / "server.log")
    shutil.copy(
        ROOT / "tests/metrics/external/data/vllm_bench_default.json", folder / "result.json"
    )
    (folder / "requests.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.00,374,44\n2024-05-10 00:00:01.50,396,109\n"
    )
    (folder / "prompts.jsonl").write_text('{"prompt": "Say hello."}\n{"prompt": "Count to ten."}\n')
    (folder / "german.jsonl").write_text('{"text": "Guten Tag."}\n')
    (folder / "tasks").mkdir()
    write_csv(folder / "measured.csv", [csv_row(8), csv_row(16, silicon_tpot_ms=19)])
    for name, text in named_files().items():
        (folder / name).write_text(text + "\n")


def named_files() -> dict[str, str]:
    """YAML blocks of the docs whose first line is a comment with a file's name."""
    found = {}
    for page in PAGES:
        for block in blocks_of(page):
            first = (
                block.text.partition("\n")[0].removeprefix("#").strip().rstrip(",").split(" ")[0]
            )
            name = first.rstrip(",:;")
            if block.language == "yaml" and name.endswith((".yaml", ".yml")) and "/" not in name:
                found[name] = block.text
    return found


def _with_a_lesson(paths: StudyPaths) -> None:
    """One launch more, that ran out of memory: without it no bound could be dropped."""
    failed = outcome(
        7,
        deployment={"enforce_eager": True, "gpu_memory_utilization": 0.2},
        verdict=Verdict.CAPACITY,
        learnt={"rule": "no_kv_memory"},
        manifest=Journal(paths.trials_jsonl).read()[0].manifest,
    )
    Journal(paths.trials_jsonl).append(failed)
