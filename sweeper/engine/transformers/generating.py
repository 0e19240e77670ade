"""One call of `generate` for one batch of requests, its tokens told as they come.

Rows of a batch end on their own (length, end of sequence, a client that has gone), but the call
ends with its longest row: that is what static batching is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sweeper.engine.transformers.deployment import Deployment
from sweeper.engine.transformers.jobs import Job, News
from sweeper.engine.transformers.loading import LoadedModel

Tell = Callable[[list[News]], None]


class Row:
    """One request of a batch: what it has written, and whether it has ended."""

    def __init__(self, job: Job, eos_ids: Sequence[int]) -> None:
        self.job = job
        self.count = 0
        self.ended = False
        self._stops = frozenset() if job.decoding.ignore_eos else frozenset(eos_ids)

    def take(self, tokens: Sequence[int]) -> News | None:
        """The row's new tokens, cut at its end; None if it had ended before."""
        kept: list[int] = []
        reason: str | None = None
        for token in () if self.ended or self.job.cancelled else tokens:
            kept.append(token)
            self.count += 1
            if token in self._stops:
                reason = "stop"
            elif self.count >= self.job.decoding.max_tokens:
                reason = "length"
            if reason is not None:
                self.ended = True
                break
        return News(self.job, kept, reason) if kept else None


class Streamer:
    """What `generate` hands its tokens to: first the prompts, then each step's."""

    def __init__(self, rows: Sequence[Row], tell: Tell) -> None:
        self._rows = rows
        self._tell = tell
        self._prompts_seen = False
        self.steps = 0
        self.accepted = 0

    def put(self, value: Any) -> None:
        if not self._prompts_seen:
            self._prompts_seen = True
            return
        flat = value.flatten().tolist()
        # A single row may get several tokens in a step (speculation), a batch one for each row.
        parts = [flat] if len(self._rows) == 1 else [[token] for token in flat]
        self.steps += 1
        self.accepted += len(parts[0]) - 1
        news = [row.take(part) for row, part in zip(self._rows, parts, strict=True)]
        self._tell([item for item in news if item is not None])

    def end(self) -> None:
        """Nothing is held back."""


class HoldEnd:
    """A logits processor: the end of sequence is masked until a row has its `min_tokens`."""

    def __init__(self, rows: Sequence[Row], prompt_length: int, eos_ids: Sequence[int]) -> None:
        self._least = [row.job.decoding.min_tokens for row in rows]
        self._most = max(self._least)
        self._prompt_length = prompt_length
        self._eos = list(eos_ids)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        written = input_ids.shape[1] - self._prompt_length
        if written < self._most:
            held = [n for n, least in enumerate(self._least) if written < least]
            for token in self._eos:
                scores[held, token] = float("-inf")
        return scores


class RowsEnd:
    """A stopping criterion: which rows need no further token."""

    def __init__(self, rows: Sequence[Row], prompt_length: int, eos_ids: Sequence[int]) -> None:
        import torch

        self._torch = torch
        self._rows = rows
        self._prompt_length = prompt_length
        self._eos = torch.tensor(list(eos_ids) or [-1])
        self._stops = torch.tensor([not row.job.decoding.ignore_eos for row in rows])
        self._stops_early = bool(eos_ids) and any(not r.job.decoding.ignore_eos for r in rows)
        self._none: Any = None

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        torch, device = self._torch, input_ids.device
        written = input_ids.shape[1] - self._prompt_length
        over = [
            row.job.cancelled or row.ended or written >= row.job.decoding.max_tokens
            for row in self._rows
        ]
        # Nothing goes to the device and back in the common step, in which no row ends.
        if self._none is None or self._none.device != device:
            self._none = torch.zeros(len(self._rows), dtype=torch.bool, device=device)
            self._eos, self._stops = self._eos.to(device), self._stops.to(device)
        done = torch.tensor(over, device=device) if any(over) else self._none
        if self._stops_early:
            done = done | (torch.isin(input_ids[:, -1], self._eos) & self._stops)
        return done


def generate(
    loaded: LoadedModel, deployment: Deployment, jobs: Sequence[Job], tell: Tell
) -> Streamer:
    """Run a batch to its end, telling tokens as they come.

    Returns:
        The streamer, with the steps it saw and the drafted tokens that were accepted.
    """
    import torch

    rows = [Row(job, loaded.eos_ids) for job in jobs]
    ids, mask = _padded(loaded, jobs)
    length = ids.shape[1]
    decoding = jobs[0].decoding
    if decoding.seed is not None:
        torch.manual_seed(decoding.seed)
    beams = decoding.beams > 1
    streamer = Streamer(rows, tell)
    holds = any(job.decoding.min_tokens for job in jobs) and loaded.eos_ids
    written = loaded.model.generate(
        ids,
        attention_mask=mask,
        generation_config=_config(loaded, deployment, jobs),
        streamer=None if beams else streamer,
        logits_processor=[HoldEnd(rows, length, loaded.eos_ids)] if holds and not beams else [],
        stopping_criteria=[_Gone(jobs[0])] if beams else [RowsEnd(rows, length, loaded.eos_ids)],
    )
    if beams and not jobs[0].cancelled:
        tell(_answers(jobs[0], written[:, length:].tolist(), loaded))
    return streamer


class _Gone:
    """A stopping criterion of beam search: its client has gone."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        import torch

        return torch.full((input_ids.shape[0],), self._job.cancelled, device=input_ids.device)


def _answers(job: Job, answers: list[list[int]], loaded: LoadedModel) -> list[News]:
    """Beam search's answers, padding cut off."""
    news = []
    for number, tokens in enumerate(answers):
        kept, reason = tokens, "length"
        for place, token in enumerate(tokens):
            if token in loaded.eos_ids and not job.decoding.ignore_eos:
                kept, reason = tokens[: place + 1], "stop"
                break
        news.append(News(job, kept, reason, number))
    return news


def _padded(loaded: LoadedModel, jobs: Sequence[Job]) -> tuple[Any, Any]:
    """Token ids and attention mask, (rows, longest prompt), filled up on the left."""
    import torch

    longest = max(len(job.prompt) for job in jobs)
    fill = [longest - len(job.prompt) for job in jobs]
    ids = [[loaded.pad_id] * n + job.prompt for n, job in zip(fill, jobs, strict=True)]
    mask = [[0] * n + [1] * (longest - n) for n in fill]
    device = loaded.model.device
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _config(loaded: LoadedModel, deployment: Deployment, jobs: Sequence[Job]) -> Any:
    import transformers

    decoding = jobs[0].decoding
    wanted: dict[str, Any] = {
        "max_new_tokens": max(job.decoding.max_tokens for job in jobs),
        "do_sample": decoding.samples,
        "pad_token_id": loaded.pad_id,
        "use_cache": True,
    }
    if decoding.samples:
        # The library's own default of top_k is 50, where a server's is none.
        wanted |= {"temperature": decoding.temperature, "top_p": decoding.top_p}
        wanted |= {"top_k": decoding.top_k}
    if len(jobs) == 1 and not decoding.ignore_eos and loaded.eos_ids:
        wanted["eos_token_id"] = list(loaded.eos_ids)
    if decoding.beams > 1:
        wanted |= {"num_beams": decoding.beams, "num_return_sequences": decoding.beams}
    elif deployment.speculative == "ngram":
        wanted["prompt_lookup_num_tokens"] = deployment.num_speculative_tokens
        if deployment.prompt_lookup_max is not None:
            wanted["max_matching_ngram_size"] = deployment.prompt_lookup_max
    if deployment.compile:
        wanted["cache_implementation"] = "static"
    return transformers.GenerationConfig(**wanted)
