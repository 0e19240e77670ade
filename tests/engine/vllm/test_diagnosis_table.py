"""The table of rules as a whole: every rule is met, none stands in another's way, all are fast."""

from __future__ import annotations

import re
import time

import pytest

from sweeper.engine.log_lines import lines
from sweeper.engine.rules import Rule
from sweeper.engine.transformers.diagnosis import RULES as TRANSFORMERS_RULES
from sweeper.engine.vllm.diagnosis import RULES, WRAPPERS, diagnose_vllm
from sweeper.engine.vllm.life_rules import LAST_RESORT
from sweeper.engine.vllm_offline.diagnosis import OFFLINE_RULES
from sweeper.verdicts import Phase, Verdict
from tests.engine.vllm.error_texts import LAST_RESORT_TEXTS, TEXTS, Text

ALL = (*TEXTS, *LAST_RESORT_TEXTS)
# Every rule, however often: a pattern may be part of several tables.
EVERY_RULE = tuple(
    {id(r): r for r in (*RULES, *LAST_RESORT, *OFFLINE_RULES, *TRANSFORMERS_RULES)}.values()
)


def log_of(said: str, prefix: str = "") -> str:
    """A failed launch around one text: warnings before it, a traceback and wrappers around it."""
    head = [
        "(APIServer pid=1) INFO 10-25 13:08:01 [api_utils.py:286] non-default args: {'port': 1}",
        "(EngineCore pid=2) WARNING 10-25 13:08:02 [shm_broadcast.py:1] No available shared memory "
        "broadcast block found in 60 seconds. This typically happens when some processes hang.",
        "(EngineCore pid=2) WARNING 10-25 13:08:02 [kv_cache.py:1] Using KV cache scaling factor "
        "1.0 for fp8_e4m3. This may cause accuracy issues.",
    ]
    body = [
        "EngineCore failed to start.",
        "Traceback (most recent call last):",
        '  File "/site/vllm/v1/engine/core.py", line 10, in run',
        "    raise RuntimeError(",
        *said.splitlines(),
    ]
    foot = [
        "Traceback (most recent call last):",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        "proc(s): {}",
    ]
    return "\n".join([*head, *(prefix + line for line in body), *foot])


@pytest.mark.parametrize("text", ALL, ids=lambda text: f"{text.rule}: {text.said[:50]}")
def test_text_is_understood(text: Text) -> None:
    found = diagnose_vllm(log_of(text.said), Phase.START, 1)
    assert (found.learnt.get("rule"), found.verdict) == (text.rule, text.verdict)
    assert text.learnt.items() <= dict(found.learnt).items()
    assert ("scope" in found.learnt) == ("scope" in text.learnt)
    assert found.remedy and len(found.cause.splitlines()) == 1
    assert "[type=" not in found.cause and "Value error" not in found.cause
    assert found.cause[:60].split(": ")[-1] in found.evidence


def first_rule(line: str) -> Rule | None:
    return next((rule for rule in RULES if rule.pattern.search(line)), None)


def test_every_wording_is_met_and_none_is_hidden_by_another() -> None:
    met = {id(first_rule(lines(text.said)[0].text)) for text in TEXTS}
    missing = [rule.name for rule in RULES if id(rule) not in met]
    assert not missing, f"no text is known first by {missing}"
    known = {text.rule for text in LAST_RESORT_TEXTS}
    assert {rule.name for rule in LAST_RESORT} == known


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.said[:40])
def test_wrappers_hide_no_text(text: Text) -> None:
    assert WRAPPERS.search(lines(text.said)[0].text) is None


def test_every_rule_tells_what_to_do_and_where_it_was_seen() -> None:
    for rule in EVERY_RULE:
        assert re.fullmatch(r"[a-z][a-z0-9_]+", rule.name)
        assert rule.remedy and rule.versions
        assert rule.verdict is not Verdict.UNKNOWN
        if rule.every_launch:
            assert rule.verdict is Verdict.INFRA, rule.name


MACHINE_PREFIXES = (
    "(EngineCore_DP0 pid=1234) ERROR 10-25 13:08:43 [core.py:708] ",
    "2026-03-11T17:57:10.976518836Z (EngineCore_DP0 pid=469) ERROR 03-11 17:57:10 [core.py:783] ",
    "2026-03-11T17:57:10.976518836Z stderr F (Worker_TP1 pid=7) ",
    "Mar 11 17:57:10 gpu-7 docker[411]: (EngineCore pid=5) ",
    "vllm-1  | (APIServer pid=1) (EngineCore_DP6 pid=2454) (Worker_DP6_EP6 pid=2516) ERROR 10-30 "
    "17:32:00 [v1/executor/multiproc_executor.py:671] ",
    "ERROR 05-21 09:27:46 engine.py:366] ",
    "\x1b[36m(RayWorkerWrapper pid=4009, ip=10.0.0.7)\x1b[0m [rank1]: ",
    "[pod/vllm-0/server] \x1b[0;31m(VllmWorker rank=7 pid=240)\x1b[0m ",
)


@pytest.mark.parametrize("prefix", MACHINE_PREFIXES)
def test_prefixes_do_not_matter(prefix: str) -> None:
    for text in ALL:
        plain = diagnose_vllm(log_of(text.said), Phase.START, 1)
        found = diagnose_vllm(log_of(text.said, prefix), Phase.START, 1)
        assert (found.verdict, found.cause, found.learnt) == (
            plain.verdict,
            plain.cause,
            plain.learnt,
        ), text.said


FILLINGS = ("a", " ", "1", "(", "_", ".", "a.", "[", "'", "1,", "layers.0.", "Error", "a=1 (", "\t")


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_no_pattern_is_slow(rule: Rule) -> None:
    """On the longest line that a log can have, whatever it is full of and however it begins."""
    beginnings = {""} | {text.said[:40] for text in ALL if rule.pattern.search(text.said)}
    worst_s = 0.0
    for beginning in beginnings:
        for filling in FILLINGS:
            line = (beginning + filling * 4000)[:4000]
            started = time.perf_counter()
            rule.pattern.search(line)
            worst_s = max(worst_s, time.perf_counter() - started)
    assert worst_s < 0.25
