"""A checkpoint made here and a damaged copy of it, both served by the real engine and judged."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.models.cache import cache_dir
from sweeper.models.resolve import resolve
from sweeper.quantize.job import Checkpoint, CheckpointJob
from sweeper.quantize.make import make
from sweeper.quantize.recipe import resolve_recipe
from tests.e2e.conftest import journal

pytestmark = pytest.mark.e2e

Sweep = Callable[..., subprocess.CompletedProcess[str]]

LAYERS = 2
FIRST_LAYERS = """
    import json, shutil, sys
    from pathlib import Path
    from safetensors.torch import load_file, save_file

    source, target, layers = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    shutil.copytree(source, target)
    (target / "sweeper_manifest.json").unlink()
    config = json.loads((target / "config.json").read_text())
    config["num_hidden_layers"] = layers
    (target / "config.json").write_text(json.dumps(config))
    weights = load_file(target / "model.safetensors")
    gone = tuple(f"model.layers.{n}." for n in range(layers, 30))
    kept = {name: value for name, value in weights.items() if not name.startswith(gone)}
    save_file(kept, target / "model.safetensors", metadata={"format": "pt"})
"""
SCRAMBLED = """
    import sys
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(sys.argv[1])
    torch.manual_seed(0)
    scales = [name for name in weights if name.endswith("weight_scale")]
    assert scales
    for name in scales:
        scale = weights[name].flatten()
        weights[name] = scale[torch.randperm(len(scale))].reshape(weights[name].shape)
    save_file(weights, sys.argv[1], metadata={"format": "pt"})
"""
RECIPE = [
    "quantize=w8a8",
    "quantize.recipes.w8a8.calibration_samples=8",
    "quantize.recipes.w8a8.calibration_tokens=128",
]
SPACE = """
name: checkpoints
fixed: {enforce_eager: true, max_model_len: 512}
parameters:
  quantization: {choices: [none, damaged]}
seeds:
  - {quantization: w8a8}
  - {quantization: damaged}
"""


def python(script: str, *arguments: Path | str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    subprocess.run(command, check=True)


@pytest.fixture
def shallow(tmp_path: Path) -> Path:
    """The first layers of SmolLM2: real weights, whose scales differ, and quick to quantize."""
    cfg = compose([])
    whole = resolve(cfg.model, cache_dir(cfg), progress=print)
    folder = tmp_path / "smollm2-shallow"
    python(FIRST_LAYERS, whole.path, folder, str(LAYERS))
    return folder


def made(model: Path, tmp_path: Path) -> Checkpoint:
    """The checkpoint that a study with these settings would make."""
    cfg = compose([f"model.path={model}", *RECIPE])
    found = resolve(cfg.model, cache_dir(cfg), progress=print)
    job = CheckpointJob(
        recipe=resolve_recipe("w8a8", cfg.quantize.recipes["w8a8"], {}, found.facts),
        model_path=found.path,
        model_digest=found.digest,
        cache_dir=cache_dir(cfg),
        timeout_s=900,
    )
    checkpoint = make(job, log_path=tmp_path / "quantize.log", tell=print)
    assert isinstance(checkpoint, Checkpoint), checkpoint
    return checkpoint


def test_a_damaged_checkpoint_is_fast_and_never_wins(
    tmp_path: Path, shallow: Path, sweep: Sweep
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(made(shallow, tmp_path).path, damaged)
    python(SCRAMBLED, damaged / "model.safetensors")
    (tmp_path / "space.yaml").write_text(SPACE)
    done = sweep(
        f"model.path={shallow}",
        f"model.checkpoints.damaged={damaged}",
        *RECIPE,
        "study=checkpoints",
        "space=space.yaml",
        "quality=agreement_quick",
        "load.concurrency=[1,4]",
        "load.requests_per_stream=4",
        "engine.args.gpu_memory_utilization=0.15",
        "budget.launches=3",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    study = tmp_path / "studies" / "checkpoints"
    baseline, whole, broken = journal(study)

    assert [baseline["verdict"], whole["verdict"]] == ["OK", "OK"], whole["cause"]
    assert whole["manifest"]["made"]["reused"], "the study asked for another key"
    assert whole["manifest"]["checkpoint_bytes"] < baseline["manifest"]["checkpoint_bytes"]
    assert whole["quality"]["loglik_change_nats"] > -0.2

    assert (broken["verdict"], broken["phase"]) == ("QUALITY_FAIL", "quality"), broken["cause"]
    assert "log-likelihood" in broken["cause"]
    assert any(point["valid"] for point in broken["points"]), "it answers as if nothing were"
    rates = [trial["points"][-1]["metrics"]["output_tokens_per_s"] for trial in (whole, broken)]
    assert rates[1] > 0.5 * rates[0], "it is as fast as the whole one"
    assert "QUALITY_FAIL" in (study / "report.html").read_text()
    assert "quantization=damaged" not in done.stdout.split("Pareto front")[1].split("trade")[0]
