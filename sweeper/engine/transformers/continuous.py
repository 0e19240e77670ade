"""Continuous batching, as the installed library offers it: its manager runs the model.

The manager has one thread that steps the model and one queue of results; a second thread here takes
results from that queue and posts them on the board.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import threading
import traceback
from pathlib import Path
from typing import Any

from sweeper.engine.transformers.deployment import Deployment, RefusedError
from sweeper.engine.transformers.jobs import Board, Job, News
from sweeper.engine.transformers.loading import LoadedModel
from sweeper.engine.transformers.scoring import Scores, prompt_logprobs

PUMP_S = 0.1
PAGED = "paged|"
DEFAULT_PAGE_TOKENS = 256
MEMORY_SHARE = {"cpu": 0.25, "cuda": 0.5}
"""Of the free memory for the KV cache. On a computer the library would take nine tenths; where more
than this is needed on a GPU it decides itself."""
CPU_STEP_TOKENS = 512
"""Tokens of a step on a CPU: the attention mask is as wide as the whole cache."""
NEEDED = ("add_request", "cancel_request", "get_result", "is_running", "start")


def cache_config(loaded: LoadedModel, deployment: Deployment) -> Any:
    """The library's settings for a deployment.

    Raises:
        RefusedError: the installed version has no continuous batching, or not all that was asked.
    """
    import transformers

    kind = getattr(transformers, "ContinuousBatchingConfig", None)
    if kind is None or not hasattr(loaded.model, "init_continuous_batching"):
        raise RefusedError(
            f"transformers {transformers.__version__} lacks ContinuousBatchingConfig, which "
            "batching=continuous needs"
        )
    page = deployment.block_size or DEFAULT_PAGE_TOKENS
    wanted: dict[str, Any] = {
        "page_size": page,
        "max_requests_per_batch": deployment.max_num_seqs,
        # An attention that was asked for by name is the one to be measured.
        "auto_switch_to_flash": deployment.attn_implementation is None and _has_flash(),
        "max_batch_tokens": deployment.max_num_batched_tokens,
        "max_memory_percent": deployment.gpu_memory_utilization,
    }
    if deployment.enable_prefix_caching is not None:
        wanted["allow_block_sharing"] = deployment.enable_prefix_caching
    # More pages than all requests together can fill would only widen the attention mask.
    needed, fitting = _pages(loaded, deployment, page)
    if loaded.device == "cpu":
        wanted["num_blocks"] = min(needed, fitting)
        wanted["max_batch_tokens"] = deployment.max_num_batched_tokens or CPU_STEP_TOKENS
        wanted["max_memory_percent"] = deployment.gpu_memory_utilization or 0.9
    elif needed <= fitting:
        wanted["num_blocks"] = needed
    known = set(kind.__dataclass_fields__)
    if missing := sorted(set(wanted) - known):
        raise RefusedError(
            f"transformers {transformers.__version__} has no {', '.join(missing)} in its "
            "continuous batching, which batching=continuous needs"
        )
    return kind(**wanted)


def _has_flash() -> bool:
    """Whether a flash attention is installed; the library would also fetch one from its hub."""
    return any(importlib.util.find_spec(name) for name in ("flash_attn", "flash_attn_interface"))


def _pages(loaded: LoadedModel, deployment: Deployment, page_tokens: int) -> tuple[int, int]:
    """Pages that the longest requests could fill, and pages that a share of free memory holds."""
    config = loaded.model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    value_bytes = int(loaded.model.dtype.itemsize)
    page_bytes = int(2 * config.num_hidden_layers * heads * width * value_bytes * page_tokens)
    share = deployment.gpu_memory_utilization or MEMORY_SHARE[loaded.device]
    needed = -(-loaded.max_model_len // page_tokens) * deployment.max_num_seqs
    return needed, max(1, int(_free_bytes(loaded.device) * share) // page_bytes)


def _free_bytes(device: str) -> int:
    """Free memory of the device; 4 GiB where the system does not tell."""
    if device == "cuda":
        import torch

        return int(torch.cuda.mem_get_info()[0])
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 4 * 1024**3


def _plain(value: Any) -> Any:
    return any(value) if isinstance(value, tuple) else value


class ContinuousWorker:
    """Hands requests to the library's manager and its results to the board.

    Args:
        loaded: the model; its attention may be exchanged for one that suits.
        deployment: limits of the batch and of the cache.
        board: told of all progress.

    Raises:
        RefusedError: see `cache_config`; or the model's attention cannot be used.
    """

    def __init__(self, loaded: LoadedModel, deployment: Deployment, board: Board) -> None:
        import transformers

        config = cache_config(loaded, deployment)
        greedy = transformers.GenerationConfig(
            do_sample=False,
            eos_token_id=list(loaded.eos_ids) or -1,
            pad_token_id=loaded.pad_id,
            max_new_tokens=loaded.max_model_len,
        )
        try:
            self._manager = loaded.model.init_continuous_batching(
                generation_config=greedy, continuous_batching_config=config
            )
        except ValueError as problem:
            raise RefusedError(f"batching=continuous: {problem}") from problem
        if missing := [name for name in NEEDED if not hasattr(self._manager, name)]:
            raise RefusedError(
                f"transformers {transformers.__version__} has no {', '.join(missing)} in its "
                "continuous batching, which batching=continuous needs"
            )
        if hasattr(self._manager, "warmup"):
            # Makes the cache now: what does not fit is then found before the server listens.
            self._manager.warmup()
        self._loaded = loaded
        self._board = board
        self._jobs: dict[str, Job] = {}
        self._next_id = 0
        self._scoring = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._manager.start()
        threading.Thread(target=self._pump, daemon=True, name="results").start()

    def refusal(self, job: Job) -> str | None:
        decoding = job.decoding
        if decoding.samples or decoding.beams > 1:
            return "batching=continuous decodes greedily: temperature must be 0, without beams"
        if decoding.min_tokens and not decoding.ignore_eos:
            return (
                "batching=continuous cannot mask the end of sequence: min_tokens needs ignore_eos"
            )
        return None

    def submit(self, job: Job) -> None:
        name = f"job-{self._next_id}"
        self._next_id += 1
        self._jobs[name] = job
        stops = -1 if job.decoding.ignore_eos or not self._loaded.eos_ids else self._loaded.eos_ids
        self._manager.add_request(
            list(job.prompt),
            request_id=name,
            max_new_tokens=job.decoding.max_tokens,
            streaming=True,
            eos_token_id=stops if stops == -1 else list(self._loaded.eos_ids),
        )

    def cancel(self, job: Job) -> None:
        job.cancelled = True
        for name, other in self._jobs.items():
            if other is job:
                self._manager.cancel_request(name)
                del self._jobs[name]
                return

    async def score(self, ids: list[int], top: int) -> Scores:
        async with self._scoring:
            return await asyncio.to_thread(self._score, ids, top)

    def effective(self) -> dict[str, Any]:
        """The manager's settings once it has resolved them; the cache's size when it is made."""
        config = self._manager.continuous_batching_config
        known = {
            "max_num_seqs": config.max_requests_per_batch,
            "max_num_batched_tokens": config.max_batch_tokens,
            "block_size": config.page_size,
            "num_kv_blocks": config.num_blocks,
            "enable_prefix_caching": config.allow_block_sharing,
            "cuda_graphs": _plain(config.use_cuda_graph),
            "async_batching": config.use_async_batching,
        }
        if self._loaded.device != "cpu":
            known["gpu_memory_utilization"] = config.max_memory_percent
        return {name: value for name, value in known.items() if value is not None}

    def _score(self, ids: list[int], top: int) -> Scores:
        # Where the version can, the loop is held meanwhile: both would run the model at once.
        pause = getattr(self._manager, "pause", contextlib.nullcontext)
        model = self._loaded.model
        attention = str(model.config._attn_implementation)
        with pause():
            try:
                # A paged attention reads the manager's cache, which a plain forward has not.
                if attention != (plain := attention.removeprefix(PAGED)):
                    model.set_attn_implementation(plain)
                return prompt_logprobs(model, ids, top, self._loaded.tokenizer)
            finally:
                if attention.startswith(PAGED):
                    model.set_attn_implementation(attention)

    def _pump(self) -> None:
        """Take results until the manager has died, which it does only by an error."""
        assert self._loop is not None
        message = "continuous batching has ended"
        try:
            while self._manager.is_running():
                result = self._manager.get_result(timeout=PUMP_S)
                if result is not None:
                    self._loop.call_soon_threadsafe(self._took, result)
        except Exception as problem:  # told to every waiting client, and the server ends
            traceback.print_exc()
            message = f"{type(problem).__name__}: {problem}"
        self._loop.call_soon_threadsafe(self._board.break_down, message)

    def _took(self, result: Any) -> None:
        job = self._jobs.get(result.request_id)
        if job is None:
            return
        if result.error is not None:
            self._jobs.pop(result.request_id)
            self._board.fail([job], str(result.error))
            return
        self._board.started([job])
        new = list(result.generated_tokens[len(job.choices[0].written) :])
        reason = None
        if result.is_finished():
            self._jobs.pop(result.request_id)
            ended = bool(new) and not job.decoding.ignore_eos and new[-1] in self._loaded.eos_ids
            reason = "stop" if ended else "length"
        if new or reason is not None:
            self._board.post([News(job, new, reason)])
