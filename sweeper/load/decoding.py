"""How every request of a study is decoded: fixed, and recorded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import WorkloadConfig
from sweeper.load.workload.item import WorkItem


@dataclass(frozen=True)
class Decoding:
    """What a request asks for beside its prompt and its length.

    Attributes:
        temperature: 0 is greedy.
        ignore_eos: write on after an end-of-sequence token, so that outputs have the length
            asked for.
        seed: of the server's sampling; None sends none. At a temperature above 0 a seed a request
            makes vLLM leave its fast sampler, so it is not set by default.
        top_p, top_k: limits of sampling, None for none.
        beam_width: above 1 asks for beam search; the answer then comes in one piece at the end.
    """

    temperature: float = 0.0
    ignore_eos: bool = True
    seed: int | None = None
    top_p: float | None = None
    top_k: int | None = None
    beam_width: int = 1

    @classmethod
    def of(cls, work: WorkloadConfig) -> Decoding:
        return cls(
            work.temperature,
            work.ignore_eos,
            work.sampling_seed,
            work.top_p,
            work.top_k,
            work.beam_width,
        )

    @property
    def method(self) -> str:
        """greedy | sampling | beam"""
        if self.beam_width > 1:
            return "beam"
        return "sampling" if self.temperature > 0 else "greedy"

    @property
    def streamed(self) -> bool:
        """Whether answers are streams: beam search knows no token before the last, and vLLM
        refuses to stream it."""
        return self.beam_width == 1

    def conditions(self) -> dict[str, Any]:
        """For the manifest: what is set."""
        limits = {"top_p": self.top_p, "top_k": self.top_k, "seed": self.seed}
        return {
            "method": self.method,
            "temperature": self.temperature,
            "ignore_eos": self.ignore_eos,
            "beam_width": self.beam_width,
            **{name: value for name, value in limits.items() if value is not None},
        }

    def body(self, model: str, item: WorkItem) -> bytes:
        """The request, encoded."""
        fields: dict[str, Any] = {
            "model": model,
            "prompt": item.prompt,
            "max_tokens": item.output_tokens,
            "temperature": self.temperature,
            "stream": self.streamed,
        }
        if self.streamed:
            fields["stream_options"] = {"include_usage": True}
        if self.ignore_eos:
            fields |= self._exact_length(item.output_tokens)
        if self.beam_width > 1:
            fields |= {"use_beam_search": True, "n": self.beam_width}
        for name in ("seed", "top_p", "top_k"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        return json.dumps(fields, separators=(",", ":")).encode()

    def _exact_length(self, output_tokens: int) -> dict[str, Any]:
        """min_tokens masks the end of sequence, ignore_eos writes on where a model stops by other
        means; special tokens are kept because a hidden one would be an empty chunk and delay the
        first content. Beam search knows no min_tokens."""
        wanted: dict[str, Any] = {"ignore_eos": True, "skip_special_tokens": False}
        if self.beam_width == 1:
            wanted["min_tokens"] = output_tokens
        return wanted
