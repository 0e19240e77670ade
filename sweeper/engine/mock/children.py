"""Processes that a faulty server starts and leaves behind. None of them heeds TERM or HUP.

session   in a session of its own
daemon    in a session of its own too, and forked twice: its descent is lost at once
hidden    in a session of its own, under another name, and with an environment that says nothing
          of the launch: once its parent has died there is nothing to know it by
zombie    in a session of its own, has ended, and is never collected
"""

from __future__ import annotations

import subprocess
import sys

# A program of its own. Arguments: the name to take (empty keeps the interpreter's), how often it
# forks first, and a mark by which whoever tests this finds it.
_LINGER = """
import ctypes, os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
name, forks = sys.argv[1:3]
if forks == "1":
    if os.fork():
        os._exit(0)
    os.setsid()
if name:
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
time.sleep(600)
"""
_PYTHON = (sys.executable, "-I", "-S", "-c")


def start_child(kind: str, mark: str) -> None:
    """Start one child of a kind, and go on at once; a daemon is on its own when this returns.

    Args:
        kind: see the module.
        mark: last argument on the child's command line.
    """
    if kind == "zombie":
        subprocess.Popen([*_PYTHON, "", mark], start_new_session=True)
    elif kind == "daemon":
        subprocess.run([*_PYTHON, _LINGER, "", "1", mark], check=False)
    elif kind == "hidden":
        command = [*_PYTHON, _LINGER, "VLLM::Worker", "0", mark]
        subprocess.Popen(command, env={}, start_new_session=True)
    else:
        subprocess.Popen([*_PYTHON, _LINGER, "", "0", mark], start_new_session=True)
