# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#     "lm-eval[api]==0.4.13",
#     "transformers==5.24.0",
#     "sentencepiece>=0.2",
#     "protobuf>=5",
# ]
# ///
"""Worker: lm-eval tasks against a server that runs. An environment of its own, without torch.

Request: ``base_url`` (without /v1; None asks nobody and only fetches the tasks' data),
``served_name``, ``tokenizer`` (folder or hub id), ``revision``, ``trust_remote_code``, ``tasks``
(names), ``tasks_path`` (folder with task files, or None), ``limit`` (questions a task, or None),
``few_shot`` (or None), ``concurrency``, ``request_timeout_s``, ``seed``. The server's key, if it
asks for one, is in the environment as OPENAI_API_KEY.

Result: ``{"tasks": {name: ...}, "longest_tokens", "versions": {distribution: version}}``. A group
or a tag gives one score under its own name; for what a score holds see `lm_eval_scores.summary`.
``longest_tokens`` is the room that the longest request took, its answer included.

Nothing is kept: no cache of answers, no upload, no tracking.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import logging
import math
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import worker_protocol

sys.path.append(str(Path(__file__).resolve().parent / "side"))
import lm_eval_scores

DEFAULT_MAX_LENGTH = 2048
DEFAULT_ANSWER_TOKENS = 256
TRIES = 2
"""A kept-alive connection may close just when it is used; a server that hangs is not waited for
three times."""
MODELS_TIMEOUT_S = 60.0
TELL_EVERY_S = 1.0
BOOTSTRAPS = 1000
"""Draws for the error of a metric that is no mean: 2 % of it, and seconds instead of minutes."""
# A data set that is not here, and no way to it. By name: they come from four libraries.
NO_NETWORK = (
    "ConnectionError",
    "ConnectTimeout",
    "ConnectError",
    "ReadTimeout",
    "OfflineModeIsEnabled",
    "LocalEntryNotFoundError",
    "MaxRetryError",
    "ProxyError",
    "SSLError",
)


def main(worker: worker_protocol.Worker) -> dict[str, Any]:
    """Ask the server all tasks, one after the other."""
    request = worker.request
    _quiet()
    worker.phase("load")
    ears = Ears(worker)
    names: list[str] = request["tasks"]
    manager = _tasks(names, request["tasks_path"], request["tokenizer"])
    if request["tasks_path"]:
        os.chdir(request["tasks_path"])  # data files are named from where the task files lie
    if request["base_url"] is None:
        for name in names:
            _fetch(name, manager, ears)
        return {}
    client = _client(request, ears)
    scores = {name: _score(name, request, client, manager, ears) for name in names}
    distributions = ("lm_eval", "transformers", "datasets")
    return {
        "tasks": scores,
        "longest_tokens": ears.longest_tokens,
        "versions": {name: importlib.metadata.version(name) for name in distributions},
    }


class Ears(logging.Handler):
    """Hears how the asking goes: answers that come, and what a refusing server said.

    Attributes:
        asking: True from a batch of requests to its last answer; left so by a failure.
        refusal: the last refusal, as lm-eval logged it.
        longest_tokens: of prompt and answer together, in all requests so far.
    """

    def __init__(self, worker: worker_protocol.Worker) -> None:
        super().__init__(logging.WARNING)
        self._worker = worker
        self._task, self._done, self._of, self._told_s = "", 0, 0, 0.0
        self.asking, self.refusal, self.longest_tokens = False, "", 0
        logging.getLogger("lm_eval").addHandler(self)

    def begin(self, requests: Sequence[Sequence[int]], answer_tokens: int) -> None:
        """These requests are now sent."""
        self.asking, self._done, self._of = True, 0, len(requests)
        room = (len(request) + answer_tokens for request in requests)
        self.longest_tokens = max(self.longest_tokens, *room)
        self._worker.phase("ask")

    def answered(self) -> None:
        """One more answer; told once a second."""
        self._done += 1
        now_s = time.monotonic()
        if self._done == self._of or now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            self._worker.progress(self._done, self._of, f"requests of {self._task}")

    def loads(self, task: str) -> None:
        """A task is read, its data fetched."""
        self.asking, self.refusal, self._task = False, "", task
        self._worker.phase("load")

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("API request failed"):
            self.refusal = " ".join(text.removesuffix("Retrying...").split())


def _quiet() -> None:
    """No bars in the log, nothing told to anybody. Before the libraries are imported."""
    for name in ("TQDM_DISABLE", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")


def _client(request: Mapping[str, Any], ears: Ears) -> Any:
    """lm-eval's client of /v1/completions, with ears."""
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    class Heard(LocalCompletionsAPI):  # type: ignore[misc, unused-ignore]
        async def get_batched_requests(self, requests: Any, *args: Any, **kwargs: Any) -> Any:
            ears.begin(requests, _answer_tokens(kwargs.get("gen_kwargs")))
            answers = await super().get_batched_requests(requests, *args, **kwargs)
            ears.asking = False
            return answers

        async def amodel_call(self, *args: Any, **kwargs: Any) -> Any:
            answer = await super().amodel_call(*args, **kwargs)
            ears.answered()
            return answer

    base_url = request["base_url"].rstrip("/")
    try:
        client = Heard(
            base_url=f"{base_url}/v1/completions",
            model=request["served_name"],
            tokenizer=request["tokenizer"],
            tokenizer_backend="huggingface",
            revision=request["revision"] or "main",
            trust_remote_code=request["trust_remote_code"],
            num_concurrent=request["concurrency"],
            max_retries=TRIES,
            timeout=math.ceil(request["request_timeout_s"]),
            max_length=_max_length(base_url, request["served_name"]),
            seed=request["seed"],
        )
    except (OSError, ValueError) as error:
        raise worker_protocol.WorkerError(
            "unsupported", f"no tokenizer can be read from {request['tokenizer']}: {error}"
        ) from error
    client.add_bos_token = _begins_with_bos(client.tokenizer)
    return client


def _answer_tokens(generation: Mapping[str, Any] | None) -> int:
    """How much may be written; one token where only the prompt is read."""
    if generation is None:
        return 1
    given = generation.get("max_tokens", generation.get("max_gen_toks", DEFAULT_ANSWER_TOKENS))
    return int(given)


def _begins_with_bos(tokenizer: Any) -> bool:
    """Whether the model expects a begin-of-sequence token before a text.

    lm-eval's client of a server sends none by itself, unlike its own engine; some models answer
    nonsense without.
    """
    return tokenizer.bos_token_id is not None and tokenizer("a").input_ids[0] == (
        tokenizer.bos_token_id
    )


def _max_length(base_url: str, served_name: str) -> int:
    """Tokens of prompt and answer at most; lm-eval cuts longer prompts at their start."""
    ask = urllib.request.Request(f"{base_url}/v1/models")
    if key := os.environ.get("OPENAI_API_KEY"):
        ask.add_header("Authorization", f"Bearer {key}")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(ask, timeout=MODELS_TIMEOUT_S) as reply:
            models = json.load(reply)["data"]
    except urllib.error.HTTPError as error:
        raise worker_protocol.WorkerError("server", f"/v1/models: HTTP {error.code}") from error
    except (OSError, ValueError, KeyError) as error:
        raise worker_protocol.WorkerError("server", f"/v1/models: {error}") from error
    told = {model.get("id"): model.get("max_model_len") for model in models}
    return int(told.get(served_name) or DEFAULT_MAX_LENGTH)


def _tasks(names: list[str], folder: str | None, tokenizer: str) -> Any:
    """lm-eval's register of tasks, which knows all `names`."""
    from lm_eval.tasks import TaskManager

    told = {"tokenizer": tokenizer, "pretrained": tokenizer}  # some tasks measure texts with it
    if folder is not None:
        # To read lm-eval's own 13,000 task files takes 10 s of two cores; often none is needed.
        manager = TaskManager(include_path=folder, include_defaults=False, metadata=told)
        if set(names) <= {*manager.all_subtasks, *manager.all_tags}:  # a group may name others
            return manager
    manager = TaskManager(include_path=folder, metadata=told)
    for name in names:
        _check_known(name, manager.all_tasks)
    return manager


def _fetch(name: str, manager: Any, ears: Ears) -> None:
    """Read a task, and have its data on this machine."""
    from lm_eval.tasks import get_task_dict

    try:
        get_task_dict([name], manager)
    except Exception as error:
        raise _explained(error, name, ears) from error


def _check_known(name: str, known: list[str]) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise worker_protocol.WorkerError("unknown_task", f"no task is called {name}{hint}")


def _score(
    name: str, request: Mapping[str, Any], client: Any, manager: Any, ears: Ears
) -> dict[str, Any]:
    """One task, group or tag."""
    import lm_eval

    ears.loads(name)
    seed = request["seed"]
    try:
        results = lm_eval.simple_evaluate(
            model=client,
            tasks=[name],
            task_manager=manager,
            num_fewshot=request["few_shot"],
            limit=request["limit"],
            bootstrap_iters=BOOTSTRAPS,
            log_samples=True,  # for what each question gave; they are not written down
            random_seed=seed,
            numpy_random_seed=seed,
            torch_random_seed=seed,
            fewshot_random_seed=seed,
        )
    except Exception as error:
        raise _explained(error, name, ears) from error
    try:
        score: dict[str, Any] = lm_eval_scores.summary(name, results)
    except lm_eval_scores.NoScoreError as error:
        raise worker_protocol.WorkerError("unsupported", f"task {name}: {error}") from error
    return score


def _explained(error: Exception, name: str, ears: Ears) -> worker_protocol.WorkerError:
    said = f"{type(error).__name__}: {error}"
    if ears.asking:
        return worker_protocol.WorkerError("server", f"task {name}: {ears.refusal or said}")
    if any(type(link).__name__ in NO_NETWORK for link in _chain(error)):
        return worker_protocol.WorkerError("network", f"task {name}: {said}")
    return worker_protocol.WorkerError("unsupported", f"task {name} cannot be run: {said}")


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and what it came from."""
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links


if __name__ == "__main__":
    worker_protocol.run(main)
