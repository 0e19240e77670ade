"""What is kept of a trial's requests in its folder. Losing it never costs the measurement."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import IO

from sweeper.load.drive import Listeners
from sweeper.load.level import LoadLevel
from sweeper.load.records import RequestRecord
from sweeper.load.requests_file import RequestsFile
from sweeper.load.workload.item import WorkItem
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener, Note


class Kept:
    """``requests.parquet``, and ``text.jsonl`` if the user asked for it. A context manager.

    Args:
        plan: of the trial; `record_text` decides about text.
        listener: hears once if the disk refuses.
    """

    def __init__(self, plan: TrialPlan, listener: Listener) -> None:
        self._plan = plan
        self._listener = listener
        self._stack = ExitStack()
        self._requests: RequestsFile | None = None
        self._text: IO[str] | None = None
        self._level = ""

    def __enter__(self) -> Kept:
        try:
            self._requests = RequestsFile(self._plan.run_dir / "requests.parquet")
            if self._plan.record_text:
                path = self._plan.run_dir / "text.jsonl"
                path.unlink(missing_ok=True)
                path.touch(mode=0o600)  # prompts may be private
                self._text = self._stack.enter_context(path.open("w", encoding="utf-8"))
        except OSError as error:
            self._give_up(error)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._requests is not None:
                self._requests.flush()
            self._stack.close()
        except OSError as error:
            self._give_up(error)

    def begin(self, position: int, level: LoadLevel, repeat: int) -> Listeners:
        """Listeners for the next drive of a level."""
        self._level = level.name
        if self._requests is not None:
            try:
                self._requests.begin(position, level, repeat)
            except OSError as error:
                self._give_up(error)
        return Listeners(
            on_record=self._on_record, on_text=None if self._text is None else self._on_text
        )

    def _on_record(self, record: RequestRecord) -> None:
        if self._requests is not None:
            try:
                self._requests.add(record)
            except OSError as error:
                self._give_up(error)

    def _on_text(self, index: int, item: WorkItem, output: str) -> None:
        if self._text is not None:
            line = {"load": self._level, "index": index, "prompt": item.prompt, "output": output}
            try:
                self._text.write(json.dumps(line, ensure_ascii=False) + "\n")
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._requests, self._text = None, None
        self._listener(Note(f"requests are no longer written to disk: {error.strerror or error}"))
