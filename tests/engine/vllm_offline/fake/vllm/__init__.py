"""Stands in for vLLM in a worker: the few names it uses, and faults by the model's arguments.

`LLM(**arguments)` reads them from `flag.fake_...` parameters; all else is kept for the tests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

KNOWN = {"model", "max_num_seqs", "max_model_len", "disable_log_stats", "enforce_eager", "dtype"}
TOKEN_S = 0.001


class EngineDeadError(Exception):
    """As vLLM's own: the engine's core process is gone."""


class SamplingParams:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update({"top_p": None, "top_k": None, "seed": None, **fields})


@dataclass
class Counter:
    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class Gauge:
    name: str
    value: float


class LLM:
    def __init__(self, **arguments: Any) -> None:
        self.dials = {k: v for k, v in arguments.items() if k.startswith("fake_")}
        for name in arguments:
            if name not in KNOWN and name not in self.dials and name != "hf_token":
                raise TypeError(
                    f"EngineArgs.__init__() got an unexpected keyword argument '{name}'"
                )
        print("INFO 01-01 00:00:00 [fake.py:1] loading\n" + '{"event": "ready"}', flush=True)
        print("INFO 01-01 00:00:00 [fake.py:2] Model loading took 1.5 GiB", file=sys.stderr)
        if "fake_seen" in self.dials:
            with open(self.dials["fake_seen"], "w") as file:  # noqa: PTH123
                json.dump(arguments, file)
        if self.dials.get("fake_fault") == "no_memory":
            raise ValueError("No available memory for the cache blocks. Try increasing it.")
        self.stats = not arguments["disable_log_stats"]
        self.generated = 0
        seqs = self.dials.get("fake_seqs", arguments.get("max_num_seqs", 8))
        self.llm_engine = SimpleNamespace(
            vllm_config=SimpleNamespace(
                scheduler_config=SimpleNamespace(max_num_seqs=seqs),
                model_config=SimpleNamespace(dtype="torch.float32"),
                speculative_config=None,
            )
        )
        self.calls = 0

    def get_tokenizer(self) -> Any:
        def encode(text: str, add_special_tokens: bool = True) -> list[int]:
            return [1] * add_special_tokens + [ord(letter) for letter in text]

        return SimpleNamespace(encode=encode)

    def get_metrics(self) -> list[Any]:
        if not self.stats:
            raise AssertionError("Stat logging disabled")
        return [
            Counter("vllm:generation_tokens", self.generated - 1, {"engine": "0"}),
            Counter("vllm:generation_tokens", 1, {"engine": "1"}),
            Gauge("vllm:kv_cache_usage_perc", 0.5),
        ]

    def generate(self, prompts: list[Any], parameters: list[Any], use_tqdm: bool) -> list[Any]:
        assert use_tqdm is False
        self.calls += 1
        if self.calls == self.dials.get("fake_fault_at", 0):
            self._fault(self.dials["fake_fault"])
        print("Processed prompts: 100%|####", flush=True)
        outputs = []
        for prompt, wanted in zip(prompts, parameters, strict=True):
            ids = [7] * len(prompt) if isinstance(prompt, str) else prompt["prompt_token_ids"]
            outputs.append(self._output(ids, wanted))
        return outputs[: self.dials.get("fake_answers")]

    def _output(self, ids: list[int], wanted: Any) -> Any:
        assert wanted.min_tokens == (wanted.max_tokens if wanted.ignore_eos else 0)
        if len(ids) > 100:
            raise ValueError("The prompt is longer than\nthe model's context")
        time.sleep(TOKEN_S)
        first = time.monotonic()
        time.sleep(TOKEN_S * wanted.max_tokens)
        self.generated += wanted.max_tokens
        clock = self.dials.get("fake_clock_s", 0.0)
        stats = SimpleNamespace(
            first_token_ts=first + clock, last_token_ts=time.monotonic() + clock
        )
        return SimpleNamespace(
            prompt_token_ids=ids,
            outputs=[SimpleNamespace(token_ids=[0] * wanted.max_tokens, finish_reason="length")],
            metrics=stats if self.stats else None,
        )

    def _fault(self, kind: str) -> None:
        if kind == "exit":
            print("RuntimeError: CUDA error: device-side assert triggered", flush=True)
            os._exit(3)
        if kind == "dead":
            raise EngineDeadError("EngineCore encountered an issue. See stack trace above.")
        if kind == "hang":
            time.sleep(60)
