"""Flags that the engine does not know end a study before it begins; choices are left out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import (
    EngineConfig,
    ModelConfig,
    RecipeConfig,
    SpaceConfig,
    SweeperConfig,
)
from sweeper.engine.flag_check import AskedFlag, FlagCheck, Problem, Refusal, Rename
from sweeper.engine.protocol import Engine
from sweeper.engine.registry import create
from sweeper.errors import ConfigError
from sweeper.models.read import facts_from_config
from sweeper.space.parse import parse_space
from sweeper.verbs.flags_checked import asked_flags, check_flags, renames
from tests.engine.vllm import stub
from tests.verbs.conftest import MOCK, Run

KNOWN = [
    "--max-num-seqs N",
    "--speculative-config JSON",
    "--quantization {awq,fp8_per_tensor}",
    "--enforce-eager, --no-enforce-eager",
]
KNOWN_FLAGS = f"engine.options.known_flags={json.dumps(KNOWN)}"


def config(
    engine: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **space: Any
) -> SweeperConfig:
    cfg = SweeperConfig()
    cfg.engine = EngineConfig(name="vllm", **(engine or {}))
    cfg.model = ModelConfig(name="m", **(model or {}))
    cfg.space = SpaceConfig(name="s", **space)
    return cfg


def asked(cfg: SweeperConfig) -> list[tuple[str, str, Any, bool]]:
    return [
        (one.key, one.name, one.value, one.optional)
        for one in asked_flags(cfg, parse_space(cfg.space))
    ]


def test_everything_that_is_sent_is_asked_with_its_key() -> None:
    cfg = config(
        engine={"args": {"swap-space": 4, "seed": None}},
        model={"dtype": "float16"},
        fixed={"enforce_eager": True, "env.X": "1", "quantization": "none"},
    )
    assert asked(cfg) == [
        ("model.dtype", "dtype", "float16", False),
        ("engine.args.swap-space", "swap_space", 4, False),
        ("space.fixed.enforce_eager", "enforce_eager", True, False),
    ]


def test_of_a_recipe_the_engine_is_asked_for_what_it_must_know() -> None:
    cfg = config(
        model={"checkpoints": {"awq": "/models/awq"}},
        parameters={
            "quantization": ["none", "awq", "w8a8", "mine", "file", "bought"],
            "quantize.calibration_samples": {"choices": [64], "when": {"quantization": ["w8a8"]}},
        },
    )
    cfg.quantize.recipes = {
        "w8a8": RecipeConfig("llmcompressor", "W8A8"),
        "mine": RecipeConfig("engine", "fp8_per_block"),
        "file": RecipeConfig("published", path="/models/x.gguf"),
        "bought": RecipeConfig("published", path="org/x"),
    }
    words = [(key, value) for key, _, value, optional in asked(cfg) if optional]
    assert words == [
        ("quantize.recipes.w8a8", "compressed-tensors"),
        ("quantize.recipes.mine", "fp8_per_block"),
        ("quantize.recipes.file", "gguf"),
    ]


def test_choices_are_asked_but_for_the_engines_default_and_checkpoints() -> None:
    cfg = config(
        model={"checkpoints": {"awq": "/models/awq"}},
        parameters={
            "quantization": {"choices": ["none", "fp8", "awq"]},
            "gpu_memory_utilization": {"choices": [0.8, 0.92], "default": 0.92},
            "flag.performance_mode": {"choices": ["default", "throughput"]},
            "speculative": {"choices": ["none", "ngram"]},
            "num_speculative_tokens": {"choices": [2, 4], "when": {"speculative": ["ngram"]}},
            "env.VLLM_X": {"choices": ["default", "1"]},
            "max_num_seqs": {"low": 8, "high": 64, "default": 8},
        },
    )
    place = "space.parameters."
    assert asked(cfg) == [
        (f"{place}quantization", "quantization", "fp8", True),
        (f"{place}gpu_memory_utilization", "gpu_memory_utilization", 0.8, True),
        (f"{place}flag.performance_mode", "performance_mode", "throughput", True),
        (f"{place}speculative", "speculative", "ngram", True),
        (f"{place}max_num_seqs", "max_num_seqs", 64, False),
        (f"{place}num_speculative_tokens", "num_speculative_tokens", 2, True),
        (f"{place}num_speculative_tokens", "num_speculative_tokens", 4, True),
    ]


class Stub:
    """An engine that refuses what it is told to."""

    def __init__(self, refuses: Callable[[AskedFlag], Problem | None]) -> None:
        self._refuses = refuses

    def check_flags(self, asked: Sequence[AskedFlag], progress: object) -> FlagCheck:
        found = ((one, self._refuses(one)) for one in asked)
        return FlagCheck(tuple(Refusal(one, problem) for one, problem in found if problem))


def checked(cfg: SweeperConfig, refuses: Callable[[AskedFlag], Problem | None]) -> FlagCheck:
    engine: Engine = Stub(refuses)  # type: ignore[assignment]
    return check_flags(cfg, parse_space(cfg.space), engine, None)


def test_a_choice_less_is_no_error() -> None:
    cfg = config(parameters={"quantization": {"choices": ["none", "fp8"]}})
    found = checked(cfg, lambda one: Problem("no such thing", "take another"))
    assert [one.asked.value for one in found.refusals] == ["fp8"]


def test_a_parameter_without_any_value_left_is_an_error() -> None:
    cfg = config(
        parameters={
            "speculative": {"choices": ["none", "ngram"]},
            "num_speculative_tokens": {"choices": [2, 4], "when": {"speculative": ["ngram"]}},
        }
    )
    with pytest.raises(ConfigError, match="num_speculative_tokens=2"):
        checked(
            cfg,
            lambda one: Problem("no", "none") if one.name == "num_speculative_tokens" else None,
        )


def test_one_fault_has_its_own_remedy() -> None:
    cfg = config(engine={"args": {"swap_space": 4}})
    with pytest.raises(ConfigError) as caught:
        checked(cfg, lambda one: Problem("was removed", "leave it out", unknown=True))
    assert caught.value.message == "engine.args.swap_space: was removed"
    assert caught.value.remedy == "leave it out"


def test_online_renames_are_not_for_quantized_models() -> None:
    found = [
        Rename("quantization", "fp8", "fp8_per_tensor", online=True),
        Rename("kv_cache_dtype", "fp8_e4m3", "fp8"),
    ]
    kept = {"kv_cache_dtype": {"fp8_e4m3": "fp8"}}
    assert renames(found, None) == {"quantization": {"fp8": "fp8_per_tensor"}, **kept}
    plain = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "max_position_embeddings": 128,
    }
    assert renames(found, facts_from_config(plain)) == renames(found, None)
    quantized = {**plain, "quantization_config": {"quant_method": "fp8"}}
    assert renames(found, facts_from_config(quantized)) == kept


def test_all_faults_are_named_before_anything_is_started(sweeper: Run, tmp_path: Path) -> None:
    done = sweeper(
        *MOCK,
        KNOWN_FLAGS,
        "study=s",
        "engine.args.swap_space=4",
        "engine.args.max_num_seq=8",
        "engine.args.enforce_eager=maybe",
        "space.parameters.flag.task=[default,generate]",
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("remedy:") == 1
    for key in ("args.swap_space", "args.max_num_seq", "args.enforce_eager", "flag.task"):
        assert key in done.stderr
    assert "nothing replaces it" in done.stderr
    assert "did you mean max_num_seqs" in done.stderr
    assert "--runner" in done.stderr
    assert not (tmp_path / "studies").exists()


def test_a_study_goes_on_without_a_choice_and_under_another_name(
    sweeper: Run, tmp_path: Path
) -> None:
    (tmp_path / "words.yaml").write_text(
        "name: words\nparameters:\n  quantization: {choices: [none, fp8, bogus]}\n"
    )
    given = ["space=words.yaml", KNOWN_FLAGS, "study=s", "sampler=grid"]
    done = sweeper(*MOCK, *given, "budget.launches=2", "load.concurrency=[1]")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout + done.stderr
    assert "quantization=bogus is left out: the mock has no quantization=bogus" in shown
    assert "quantization=fp8 is called fp8_per_tensor" in shown
    folder = tmp_path / "studies" / "s"
    trials = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    asked = [trial["deployment"].get("quantization") for trial in trials]
    assert "fp8" in asked
    assert "bogus" not in asked
    for trial in trials:
        assert trial["verdict"] == "OK"
        assert trial["manifest"]["renamed"] == {"quantization": {"fp8": "fp8_per_tensor"}}
    number = trials[asked.index("fp8")]["number"]
    (sent,) = folder.glob(f"trials/*{number}*/mock.json")
    assert json.loads(sent.read_text())["parameters"]["quantization"] == "fp8_per_tensor"


def test_flags_of_the_transformers_engine_are_known_without_asking(sweeper: Run) -> None:
    done = sweeper(
        "engine=transformers",
        "space=none",
        "engine.args.tensor_parallel_size=2",
        "engine.args.batching=statik",
        "engine.args.max_num_seqs=0",
    )
    assert done.returncode == 2, done.stdout + done.stderr
    for word in ("has no flag --tensor-parallel-size", "batching=statik", "whole number from 1"):
        assert word in done.stderr


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with a vLLM that only prints its help."""
    found = stub.bare_python(tmp_path_factory.mktemp("engine"))
    stub.install(found)
    return found


def test_vllm_is_asked_once_by_whole_commands(sweeper: Run, tmp_path: Path) -> None:
    python = stub.bare_python(tmp_path / "engine")
    notes = stub.install(python)
    given = [
        f"engine.python={python}",
        f"cache_dir={tmp_path / 'cache'}",
        "hardware.kind=cpu",
        "engine.args.swap_space=4",
        "space.parameters.quantization=[none,marlin]",
    ]
    for _ in range(2):
        done = sweeper(*given)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "engine.args.swap_space: --swap-space was removed in vLLM 0.18" in done.stderr
        assert "marlin" not in done.stderr.rpartition("sweeper:")[2]
    assert notes.read_text().splitlines() == ["--help=all"]


def test_a_warm_check_costs_next_to_nothing(python: Path, tmp_path: Path) -> None:
    cfg = config(
        engine={"python": str(python), "args": {"swap_space": 4}},
        parameters={"max_num_seqs": {"choices": [8, 16, 32, 64]}},
    )
    engine = create(cfg.engine, cache_dir=tmp_path)
    space = parse_space(cfg.space)
    said: list[str] = []
    with pytest.raises(ConfigError):
        check_flags(cfg, space, engine, said.append)
    assert len(said) == 1
    spent = []
    for _ in range(5):
        started = time.perf_counter()
        with pytest.raises(ConfigError, match="swap-space"):
            check_flags(cfg, space, engine, None)
        spent.append(time.perf_counter() - started)
    assert min(spent) < 0.05


def test_the_class_of_batches_takes_no_flags_of_the_server(python: Path, tmp_path: Path) -> None:
    args = {"api_server_count": 2, "max_num_seqs": 4, "no_disable_log_stats": True}
    cfg = config(engine={"python": str(python), "args": args})
    cfg.engine.name = "vllm_offline"
    engine = create(cfg.engine, cache_dir=tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_flags(cfg, parse_space(cfg.space), engine, lambda text: None)
    assert "the LLM class of vLLM 0.32.0 has no flag --api-server-count" in caught.value.message
    assert "--no-disable-log-stats" in caught.value.message
    assert "max_num_seqs" not in caught.value.message


def test_the_check_can_be_left_out(python: Path, tmp_path: Path) -> None:
    options = {"check_flags": False}
    cfg = config(engine={"python": str(python), "args": {"quux": 4}, "options": options})
    engine = create(cfg.engine, cache_dir=tmp_path)
    assert check_flags(cfg, parse_space(cfg.space), engine, lambda text: None) == FlagCheck()


def test_help_that_fails_leaves_one_note_and_no_refusal(tmp_path: Path) -> None:
    python = stub.bare_python(tmp_path / "engine")
    stub.install(python, body="raise SystemExit('libcudart.so.12: cannot open shared object')")
    cfg = config(engine={"python": str(python), "args": {"quux": 4}})
    engine = create(cfg.engine, cache_dir=tmp_path / "cache")
    found = check_flags(cfg, parse_space(cfg.space), engine, lambda text: None)
    assert found.refusals == ()
    (note,) = found.notes
    assert "not checked" in note
