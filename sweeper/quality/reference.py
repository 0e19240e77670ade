"""The text that candidates are scored on, as token ids, and how it is kept on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sweeper.errors import StudyError

FORMAT = 1
LONGEST_TOKENS = "longest_tokens"
"""Key of what a part keeps: the room a candidate needs for its longest request, in tokens."""


@dataclass(frozen=True)
class TokenScores:
    """What one engine thinks of each reference token, given all tokens before it.

    Attributes:
        ranks: 1 is the engine's own first choice; one a token.
        logprobs: natural logarithm of its probability; one a token.
    """

    ranks: tuple[int, ...]
    logprobs: tuple[float, ...]

    @property
    def hits(self) -> list[bool]:
        """Which tokens are the engine's own first choice; one a token."""
        return [rank == 1 for rank in self.ranks]


@dataclass(frozen=True)
class ReferenceItem:
    """One prompt, what the reference wrote, and how the reference scores it.

    Attributes:
        id, kind: of the suite's prompt.
        prompt_ids: token ids, as the server made them from the text.
        reference_ids: token ids the reference wrote greedily.
        scores: the reference's own, in the way candidates are scored. A rank above 1 is possible:
            equal or nearly equal logits fall otherwise when tokens are read all at once.
    """

    id: str
    kind: str
    prompt_ids: tuple[int, ...]
    reference_ids: tuple[int, ...]
    scores: TokenScores


@dataclass(frozen=True)
class Reference:
    """Reference text of a study.

    Attributes:
        suite: hash of the prompts, see `sweeper.quality.suite.suite_hash`.
        model: what the reference server called its model; told to no other server.
        items: one a prompt.
        parts: what the other parts of quality keep of the reference, by the part's name; empty in
            files of earlier versions. See `sweeper.quality.part`.
    """

    suite: str
    model: str
    items: tuple[ReferenceItem, ...]
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Reference tokens in all."""
        return sum(len(item.reference_ids) for item in self.items)

    @property
    def longest_tokens(self) -> int:
        """Room a candidate needs for its longest item, the one written token included."""
        items = (1 + len(item.prompt_ids) + len(item.reference_ids) for item in self.items)
        parts = (int(kept.get(LONGEST_TOKENS, 0)) for kept in self.parts.values())
        return max(*items, *parts, 0)


def save_reference(reference: Reference, path: Path) -> None:
    """Write token ids and scores, no text, replacing the file in one step that survives a crash.

    Raises:
        OSError: it cannot be written; an old file is untouched.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(reference)}, file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """The new name is only safe once the folder is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load_reference(path: Path) -> Reference:
    """Read what `save_reference` wrote.

    Raises:
        FileNotFoundError: there is none yet.
        StudyError: the file is not a reference of this format.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, not {FORMAT}")
        parts = {str(name): dict(kept) for name, kept in data.get("parts", {}).items()}
        return Reference(data["suite"], data["model"], tuple(map(_item, data["items"])), parts)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StudyError(
            f"{path} is not a quality reference: {error}",
            "restore it from a backup, or start a new study with study=NEW_NAME",
        ) from error


def check_scores(scores: TokenScores, reference_ids: Sequence[int]) -> None:
    """Raises ValueError unless there is one score a token."""
    if not len(scores.ranks) == len(scores.logprobs) == len(reference_ids) > 0:
        raise ValueError("scores and tokens differ in number")


def _item(data: dict[str, Any]) -> ReferenceItem:
    scores = TokenScores(
        tuple(map(int, data["scores"]["ranks"])), tuple(map(float, data["scores"]["logprobs"]))
    )
    check_scores(scores, data["reference_ids"])
    return ReferenceItem(
        id=str(data["id"]),
        kind=str(data["kind"]),
        prompt_ids=tuple(map(int, data["prompt_ids"])),
        reference_ids=tuple(map(int, data["reference_ids"])),
        scores=scores,
    )
