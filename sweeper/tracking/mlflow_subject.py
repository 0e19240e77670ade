"""What a study's figures are of, in MLflow's own words: a data set, and the models served. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.config.schema import WorkloadConfig
from sweeper.redaction import redact_data
from sweeper.tracking.mlflow_names import MAX_NAME_LENGTH, model_name, param_text
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase

UNKNOWN = "unknown"
_HASH_CHARACTERS = 16


@dataclass(frozen=True)
class DataSet:
    """The workload, as MLflow's data set.

    Attributes:
        name: of the workload.
        digest: of everything that decides what is sent; equal digests are the same requests.
        source_type: ``local`` for a file of the user's, ``code`` for what sweeper makes itself.
        source: where the texts come from, JSON.
        profile: lengths, sampling and seed, JSON.
    """

    name: str
    digest: str
    source_type: str
    source: str
    profile: str


@dataclass(frozen=True)
class Served:
    """A model as one deployment or several served it: a checkpoint, and how it was quantized.

    Attributes:
        name: model and quantization, in words that MLflow takes for a model's name.
        key: the same for the same checkpoint.
        params: what is known of it.
    """

    name: str
    key: str
    params: Mapping[str, str]


def data_set(cfg: WorkloadConfig, identity: Mapping[str, Any]) -> DataSet:
    """The data set of a study.

    Args:
        cfg: its workload.
        identity: of the study; a study that has none of a workload is told by `cfg` alone.
    """
    told = identity.get("workload")
    sent = dict(told) if isinstance(told, Mapping) else dict(vars(cfg))
    texts = sent.pop("sha256", None)
    if cfg.path is not None:
        source = {"uri": Path(cfg.path).name, "format": cfg.format}
    else:
        source = {"uri": f"sweeper workload={cfg.name}", "kind": cfg.kind}
    if texts is not None:
        source["sha256"] = str(texts)
    sent, source = redact_data(sent), redact_data(source)
    return DataSet(
        name=(cfg.name or cfg.kind)[:MAX_NAME_LENGTH],
        digest=_digest({**sent, "sha256": texts}),
        source_type="local" if cfg.path is not None else "code",
        source=json.dumps(source, default=str),
        profile=json.dumps({k: v for k, v in sent.items() if v is not None}, default=str),
    )


def served(outcome: TrialOutcome) -> Served | None:
    """The model behind a trial's figures; None where no server was ever started for it."""
    manifest, model = outcome.manifest, outcome.manifest.get("model")
    is_served = outcome.launched and outcome.phase not in {Phase.PLAN, Phase.QUANTIZE}
    if not is_served or not isinstance(model, Mapping) or not model.get("name"):
        return None
    quantization = str(manifest.get("quantization", UNKNOWN))
    made = outcome.made
    told: dict[str, Any] = {
        "model": model["name"],
        "revision": model.get("revision"),
        "digest": model.get("digest"),
        "licence": model.get("licence"),
        "checkpoint": manifest.get("checkpoint"),
        "checkpoint_key": made.get("key"),
        "checkpoint_digest": made.get("digest"),
        "quantization": quantization,
        "precision": manifest.get("precision"),
        **_recipe(made),
    }
    # As the journal has it, so that a study and a later sync know one model.
    told = redact_data(told)
    params = {str(k): param_text(v) for k, v in told.items() if v is not None and v != UNKNOWN}
    # Where a checkpoint was made its path says on which machine, its key says what it is.
    same = {k: v for k, v in params.items() if not (k == "checkpoint" and made.get("key"))}
    name = f"{model['name']} {_words(quantization, manifest.get('precision'))}"
    return Served(model_name(name), _digest(same), params)


def _recipe(made: Mapping[str, Any]) -> dict[str, Any]:
    told = made.get("recipe")
    recipe = dict(told) if isinstance(told, Mapping) else {}
    return {("recipe" if name == "name" else name): value for name, value in recipe.items()}


_AS_PUBLISHED = {"none": "as published", UNKNOWN: "as the server has it"}
_UNASKED = {"engine default", "auto"}


def _words(quantization: str, precision: object) -> str:
    words = _AS_PUBLISHED.get(quantization, quantization)
    is_asked = isinstance(precision, str) and precision not in _UNASKED
    return f"{words}, {precision}" if is_asked else words


def _digest(told: Mapping[str, Any]) -> str:
    text = json.dumps(told, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]
