"""A thread that works is waited for, one that hangs is not."""

from __future__ import annotations

import threading
import time

import pytest

from sweeper.tracking.background import Worker


def test_nothing_to_do_is_done() -> None:
    assert Worker(lambda: None, "idle").wait(blocked_s=0.0).done


def test_work_is_done_once_for_all_that_woke_it_meanwhile() -> None:
    may_go, done = threading.Event(), []

    def work() -> None:
        may_go.wait(10)
        done.append(1)

    worker = Worker(work, "w")
    for _ in range(5):
        worker.wake()
    may_go.set()
    assert worker.wait(blocked_s=10).done
    assert 1 <= len(done) <= 2


def test_a_thread_that_hangs_costs_what_was_allowed() -> None:
    may_go = threading.Event()
    worker = Worker(lambda: may_go.wait(60) and None, "hangs")
    worker.wake()
    waited = worker.wait(blocked_s=0.3)
    assert not waited.done
    assert 0.3 <= waited.blocked_s < 5
    may_go.set()
    assert worker.wait(blocked_s=30).done


def test_a_thread_that_computes_is_waited_for_without_a_charge() -> None:
    def compute() -> None:
        end_s = time.thread_time() + 0.6
        while time.thread_time() < end_s:
            sum(range(1000))

    worker = Worker(compute, "computes")
    worker.wake()
    waited = worker.wait(blocked_s=0.5)
    assert waited.done
    assert waited.blocked_s < 0.5


def test_answers_reset_the_quiet_but_not_the_sum() -> None:
    stop = threading.Event()
    worker: Worker

    def answer() -> None:
        while not stop.wait(0.05):
            worker.tick()

    worker = Worker(answer, "answers")
    worker.wake()
    waited = worker.wait(blocked_s=1.2, quiet_s=0.6)
    assert not waited.done
    assert waited.blocked_s >= 1.2
    stop.set()


def test_a_thread_that_died_is_not_waited_for(
    recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def die() -> None:
        raise SystemExit

    worker = Worker(die, "dies")
    worker.wake()
    assert worker.wait(blocked_s=20).done
