"""Overrides in, typed configuration out, for everything that is shipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.config.location import conf_dir, groups, options
from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError
from sweeper.space.parse import parse_space
from tests.yardstick import hydra_s, stretched

TOGETHER = ("engine", "load", "workload")
"""Groups whose options depend on one another: each is composed alone, with what it needs."""

NEEDS = {
    "objective=slo": ["select.slo.ttft_p95_ms=500"],
    "model=custom": ["model.path=org/custom"],
    "load=slo": ["load.goodput.ttft_ms=500"],
    "load=replay": ["workload.kind=trace", "workload.path={trace}"],
    "load=batch": ["engine=vllm_offline"],
    "load=table": ["engine=replay", "engine.table=studies/other"],
    "engine=replay": ["engine.table=studies/other"],
    "engine=vllm_offline": ["load=batch"],
    "engine=openai": ["engine.base_url=http://127.0.0.1:8000"],
    "quality=lm_eval": ["quality.tasks=[mine]"],
    "quantize=gguf": ["quantize.recipes.gguf.path=/models/x.gguf"],
    "quantize=published": ["quantize.recipes.published.path=org/x-AWQ"],
    "prior=studies": ["prior.studies=[studies/other]"],
    "workload=file": ["workload.path={lines}"],
    "workload=trace": ["load=replay", "workload.path={trace}"],
}
APART = [group for group in groups() if group not in TOGETHER]
ROUNDS = max(len(options(group)) for group in APART)


def needs(choice: str, folder: Path) -> list[str]:
    """What an option cannot be without; files are made in a folder."""
    trace, lines = folder / "trace.csv", folder / "prompts.jsonl"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    lines.write_text('{"prompt": "one"}\n')
    return [need.format(trace=trace, lines=lines) for need in NEEDS.get(choice, [])]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_shipped_option_composes_and_its_space_parses(number: int, tmp_path: Path) -> None:
    """Each round takes one option of every group, so that all rounds together take all."""
    chosen = {group: options(group)[number % len(options(group))] for group in APART}
    if chosen["profile"].removesuffix("_cpu").removesuffix("_gpu") in options("engine"):
        chosen["profile"] = "cpu"  # one for an engine, which is composed with that engine below
    choices = [f"{group}={option}" for group, option in chosen.items()]
    cfg = compose(choices + [need for choice in choices for need in needs(choice, tmp_path)])
    assert isinstance(cfg, SweeperConfig)
    space = parse_space(cfg.space)
    assert len(space.parameters) == len(cfg.space.parameters)
    for group in set(chosen) - {"profile", "quantize"}:
        assert getattr(cfg, group).name == chosen[group]


@pytest.mark.parametrize(
    "choice", [f"{group}={option}" for group in TOGETHER for option in options(group)]
)
def test_every_load_workload_and_engine_composes_with_what_it_needs(
    choice: str, tmp_path: Path
) -> None:
    group, option = choice.split("=")
    cfg = compose([choice, *needs(choice, tmp_path)])
    assert getattr(cfg, group).name == option


def test_the_default_is_the_embedded_model_on_a_cpu() -> None:
    cfg = compose([])
    assert (cfg.model.name, cfg.space.name, cfg.budget.launches) == ("smollm2", "cpu", 6)


def test_the_profile_follows_the_device() -> None:
    cfg = compose([], device_kind="cuda")
    assert (cfg.space.name, cfg.load.name, cfg.budget.name) == ("gpu", "closed", "default")


@pytest.mark.parametrize(
    ("overrides", "space"),
    [
        (["hardware=h100_80gb"], "gpu"),
        (["hardware.kind=cuda", "hardware.memory_gib=24"], "gpu"),
        (["profile=gpu"], "gpu"),
        (["hardware=h100_80gb", "profile=cpu"], "cpu"),
        (["hardware=h100_80gb", "space=gpu_full"], "gpu_full"),
    ],
)
def test_what_the_user_says_goes_before_the_device(overrides: list[str], space: str) -> None:
    assert compose(overrides, device_kind="cpu").space.name == space


def test_an_explicit_group_wins_over_the_profile() -> None:
    cfg = compose(["load=closed", "budget.launches=9"], device_kind="cpu")
    assert cfg.load.name == "closed"
    assert cfg.budget.launches == 9
    assert cfg.space.name == "cpu"


def test_a_model_by_path_inherits_nothing_of_the_default_model() -> None:
    cfg = compose(["model.path=some-org/Great-Model-1.5B"])
    model = cfg.model
    assert model.name == "Great-Model-1.5B"
    assert (model.facts, model.checkpoints, model.draft_model, model.licence) == (
        {},
        {},
        None,
        None,
    )


def test_a_path_for_a_named_model_keeps_what_is_known_of_it() -> None:
    cfg = compose(["model=qwen7b", "model.path=/copies/qwen"])
    assert cfg.model.name == "qwen7b"
    assert cfg.model.facts["vocab_size"] == 152064


def test_a_models_name_can_be_given_with_its_path() -> None:
    assert compose(["model.path=/a/b", "model.name=mine"]).model.name == "mine"


def test_published_checkpoints_become_choices_of_quantization() -> None:
    for model, expected in (("qwen7b", ["awq", "gptq"]), ("llama3_8b", [])):
        cfg = compose([f"model={model}", "space=gpu"])
        assert cfg.space.parameters["quantization"]["choices"][2:] == expected


@pytest.mark.parametrize("prefix", ["", "+", "++"])
def test_free_keys_need_no_plus_sign(prefix: str) -> None:
    cfg = compose([f"{prefix}engine.args.some_flag=1", f"{prefix}engine.env.OMP_NUM_THREADS=2"])
    assert cfg.engine.args["some_flag"] == 1
    assert cfg.engine.env["OMP_NUM_THREADS"] == "2"


def test_a_group_can_be_a_file(tmp_path: Path) -> None:
    space = tmp_path / "mine.yaml"
    space.write_text("parameters:\n  flag.stream_interval: {choices: [1, 4]}\n")
    load = tmp_path / "hard.yml"
    load.write_text("concurrency: [2, 64]\n")
    cfg = compose([f"space={space}", f"load={load}", "load.requests_per_stream=3"])
    assert (cfg.space.name, list(cfg.space.parameters)) == ("mine", ["flag.stream_interval"])
    assert cfg.space.fixed == {}  # nothing of the shipped space sticks
    assert (cfg.load.concurrency, cfg.load.requests_per_stream) == ([2, 64], 3)


def test_a_file_may_repeat_the_groups_name(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("workload:\n  input_tokens: 77\n")
    assert compose([f"workload={path}"]).workload.input_tokens == 77


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("paramters: {}", "did you mean space.parameters"),
        ("a: [1\nb: 2", "line 2"),
        ("- 1", "a list"),
        ("", "nothing"),
        ("seeds: 5", "takes a list"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        compose([f"space={path}"])
    assert str(path) in caught.value.message
    assert said in str(caught.value)


def test_composing_twice_leaves_no_trace_of_the_first() -> None:
    compose(["model=qwen7b", "engine.args.x=1", "space.parameters.block_size=[16,32]"])
    cfg = compose([])
    assert cfg.engine.args.get("x") is None
    assert cfg.space.parameters["block_size"] == {"choices": ["default", 32, 64]}


def test_composition_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, time; begun = time.perf_counter();"
        "from sweeper.config.compose import compose;"
        "heavy = {'torch', 'vllm', 'optuna', 'mlflow', 'pandas', 'hydra'} & set(sys.modules);"
        "compose(['model=qwen7b', 'budget.launches=3']);"
        "print(sorted(heavy), time.perf_counter() - begun)"
    )
    seen = []
    for _ in range(5):  # the machine may be busy: each beside a yardstick, and the best counts
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        heavy, seconds = done.stdout.rsplit(" ", 1)
        assert heavy == "[]"
        seen.append((float(seconds), stretched(1.0, hydra_s())))
        if seen[-1][0] < seen[-1][1]:
            return
    pytest.fail(f"seconds and limits: {seen}")


def test_the_packaged_folder_is_complete() -> None:
    assert (conf_dir() / "config.yaml").is_file()
    assert {"model", "hardware", "engine", "space", "workload", "load", "quality"} <= set(groups())
