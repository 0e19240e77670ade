"""Whether a study runs code that comes with the model: one answer to all the ways to say it."""

from __future__ import annotations

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError

FLAG = "trust_remote_code"
WARNING = "trust_remote_code: the server runs code that comes with the model"
_OFF = (False, None, "false", "default")


def runs_model_code(cfg: SweeperConfig) -> bool:
    """True if servers are started with ``trust_remote_code``.

    ``space.fixed`` is part of the deployment and wins; then either of ``model.trust_remote_code``
    and ``engine.args.trust_remote_code`` turns it on.
    """
    fixed = {_plain(name): value for name, value in cfg.space.fixed.items()}
    if FLAG in fixed:
        return fixed[FLAG] not in _OFF
    args = {_plain(name): value for name, value in cfg.engine.args.items()}
    return cfg.model.trust_remote_code or args.get(FLAG) not in _OFF


def check_trust(cfg: SweeperConfig) -> None:
    """Refuse to search over trust. Raises ConfigError."""
    for name in cfg.space.parameters:
        if _plain(str(name)) == FLAG:
            raise ConfigError(
                f"space.parameters.{name}: whether a model's own code may run is not searched",
                "decide it for the study: model.trust_remote_code=true after reading that code, "
                f"and take {name} out of the space",
            )


def _plain(name: str) -> str:
    return str(name).removeprefix("flag.").lstrip("-").replace("-", "_")
