from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.errors import StudyError
from sweeper.search.bounds.store import read_dropped, write_dropped


def test_what_was_dropped_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "dropped.json"
    assert read_dropped(path) == frozenset()
    write_dropped(path, ["b-2", "a-1", "b-2"])
    assert read_dropped(path) == {"a-1", "b-2"}
    write_dropped(path, [])
    assert read_dropped(path) == frozenset()


@pytest.mark.parametrize("text", ["{", "[]", '{"dropped": "all"}', '{"dropped": [1]}'])
def test_a_damaged_file_names_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dropped.json"
    path.write_text(text)
    with pytest.raises(StudyError, match="remove the file"):
        read_dropped(path)
