from __future__ import annotations

import pytest

from sweeper.quantize.resolve import checkpoint_for

CHECKPOINTS = {"awq": "org/model-awq", "w8a8": "/models/w8a8"}


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        (None, ("base", None)),
        ("none", ("base", None)),
        ("", ("base", None)),
        ("awq", ("org/model-awq", None)),
        ("w8a8", ("/models/w8a8", None)),
        ("fp8_per_tensor", ("base", "fp8_per_tensor")),
    ],
)
def test_checkpoint_and_flag(quantization: str | None, expected: tuple[str, str | None]) -> None:
    assert checkpoint_for(quantization, "base", CHECKPOINTS) == expected


def test_without_checkpoints_every_method_is_online() -> None:
    assert checkpoint_for("awq", "base", {}) == ("base", "awq")
