"""Text from tokens, piece by piece: nothing lost, nothing twice, no broken character."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine.transformers.text import TextStream


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool) -> str:
        return bytes(token_ids).decode("utf-8", errors="replace")


class Words:
    """A tokenizer that writes a space between words, as sentence-piece ones do."""

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool) -> str:
        kept = [t for t in token_ids if t or not skip_special_tokens]
        return " ".join("<end>" if t == 0 else f"w{t}" for t in kept)


def pieces(stream: TextStream, ids: list[int], sizes: list[int]) -> list[str]:
    found, place = [], 0
    for size in [*sizes, len(ids)]:
        part = ids[place : place + size]
        place += size
        if part:
            found.append(stream.add(part, last=place >= len(ids)))
    return found


@given(st.text(), st.text(min_size=1), st.lists(st.integers(1, 9)))
def test_pieces_are_the_text(prompt: str, text: str, sizes: list[int]) -> None:
    stream = TextStream(Bytes(), list(prompt.encode()), skip_special=True)
    found = pieces(stream, list(text.encode()), sizes)
    assert "".join(found) == text


@given(st.text(min_size=1))
def test_a_character_comes_when_it_is_whole(text: str) -> None:
    stream = TextStream(Bytes(), [], skip_special=True)
    ids = list(text.encode())
    found = [stream.add([token], last=n == len(ids) - 1) for n, token in enumerate(ids)]
    # Where a mark for "broken" is itself in the text, it comes with what follows it.
    assert "".join(found) == text
    if "\ufffd" not in text:
        assert [piece for piece in found if piece] == list(text)


@given(st.lists(st.integers(1, 99), max_size=9), st.lists(st.integers(1, 99), min_size=1))
def test_spaces_between_words_stay(prompt: list[int], written: list[int]) -> None:
    stream = TextStream(Words(), prompt, skip_special=True)
    whole = Words().decode([*prompt, *written], skip_special_tokens=True)
    known = Words().decode(prompt, skip_special_tokens=True)
    assert "".join(stream.add([token]) for token in written) == whole[len(known) :]


def test_bytes_that_never_become_a_character_are_not_held_for_ever() -> None:
    stream = TextStream(Bytes(), [], skip_special=True)
    found = [stream.add([0x80]) for _ in range(12)]
    assert found.index(next(piece for piece in found if piece)) <= 4


def test_special_tokens_are_left_out_on_request() -> None:
    assert TextStream(Words(), [5], skip_special=True).add([0], last=True) == ""
    assert "<end>" in TextStream(Words(), [5], skip_special=False).add([0], last=True)
