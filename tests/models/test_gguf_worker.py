from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from sweeper.models import conversion
from sweeper.toolchain.worker import worker_environment


def run_worker(folder: Path, prelude: str) -> tuple[list[dict[str, str]], str]:
    """Run the real worker with its imports shadowed by `prelude`; its events, and its stderr."""
    script = (
        f"import runpy, sys\n{prelude}\n"
        f"runpy.run_path({str(conversion._WORKER)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps({"folder": str(folder), "file": "x.gguf", "target": str(folder)}),
        env=worker_environment(os.environ, {}),
        capture_output=True,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_missing_library_is_told_as_such(tmp_path: Path) -> None:
    events, _ = run_worker(tmp_path, "sys.modules['torch'] = None")
    assert [(event["event"], event["kind"]) for event in events] == [("error", "missing")]
    assert "torch" in events[0]["message"]


FAKE_LIBRARIES = """
import types
for name in ("torch", "transformers", "gguf", "accelerate", "safetensors"):
    sys.modules[name] = types.ModuleType(name)
class Broken:
    @staticmethod
    def from_pretrained(*a, **k):
        print("a library talks on standard output")
        raise RuntimeError("cannot read it")
sys.modules["transformers"].AutoTokenizer = Broken
sys.modules["transformers"].AutoModelForCausalLM = Broken
"""


def test_only_the_protocol_is_on_standard_output(tmp_path: Path) -> None:
    events, stderr = run_worker(tmp_path, FAKE_LIBRARIES)
    assert [event["event"] for event in events] == ["phase", "error"]
    assert events[-1]["message"] == "RuntimeError: cannot read it"
    assert "a library talks" in stderr
