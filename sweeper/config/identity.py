"""What makes a study the same study, and what differs between two."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sweeper.config.schema import QualityConfig, SloConfig, SweeperConfig
from sweeper.config.server_address import plain_address

ABSENT = "absent"
_COSMETIC = {"name"}
_PATIENCE = {"request_timeout_s", "level_timeout_s", "timeout_s"}
_UNSCORED = {"written_tokens", "python", "tasks_timeout_s"}
_ALWAYS = {"kind", "reference_tokens", "max_prompts", "max_loglik_drop_nats"}
_FIRST_LIMITS = {"ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", "min_quality"}
_VOLATILE = {"free_memory_gib", "free_memory_bytes", "detected"}


def study_identity(
    cfg: SweeperConfig,
    *,
    model: dict[str, Any],
    engine: dict[str, Any],
    hardware: dict[str, Any],
    workload_sha256: str | None = None,
    recipes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that decides whether two trials may stand in one study.

    Names of options, time limits, budget, sampler (its seed too) and the space's seeds are left
    out: they change what is tried or how long one waits, not what a number means.
    `workload.seed` is in, because it decides what is sent.

    Args:
        cfg: the composed configuration.
        model: what was resolved (name, path, revision, digest …). Where the digest is known it says
            which model it is, and the path is dropped: the same files in another folder are the
            same model.
        engine: name, version, device …
        hardware: the machine: kind, name, device_count, cpu_cores and driver, because a number
            is only comparable where these are the same; what varies from minute to minute is
            dropped.
        workload_sha256: of the texts behind the workload; it stands for the path of their file.
        recipes: how checkpoints are made, calibration texts by their content. A study without any
            has the identity that it had before there were recipes.

    Returns:
        Nested mapping of plain JSON values.
    """
    hidden = _COSMETIC | _PATIENCE
    identity = {
        "model": _without(model, {"path"} if model.get("digest") else set()),
        "model_options": {
            "dtype": cfg.model.dtype,
            "checkpoints": cfg.model.checkpoints,
            "draft_model": cfg.model.draft_model,
            "eagle_model": cfg.model.eagle_model,
        },
        "space": {
            "fixed": cfg.space.fixed,
            "parameters": {name: _short(form) for name, form in cfg.space.parameters.items()},
        },
        "objective": _without(asdict(cfg.objective), hidden),
        "slo": _slo(cfg.select.slo) if cfg.objective.kind == "slo" else {},
        "workload": {
            **_without(asdict(cfg.workload), hidden | ({"path"} if workload_sha256 else set())),
            "sha256": workload_sha256,
        },
        "load": _without(asdict(cfg.load), hidden),
        "quality": _quality(cfg.quality),
        "engine": {**engine, "args": cfg.engine.args, "env": cfg.engine.env, **_address(cfg)},
        "engine_options": cfg.engine.options,
        "hardware": _without(hardware, _VOLATILE),
    }
    if recipes:
        identity["quantize"] = dict(recipes)
    plain: dict[str, Any] = json.loads(json.dumps(identity, default=str))
    return plain


def identity_hash(identity: Mapping[str, Any]) -> str:
    """12 hex digits that do not depend on the order of keys."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One line a difference, ``space.parameters.block_size: [16, 32] → absent``."""
    return list(_differ(old, new, ""))


def _differ(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str) -> list[str]:
    lines: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key, ABSENT), new.get(key, ABSENT)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += _differ(before, after, f"{prefix}{key}.")
        elif before != after or (key in old) != (key in new):
            lines.append(f"{prefix}{key}: {_show(before)} → {_show(after)}")
    return lines


def _address(cfg: SweeperConfig) -> dict[str, str]:
    """Which server it is, for one that was not started here; empty otherwise."""
    if cfg.engine.base_url is None:
        return {}
    named = {} if cfg.engine.served_model is None else {"served_model": cfg.engine.served_model}
    return {"base_url": plain_address(cfg.engine.base_url), **named}


def _slo(slo: SloConfig) -> dict[str, Any]:
    """The promise; a limit that earlier versions did not have enters where it is set."""
    given = asdict(slo)
    return {key: value for key, value in given.items() if key in _FIRST_LIMITS or value is not None}


def _quality(quality: QualityConfig) -> dict[str, Any]:
    """How output is judged. What earlier versions did not have enters where it is made use of.

    Otherwise a study of theirs could not be continued: what is left out at its default judges as
    they did. Writing (`written_tokens`) finds faults and changes no score.
    """
    default = asdict(QualityConfig())
    given = _without(asdict(quality), _COSMETIC | _PATIENCE | _UNSCORED)
    return {key: value for key, value in given.items() if key in _ALWAYS or value != default[key]}


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(form: Any) -> Any:
    """A parameter that only lists choices, as that list."""
    if isinstance(form, Mapping) and set(form) == {"choices"}:
        return form["choices"]
    return form


def _without(data: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in names}
