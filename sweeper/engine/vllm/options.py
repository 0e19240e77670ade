"""Settings of the `vllm` engine only (`engine.options`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VllmOptions:
    """What can be asked of this engine beyond its flags.

    Attributes:
        server_info: read effective arguments from `/server_info` too, which needs vLLM's
            development mode; see `sweeper.engine.vllm.effective` for what that opens.
        check_flags: hold all flags and values against the installed version's own help before the
            first launch. Off for an engine that takes more than its help tells.
    """

    server_info: bool = False
    check_flags: bool = True
