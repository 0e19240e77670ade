"""Settings of the `vllm` engine only (`engine.options`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VllmOptions:
    """What can be asked of this engine beyond its flags.

    Attributes:
        server_info: read effective arguments from `/server_info` too, which needs vLLM's
            development mode; see `sweeper.engine.vllm.effective` for what that opens.
    """

    server_info: bool = False
