"""Real models and a way to run the product as a user does: as a command."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[2]

TINY_LLAMA = """
    import sys
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder, texts = sys.argv[1], sys.argv[2:]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=512,
            special_tokens=["<s>", "</s>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=512,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=1024,
            bos_token_id=0,
            eos_token_id=1,
        )
    )
    # Random weights would also write lone bytes of UTF-8, which are no text to stream. With a
    # logit of zero they lose against the best of the others.
    lone = [i for word, i in tokenizer.get_vocab().items() if not word.lstrip("\u0120").isascii()]
    with torch.no_grad():
        model.lm_head.weight[lone] = 0
    model.to(torch.bfloat16).save_pretrained(folder)
"""


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama with a byte-level tokenizer, made here."""
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "sweeper").glob("*.py")]
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TINY_LLAMA), str(folder), *texts], check=True
    )
    return folder


@pytest.fixture
def sweep(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m sweeper ...` from an empty folder; studies end up in tmp_path/studies."""

    def run(*arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sweeper", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


def journal(study: Path) -> list[dict[str, Any]]:
    """Lines of trials.jsonl."""
    text = (study / "trials.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def engine_processes(folder: Path) -> list[psutil.Process]:
    """Processes that a tuner working in `folder` launched: they carry a token and its folder."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = any(name.startswith("SWEEPER_") for name in process.environ())
            if marked and Path(process.cwd()) == folder:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    """Every end-to-end test ends with no process of the product left."""
    yield
    left = engine_processes(tmp_path)
    assert not left, f"left running: {[(process.pid, process.name()) for process in left]}"
