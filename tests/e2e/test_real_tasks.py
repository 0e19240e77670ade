"""lm-eval's tasks on real servers: through the adapter, and by lm-eval's own command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig, ModelConfig, QualityConfig, SweeperConfig
from sweeper.engine.protocol import LaunchRequest
from sweeper.engine.registry import create
from sweeper.load.address import ServerAddress
from sweeper.models.cache import cache_dir
from sweeper.models.resolve import resolve
from sweeper.quality import tasks
from sweeper.quality.asking import QualityUnavailableError
from sweeper.toolchain.environment import script_python

pytestmark = pytest.mark.e2e

FOLDER = Path(__file__).parent / "tasks"
CACHE = cache_dir(SweeperConfig())
MAX_MODEL_LEN = 512
WRITTEN = """
task: written
tag: both
include: everyday.yaml
output_type: generate_until
doc_to_choice: null
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["."], max_gen_toks: 8}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
Judge = Callable[..., tasks.Evaluation]


@pytest.fixture(scope="module")
def model() -> str:
    return resolve(ModelConfig(), CACHE, progress=lambda line: None).path


@pytest.fixture
def judge(model: str, tmp_path: Path) -> Judge:
    def run(server: ServerAddress, *names: str, **settings: Any) -> tasks.Evaluation:
        config = QualityConfig(
            kind="lm_eval", tasks=list(names), tasks_path=str(FOLDER), tasks_timeout_s=600.0
        )
        for name, value in settings.items():
            setattr(config, name, value)
        return tasks.evaluate(
            server, config, tasks.Tokenizer(model), tmp_path / "lm_eval.log", lambda line: None
        )

    return run


def served(
    engine: EngineConfig, parameters: dict[str, Any], model: str, folder: Path
) -> Iterator[ServerAddress]:
    request = LaunchRequest(
        model_path=model,
        parameters=parameters,
        run_dir=folder,
        served_name="judged",
        start_timeout_s=600,
        token="real-tasks",
        dtype="float32",
    )
    with create(engine, cache_dir=CACHE).serve(request) as server:
        yield ServerAddress.of(server)


@pytest.fixture(scope="module")
def vllm(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAddress]:
    engine = EngineConfig(args={"gpu_memory_utilization": 0.15})
    parameters = {"enforce_eager": True, "max_model_len": MAX_MODEL_LEN}
    yield from served(engine, parameters, model, tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def mock(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAddress]:
    engine = EngineConfig(name="mock", options={"vocab_size": 49152})
    yield from served(engine, {}, model, tmp_path_factory.mktemp("mock"))


def test_equal_to_lm_evals_own_command_line(
    vllm: ServerAddress, judge: Judge, model: str, tmp_path: Path
) -> None:
    ours = judge(vllm, "everyday").scores["everyday"]
    theirs = _command_line(vllm, model, tmp_path)
    assert (ours.metric, ours.n) == ("acc_norm", 50)
    assert ours.value == pytest.approx(theirs["acc_norm,none"], abs=0.021)  # one question
    assert ours.se == pytest.approx(theirs["acc_norm_stderr,none"], abs=0.01)
    # Of four answers one is right; a model that knows something finds more.
    assert ours.value > 0.25 + 3 * ours.se


def _command_line(server: ServerAddress, model: str, tmp_path: Path) -> dict[str, Any]:
    python = script_python(
        tasks.WORKER, log_path=tmp_path / "environment.log", timeout_s=600, begin=lambda: None
    )
    assert isinstance(python, str), python
    arguments = {
        "model": server.model,
        "base_url": server.url("/v1/completions"),
        "tokenizer": model,
        "tokenizer_backend": "huggingface",
        "num_concurrent": tasks.CONCURRENCY,
        "max_length": MAX_MODEL_LEN,
    }
    subprocess.run(
        [
            *(python, "-m", "lm_eval", "run", "--model", "local-completions"),
            *("--model_args", ",".join(f"{name}={value}" for name, value in arguments.items())),
            *("--tasks", "everyday", "--include_path", "."),
            *("--output_path", str(tmp_path / "out")),
        ],
        cwd=FOLDER,
        env={**os.environ, "OPENAI_API_KEY": server.api_key or "", "HF_HUB_OFFLINE": "1"},
        check=True,
        capture_output=True,
        timeout=300,
    )
    (path,) = (tmp_path / "out").rglob("results_*.json")
    results: dict[str, Any] = json.loads(path.read_text())["results"]["everyday"]
    return results


def test_what_lm_eval_can_be_asked(mock: ServerAddress, judge: Judge, tmp_path: Path) -> None:
    """Tasks that write, groups, and a limit; on the mock, whose answers mean nothing."""
    for name in ("everyday.yaml", "everyday.jsonl"):
        text = (FOLDER / name).read_text().replace("task: everyday", "task: everyday\ntag: both")
        (tmp_path / name).write_text(text)
    (tmp_path / "written.yaml").write_text(WRITTEN)
    (tmp_path / "group.yaml").write_text(
        "group: grouped\ntask: [everyday]\n"
        "aggregate_metric_list: [{metric: acc, weight_by_size: true}]\n"
    )
    names = ("written", "grouped", "both")
    found = judge(mock, *names, tasks_path=str(tmp_path), task_limit=3)
    metrics = {name: score.metric for name, score in found.scores.items()}
    assert metrics == {"written": "exact_match", "grouped": "acc", "both": "mean score"}
    assert [score.n for score in found.scores.values()] == [3, 3, 6]
    assert list(found.scores["both"].parts) == ["everyday", "written"]
    assert all(score.se > 0 and score.answers for score in found.scores.values())
    assert 16 < found.longest_tokens < 60


def test_a_server_that_refuses_is_quoted(mock: ServerAddress, judge: Judge) -> None:
    with pytest.raises(QualityUnavailableError, match="HTTP 401"):
        judge(ServerAddress(mock.base_url, mock.model, "wrong"), "everyday")
