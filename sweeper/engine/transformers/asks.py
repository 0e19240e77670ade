"""A completion request, read and checked: what this server acts on, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sweeper.engine.transformers.jobs import Decoding

DEFAULT_MAX_TOKENS = 16

UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "stop": (None, [], ""),
    "echo": (None, False),
    "suffix": (None,),
    "best_of": (None, 1),
    "logprobs": (None,),
    "logit_bias": (None, {}),
    "min_p": (None, 0),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "guided_json": (None,),
    "response_format": (None,),
    "structured_outputs": (None,),
}
"""Fields that this server does not act on → values that ask for nothing. Others are refused."""


@dataclass(frozen=True)
class Ask:
    """A completion request, read."""

    prompts: list[list[int]]
    decoding: Decoding
    stream: bool
    include_usage: bool
    prompt_logprobs: int | None
    token_ids: bool
    skip_special: bool

    @classmethod
    def read(cls, body: Any, tokenizer: Any) -> Ask:
        """Raises KeyError, TypeError or ValueError if it is no request, or asks too much."""
        for name, neutral in UNSUPPORTED.items():
            if body.get(name) not in neutral:
                raise ValueError(f"this server has no {name}")
        beams = int(body.get("n") or 1) if body.get("use_beam_search") else 1
        if beams == 1 and body.get("n") not in (None, 1):
            raise ValueError("this server gives one answer a prompt: n must be 1")
        return cls(
            prompts=_prompts(body["prompt"], tokenizer),
            decoding=_decoding(body, beams),
            stream=bool(body.get("stream")),
            include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
            prompt_logprobs=_count(body.get("prompt_logprobs"), "prompt_logprobs"),
            token_ids=bool(body.get("return_token_ids")),
            skip_special=body.get("skip_special_tokens") is not False,
        )


def _decoding(body: Any, beams: int) -> Decoding:
    limit = body.get("max_tokens")
    temperature = body.get("temperature")
    top_p, top_k = body.get("top_p"), body.get("top_k")
    decoding = Decoding(
        max_tokens=DEFAULT_MAX_TOKENS if limit is None else int(limit),
        min_tokens=int(body.get("min_tokens") or 0),
        ignore_eos=bool(body.get("ignore_eos")),
        temperature=1.0 if temperature is None else float(temperature),
        top_p=1.0 if top_p is None else float(top_p),
        top_k=0 if top_k in (None, -1) else int(top_k),
        seed=None if body.get("seed") is None else int(body["seed"]),
        beams=beams,
    )
    if decoding.max_tokens < 1:
        raise ValueError(f"max_tokens={decoding.max_tokens} is below 1")
    if not 0 <= decoding.min_tokens <= decoding.max_tokens:
        raise ValueError(f"min_tokens={decoding.min_tokens} is not between 0 and max_tokens")
    if decoding.temperature < 0 or not 0 < decoding.top_p <= 1 or decoding.top_k < 0:
        raise ValueError("temperature, top_p or top_k is out of range")
    return decoding


def _prompts(prompt: Any, tokenizer: Any) -> list[list[int]]:
    """Text, token ids, or a list of either, as token ids."""

    def ids(item: Any) -> list[int]:
        if isinstance(item, str):
            return [int(token) for token in tokenizer(item)["input_ids"]]
        return [int(token) for token in item]

    if isinstance(prompt, str) or (prompt and all(isinstance(item, int) for item in prompt)):
        return [ids(prompt)]
    return [ids(item) for item in prompt]


def _count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name}={value!r} is not a whole number")
    return value
