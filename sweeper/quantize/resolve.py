"""Which checkpoint serves a value of `quantization`, and what the engine is told of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_NONE = {None, "none", "None", ""}


def checkpoint_for(
    quantization: str | None, model_path: str, checkpoints: Mapping[str, str]
) -> tuple[str, str | None]:
    """Path of the checkpoint to serve, and the value of the engine's own ``--quantization`` flag.

    A quantized checkpoint states its method in its config.json, so the flag is left out for one: a
    flag that disagrees in spelling is refused by engines. What names no checkpoint is an online
    method, which the engine applies to the unquantized weights while loading.

    Args:
        quantization: value of the parameter; None and ``none`` mean the model as it is.
        model_path: path or hub id of the unquantized model.
        checkpoints: ``model.checkpoints``, value of `quantization` → path or hub id.
    """
    if quantization in _NONE:
        return model_path, None
    assert quantization is not None
    if quantization in checkpoints:
        return checkpoints[quantization], None
    return model_path, quantization
