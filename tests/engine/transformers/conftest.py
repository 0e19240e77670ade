"""A tiny random Llama with a tokenizer of its own, served by the engine in each batching mode."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.local_http import Endpoint
from sweeper.engine.protocol import LaunchRequest, RunningServer
from sweeper.engine.transformers.engine import TransformersEngine
from tests.engine.conftest import living_with

VOCABULARY = 400
EOS = 1
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": EOS,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
    # Wide enough that no two tokens are nearly equal, which rounding could then turn round.
    "initializer_range": 0.5,
}


def make_tokenizer(folder: Path) -> None:
    """All bytes, then made-up words, so that every id has a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<pad>", "<end>", *alphabet]
    words += [f"w{n:03d}" for n in range(VOCABULARY - len(words))]
    tokenizer = Tokenizer(models.BPE({word: n for n, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>"
    ).save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = Path(tmp_path_factory.mktemp("tiny-llama"))
    torch.manual_seed(7)
    config = transformers.LlamaConfig(**SHAPE)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    make_tokenizer(folder)
    return folder


class SideBySide(TransformersEngine):
    """Holds no device: the servers of these tests run at the same time, and nothing is measured."""

    def devices(self) -> tuple[str, ...]:
        return ()


class Launcher:
    """Starts servers on one model; each launch has a token by which its leftovers are found."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self.model = model
        self.tokens: list[str] = []

    def engine(self, **cfg: Any) -> TransformersEngine:
        # Threads of such a small model would only wait for one another.
        env = {"OMP_NUM_THREADS": "1"}
        full = EngineConfig(name="transformers", stop_timeout_s=5.0, env=env, **cfg)
        return SideBySide(full, cache_dir=self.folder)

    def request(self, parameters: dict[str, Any], **changes: Any) -> LaunchRequest:
        # One for each: a launch that stops takes everything with its token along.
        self.tokens.append(f"test-{secrets.token_hex(8)}")
        fields: dict[str, Any] = {
            "model_path": str(self.model),
            "parameters": parameters,
            "run_dir": self.folder / f"run-{len(self.tokens)}",
            "served_name": "tiny",
            "start_timeout_s": 120.0,
            "token": self.tokens[-1],
        }
        return LaunchRequest(**{**fields, **changes})

    @contextmanager
    def serve(self, parameters: dict[str, Any], **cfg: Any) -> Iterator[RunningServer]:
        with self.engine(**cfg).serve(self.request(parameters)) as server:
            yield server


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Launcher]:
    launcher = Launcher(Path(tmp_path_factory.mktemp("launches")), tiny_model)
    yield launcher
    for pid in {pid for token in launcher.tokens for pid in living_with(token)}:
        os.kill(pid, signal.SIGKILL)


MODES: dict[str, dict[str, Any]] = {
    "none": {"dtype": "float32"},
    "static": {
        "dtype": "float32",
        "flag.batching": "static",
        "max_num_seqs": 4,
        # Long, so that requests sent together are surely found together.
        "flag.batch_wait_ms": 200,
    },
    "continuous": {
        "dtype": "float32",
        "flag.batching": "continuous",
        "max_num_seqs": 4,
        "block_size": 16,
        "flag.attn_implementation": "sdpa",
    },
    "continuous, paged": {
        "dtype": "float32",
        "flag.batching": "continuous",
        "max_num_seqs": 4,
        "block_size": 16,
        "flag.attn_implementation": "eager",
    },
    "ngram": {
        "dtype": "float32",
        "speculative": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 2,
    },
}

Served = Callable[[str], RunningServer]


@pytest.fixture(scope="session")
def served(launcher: Launcher) -> Iterator[Served]:
    """The server of a mode, started when it is first asked for."""
    with ExitStack() as stack:
        servers: dict[str, RunningServer] = {}

        def of(mode: str) -> RunningServer:
            if mode not in servers:
                servers[mode] = stack.enter_context(launcher.serve(MODES[mode]))
            return servers[mode]

        yield of


def endpoint_of(server: RunningServer) -> Endpoint:
    return Endpoint(int(server.base_url.rsplit(":", 1)[1]), server.served_name, server.api_key)
