"""The parts of `gpu_check.sh`: missing packages, a model without weights, a study, a table.

    gpu_check.py missing                      requirements of sweeper that this interpreter lacks
    gpu_check.py environment FOLDER           an environment that sees this interpreter's packages
    gpu_check.py run --shape S --folder F --budget-s N

Only the standard library is imported at the top: the first two run before anything is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STUDY = "gpu-check"
FINISH_S = 25.0
"""Kept back of the budget: for ending a study that takes too long, and for the table."""

IMPORT_NAMES = {"hydra-core": "hydra", "PyYAML": "yaml", "nvidia-ml-py": "pynvml"}
"""Distribution → module, where they differ."""
NOT_NEEDED = {"mlflow"}
"""The study is not tracked."""


@dataclass(frozen=True)
class Shape:
    """What is measured.

    Attributes:
        config: the model's config.json.
        input_tokens, output_tokens: of every request.
        concurrency: load levels.
        requests_per_stream: of a level; more make its streams busy for a larger part of it.
        overrides: what else the study is given.
    """

    config: Mapping[str, Any]
    input_tokens: int
    output_tokens: int
    concurrency: tuple[int, ...]
    requests_per_stream: int = 2
    overrides: tuple[str, ...] = ()


_QWEN2 = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "attention_dropout": 0.0,
    "use_cache": True,
    "use_sliding_window": False,
}

SHAPES = {
    # The published dimensions of Qwen2.5-7B: 7.6 billion weights, 15.2 GB in bfloat16.
    "qwen2.5-7b": Shape(
        {
            **_QWEN2,
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
            "max_position_embeddings": 32768,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
        },
        input_tokens=256,
        output_tokens=32,
        concurrency=(1, 8, 32),
        # The model could take 32768; caches are laid out for the longest request.
        overrides=("engine.args.max_model_len=2048",),
    ),
    "tiny": Shape(
        {
            **_QWEN2,
            "hidden_size": 128,
            "intermediate_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 2048,
            "max_position_embeddings": 512,
            "tie_word_embeddings": True,
            "torch_dtype": "float32",
        },
        input_tokens=32,
        output_tokens=16,
        concurrency=(1, 4),
        requests_per_stream=6,
        # Threads of such a small model would only wait for one another.
        overrides=("engine.env.OMP_NUM_THREADS='1'",),
    ),
}


def missing_requirements(has: Any = None) -> list[str]:
    """Requirements of sweeper whose module cannot be imported here, as pip takes them."""
    found = has or (lambda module: importlib.util.find_spec(module) is not None)
    with (ROOT / "pyproject.toml").open("rb") as file:
        requirements: list[str] = tomllib.load(file)["project"]["dependencies"]
    return [
        requirement
        for requirement in requirements
        if (name := _distribution(requirement)) not in NOT_NEEDED
        and not found(IMPORT_NAMES.get(name, name))
    ]


def _distribution(requirement: str) -> str:
    for place, letter in enumerate(requirement):
        if letter in "<>=!~ ;[":
            return requirement[:place]
    return requirement


def print_missing() -> int:
    """Print what is missing, one word each; fail where the engine itself is."""
    engine = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if engine:
        return _complain(
            f"{sys.executable} has no {' and no '.join(engine)}; name an interpreter that has "
            "both with PYTHON=/path/to/python"
        )
    print(" ".join(missing_requirements()))
    return 0


def _complain(text: str) -> int:
    print(f"gpu_check: {text}", file=sys.stderr)
    return 2


def make_environment(folder: Path) -> int:
    """A virtual environment that sees the packages of this interpreter, whatever kind it is."""
    venv.create(folder, system_site_packages=True, with_pip=True, clear=True)
    # "System" is the interpreter below a virtual environment: this one's packages are named too.
    paths = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = folder / "lib" / version / "site-packages" / "engine_packages.pth"
    target.write_text("\n".join(sorted(paths)) + "\n")
    return 0


def make_model(folder: Path, shape: Shape) -> None:
    """config.json and a byte-level tokenizer that has a text for every id; no weights."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    end = "<|end|>"
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), end]
    words += [f"w{number}" for number in range(shape.config["vocab_size"] - len(words))]
    tokenizer = Tokenizer(models.BPE({word: n for n, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([end])
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"eos_token": end, "pad_token": end}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    ids = {"bos_token_id": None, "eos_token_id": words.index(end)}
    (folder / "config.json").write_text(json.dumps({**shape.config, **ids}, indent=2) + "\n")


def study_overrides(shape: Shape, model: Path, folder: Path, minutes: float) -> list[str]:
    """The study as sweeper's own command line."""
    levels = ",".join(map(str, shape.concurrency))
    return [
        f"study={STUDY}",
        f"studies_dir={folder / 'studies'}",
        f"cache_dir={folder / 'cache'}",
        f"model.path={model}",
        "engine=transformers",
        "engine.options.random_weights=true",
        "space=transformers_batching",
        "workload=short",
        f"workload.input_tokens={shape.input_tokens}",
        f"workload.output_tokens={shape.output_tokens}",
        "load=closed",
        f"load.concurrency=[{levels}]",
        f"load.requests_per_stream={shape.requests_per_stream}",
        "load.min_requests=4",
        "load.warmup_requests_per_stream=1",
        "quality=none",
        "tracking=none",
        "budget=small",
        "budget.launches=3",
        f"budget.minutes={minutes:.2f}",
        *shape.overrides,
    ]


def run_study(overrides: list[str], deadline: float) -> str | None:
    """Run sweeper until a deadline of `time.monotonic`. Returns what went wrong, if anything."""
    command = [sys.executable, "-m", "sweeper", *overrides]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    # In a session of its own, so that nothing it started can outlive the check.
    process = subprocess.Popen(command, env=env, start_new_session=True)
    try:
        code = process.wait(max(1.0, deadline - FINISH_S - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process, deadline)
        return "stopped at its time budget: what was measured until then is shown"
    except KeyboardInterrupt:
        _end(process, time.monotonic() + FINISH_S)
        raise
    return None if code == 0 else f"sweeper ended with exit code {code}"


def _end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Ask for an orderly end first: sweeper then stops its server itself."""
    for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, wanted)
            process.wait(max(1.0, (deadline - time.monotonic()) / 2))
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def read_trials(folder: Path) -> list[dict[str, Any]]:
    """Lines of the study's journal; a torn last one is left out."""
    path = folder / "studies" / STUDY / "trials.jsonl"
    trials = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and "points" in entry:
            trials.append(entry)
    return trials


HEADS = (
    "batching",
    "level",
    "TTFT p50 ms",
    "TPOT p50 ms",
    "tokens/s",
    "TPOT floor ms",
    "floor/TPOT",
    "ceiling tok/s",
    "of ceiling",
)


def table(trials: Iterable[Mapping[str, Any]], shape_name: str, note: str | None = None) -> str:
    """What was measured, as Markdown. Predicted figures stand to the right of measured ones."""
    trials = list(trials)
    lines = [_conditions(trials, shape_name)]
    rows = [row for trial in trials for row in _rows(trial)]
    widths = [max(len(row[n]) for row in [HEADS, *rows]) for n in range(len(HEADS))]
    for number, row in enumerate([HEADS, *rows]):
        lines.append("| " + " | ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) + " |")
        if number == 0:
            lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    lines.append(
        "Weights are random: speed is that of a model of this shape, its output means nothing. "
        "The last four columns are the speed of light (predicted)."
    )
    lines += [_failure(trial) for trial in trials if trial["verdict"] != "OK"]
    return "\n".join([*lines, *([note] if note else [])])


def _conditions(trials: list[Mapping[str, Any]], shape_name: str) -> str:
    manifest = trials[0].get("manifest", {}) if trials else {}
    hardware, engine = manifest.get("hardware", {}), manifest.get("engine", {})
    details = engine.get("details", {})
    told = {
        "device": hardware.get("name"),
        "driver": hardware.get("driver"),
        "torch": details.get("torch"),
        "CUDA": details.get("cuda"),
        "transformers": engine.get("version"),
        "sweeper": manifest.get("client", {}).get("version"),
        "shape": shape_name,
        "date": str(trials[0].get("started_at", ""))[:10] if trials else None,
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value)


def _rows(trial: Mapping[str, Any]) -> list[tuple[str, ...]]:
    batching = str(trial["deployment"].get("flag.batching", "none"))
    rows = []
    for point in trial["points"]:
        metrics, light = point["metrics"], point.get("predicted", {})
        over = light.get("tpot_over_floor")
        rows.append(
            (
                batching,
                _level(point),
                _figure(metrics.get("ttft_p50_ms")),
                _figure(metrics.get("tpot_p50_ms"), 2),
                _figure(metrics.get("output_tokens_per_s")),
                _figure(light.get("tpot_floor_ms"), 2),
                _share(1 / over if over else None),
                _figure(light.get("output_tokens_per_s_ceiling")),
                _share(light.get("output_tokens_per_s_of_ceiling_share")),
            )
        )
    return rows


def _level(point: Mapping[str, Any]) -> str:
    streams = point["load"].get("concurrency")
    name = "1 (single stream)" if streams == 1 else str(streams)
    return name if point["valid"] else f"{name} INVALID"


def _figure(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _failure(trial: Mapping[str, Any]) -> str:
    batching = trial["deployment"].get("flag.batching", "none")
    return f"batching {batching}: {trial['verdict']} in {trial['phase']}: {trial['cause']}"


def run(shape_name: str, folder: Path, budget_s: float) -> int:
    """Model, study, table. Returns 0 if anything valid was measured."""
    deadline = time.monotonic() + budget_s
    shape = SHAPES[shape_name]
    model = folder / f"{shape_name}-random"
    make_model(model, shape)
    # A launch that runs when the minutes are over is still finished: time is kept for it.
    minutes = max(0.5, (budget_s - FINISH_S) / 60 * 0.7)
    problem = run_study(study_overrides(shape, model, folder, minutes), deadline)
    trials = read_trials(folder)
    if not trials:
        return _complain(f"nothing was measured: {problem or 'the study has no trial'}")
    text = table(trials, shape_name, problem)
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}")
    return 0 if any(point["valid"] for trial in trials for point in trial["points"]) else 1


def main(argv: list[str] | None = None) -> int:
    """One of the three parts. Returns the exit code."""
    parser = argparse.ArgumentParser(description="parts of gpu_check.sh")
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("missing")
    parts.add_parser("environment").add_argument("folder", type=Path)
    running = parts.add_parser("run")
    running.add_argument("--shape", choices=sorted(SHAPES), required=True)
    running.add_argument("--folder", type=Path, required=True)
    running.add_argument("--budget-s", type=float, required=True)
    args = parser.parse_args(argv)
    if args.part == "missing":
        return print_missing()
    if args.part == "environment":
        return make_environment(args.folder)
    return run(args.shape, args.folder.resolve(), args.budget_s)


if __name__ == "__main__":
    sys.exit(main())
