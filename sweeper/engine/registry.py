"""Engine variants by name, each imported only when it is asked for."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path

from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import Engine
from sweeper.errors import ConfigError

ENGINES = {
    "vllm": "sweeper.engine.vllm.engine:VllmEngine",
    "transformers": "sweeper.engine.transformers.engine:TransformersEngine",
    "mock": "sweeper.engine.mock.engine:MockEngine",
    "openai": "sweeper.engine.openai.engine:OpenAiEngine",
    "vllm_offline": "sweeper.engine.vllm_offline.engine:VllmOfflineEngine",
    "simulate": "sweeper.engine.simulate.engine:SimulateEngine",
    "replay": "sweeper.engine.replay.engine:ReplayEngine",
}


def create(cfg: EngineConfig, *, cache_dir: Path) -> Engine:
    """The engine named in the configuration. Starts nothing.

    Args:
        cfg: `engine` group of the configuration.
        cache_dir: folder for the engine's own caches.

    Raises:
        ConfigError: no engine of that name, or options it does not know.
    """
    place = ENGINES.get(cfg.name)
    if place is None:
        near = difflib.get_close_matches(cfg.name, ENGINES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(ENGINES)}"
        raise ConfigError(f"engine.name={cfg.name!r} is no engine", hint)
    module, _, variant = place.partition(":")
    engine: Engine = getattr(import_module(module), variant)(cfg, cache_dir=cache_dir)
    return engine
