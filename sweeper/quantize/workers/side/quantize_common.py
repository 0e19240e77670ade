"""What the workers that quantize have in common: the request, the device, the texts, the errors.

It is imported by the workers alone, in their own environments, so it needs nothing but the standard
library to be imported; torch stands where it is used.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, NoReturn

from worker_protocol import Worker, WorkerError

PER_CHANNEL = -1
"""Group size of one scale for a whole output channel."""
MIN_TOKENS = 64
"""Fewer in all say nothing of what activations look like."""

_ROUTERS = {"gate", "router", "shared_expert_gate"}

# What libraries say in their own words, and the class that it belongs to. Lower case; the first
# phrase that occurs decides.
_MEANINGS = (
    ("can't allocate memory", "memory"),
    ("cannot allocate memory", "memory"),
    ("out of memory", "memory"),
    ("isn't supported yet", "unsupported"),
    ("does not recognize this architecture", "unsupported"),
    ("unrecognized configuration class", "unsupported"),
    ("unrecognized model in", "unsupported"),
    ("does not currently support models that are already quantized", "unsupported"),
    ("error resolving mappings for given architecture", "unsupported"),
    ("not divisible by", "unsupported"),
    ("must be a multiple of", "unsupported"),
    ("requires cuda", "no_cuda"),
    ("cuda is not available", "no_cuda"),
)


@dataclass(frozen=True)
class Request:
    """What a checkpoint is to be like; the fields of the protocol's request, checked.

    Attributes:
        model: folder, or hub id with `revision`.
        out: folder to fill.
        texts: JSON-lines file of {"text"}, None where the method needs none.
        samples, tokens: how many pieces of text to calibrate on, and their greatest length.
    """

    model: str
    out: Path
    revision: str | None = None
    method: str | None = None
    bits: int | None = None
    group_size: int | None = None
    symmetric: bool | None = None
    act_order: bool | None = None
    texts: Path | None = None
    samples: int = 128
    tokens: int = 512
    device: str = "auto"
    trust_remote_code: bool = False
    seed: int = 0

    @classmethod
    def of(cls, worker: Worker) -> Request:
        """The worker's request; what is null there takes the default."""
        asked: dict[str, Any] = {
            field.name: worker.request[field.name]
            for field in fields(cls)
            if worker.request.get(field.name) is not None
        }
        asked |= {name: Path(asked[name]).absolute() for name in ("out", "texts") if name in asked}
        if Path(asked["model"]).exists():
            asked["model"] = str(Path(asked["model"]).absolute())
        return cls(**asked)


def require(name: str, value: Any, allowed: Sequence[Any], tool: str) -> None:
    """Refuse a value that the tool, or the engine that will serve its work, does not have."""
    if value not in allowed:
        words = ", ".join(str(item) for item in allowed)
        raise WorkerError("unsupported", f"{tool} does not take {name}={value}; it takes {words}")


def prepare(request: Request) -> None:
    """Settle what must be settled before torch is imported: which devices it may see, no network.

    Loading a folder must not ask a hub for anything, nor report to one.
    """
    if request.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if Path(request.model).is_dir():
        os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def device(request: Request) -> str:
    """``cuda`` or ``cpu``: what torch sees here and the request allows.

    Raises:
        WorkerError: `no_cuda` if the request insists on a GPU and torch sees none.
    """
    import torch

    seen = bool(torch.cuda.is_available())
    if request.device == "cuda" and not seen:
        refuse_without_cuda("device=cuda was asked for")
    return "cuda" if seen and request.device != "cpu" else "cpu"


def refuse_without_cuda(why: str) -> NoReturn:
    raise WorkerError(
        "no_cuda",
        f"{why}, but torch sees no CUDA device here: make the checkpoint on a machine with an "
        "NVIDIA GPU, or take a recipe that works on the CPU (gptqmodel, w4a16)",
    )


def seed_everything(seed: int) -> None:
    """Same request, same checkpoint: where a tool draws random numbers, it draws the same."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)


def read_texts(path: Path | None) -> list[str]:
    """Calibration texts, in their order.

    Raises:
        WorkerError: `calibration` if there are none.
    """
    if path is None:
        raise WorkerError("calibration", "this method needs calibration texts, none were given")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["text"] for line in lines if line.strip()]
    if not found:
        raise WorkerError("calibration", f"no calibration texts in {path}")
    return found


def pieces(texts: Sequence[Sequence[int]], samples: int, tokens: int) -> list[list[int]]:
    """At most `samples` pieces of at most `tokens` tokens: the beginnings first, in order.

    Only if there are fewer texts than samples are the rest of long texts taken too, the second
    piece of each before the third of any. Nothing is taken twice.
    """
    cut = [[text[i : i + tokens] for i in range(0, len(text), tokens)] for text in texts]
    rounds = chain.from_iterable(zip_longest(*cut))
    return [list(piece) for piece in islice((p for p in rounds if p), samples)]


def calibration(request: Request, tokenizer: Any) -> list[list[int]]:
    """Token ids to calibrate on.

    Raises:
        WorkerError: `calibration` if the texts are too few or too short to tell anything.
    """
    texts = read_texts(request.texts)
    found = pieces(
        [tokenizer(text)["input_ids"] for text in texts], request.samples, request.tokens
    )
    total = sum(map(len, found))
    if total < MIN_TOKENS:
        raise WorkerError(
            "calibration",
            f"{len(texts)} calibration texts give {total} tokens, at least {MIN_TOKENS} are "
            "needed: give more or longer texts, or more samples",
        )
    return found


def quantized_linears(model: Any) -> Iterator[tuple[str, int, int]]:
    """Name, input and output features of each linear layer that a tool quantizes.

    They stand in numbered blocks. Routers of experts stay as they are, and so do parts that see.
    """
    for name, module in model.named_modules():
        parts = name.split(".")
        left_out = parts[-1] in _ROUTERS or any(part.startswith("vis") for part in parts)
        in_block = any(part.isdigit() for part in parts)
        if in_block and not left_out and hasattr(module, "in_features"):
            yield name, module.in_features, module.out_features


def check_shapes(model: Any, group_size: int | None, multiple_in: int, multiple_out: int) -> None:
    """Refuse a model with a layer that cannot be cut into groups, or packed.

    Args:
        model: loaded, nothing quantized yet.
        group_size: weights that share a scale; None or `PER_CHANNEL` for no groups.
        multiple_in, multiple_out: what input and output features must be multiples of.

    Raises:
        WorkerError: `unsupported`, naming the first such layer.
    """
    group = group_size if group_size and group_size > 0 else 1
    for name, inputs, outputs in quantized_linears(model):
        for features, multiple, what in (
            (inputs, group, "input features, not a multiple of group size"),
            (inputs, multiple_in, "input features, not a multiple of"),
            (outputs, multiple_out, "output features, not a multiple of"),
        ):
            if features % multiple:
                raise WorkerError("unsupported", f"{name} has {features} {what} {multiple}")


def versions(*names: str) -> dict[str, str]:
    """Installed version of each distribution."""
    return {name: importlib.metadata.version(name) for name in names}


@contextmanager
def errors_in_our_words() -> Iterator[None]:
    """Give a library's exception the class it belongs to, see `_MEANINGS`."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, AssertionError, OSError) as error:
        text = f"{type(error).__name__}: {error}"
        kind = next((kind for words, kind in _MEANINGS if words in text.lower()), None)
        if kind is None:
            raise
        raise WorkerError(kind, " ".join(text.split())) from error


@contextmanager
def in_scratch(out: Path) -> Iterator[None]:
    """Work in a folder that goes with the work: some tools log into the one they run from.

    It lies beside `out`, in which only the checkpoint may be, and begins with its name, so that
    whoever asked for that removes both if this process is killed.
    """
    before, scratch = Path.cwd(), out.with_name(f"{out.name}-scratch")
    scratch.mkdir()
    os.chdir(scratch)
    try:
        yield
    finally:
        os.chdir(before)
        shutil.rmtree(scratch)


def quantizing(main: Callable[[Worker, Request], dict[str, Any]]) -> Callable[[Worker], Any]:
    """`main` as `worker_protocol.run` wants it, with the request read and errors told by class."""

    def wrapped(worker: Worker) -> dict[str, Any]:
        request = Request.of(worker)
        prepare(request)
        with in_scratch(request.out), errors_in_our_words():
            return main(worker, request)

    return wrapped
