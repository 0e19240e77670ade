"""Every deadline of a trial, in the order in which they apply. Nothing in a trial waits for ever.

    deadline         of what                                    key, and what it is unless given
    quantize_s       making a quantized checkpoint              quantize.timeout_s, by size
    device_wait_s    another tuner's launch on our devices      engine.device_wait_s, 1 h
    memory_s         device memory at rest, and back            engine.memory_patience_s, 60 s
    start_s          from the process to its first answer        engine.start_timeout_s, by size
    stall_s          a start in which nothing moves             engine.stall_timeout_s, start_s / 3
    tokenize_s       the sentences in the model's tokens        half of start_s
    request_s        one request of the load                    load.request_timeout_s
    hang_s           a level in which no token comes            engine.hang_timeout_s, start_s / 4
    level_s          one level, warm-up included                load.level_timeout_s
    judge_request_s  one request of the quality phase           quality.request_timeout_s
    quality_s        the quality phase as a whole               quality.timeout_s, 2 x start_s
    tasks_s          lm-eval's tasks, apart from that phase     quality.tasks_timeout_s, 2 h
    stop_s           from TERM to KILL                          engine.stop_timeout_s

`start_s` grows with the bytes that a start has to read (`sweeper.search.setup`), and what is a
share of it grows along. After a KILL the stop is given a fixed time (`sweeper.engine.family`).
"""

from __future__ import annotations

# A kernel may be tuned or compiled for minutes without a word or an allocation.
MIN_STALL_S = 300.0
MIN_HANG_S = 180.0
MIN_TOKENIZE_S = 120.0
MIN_QUALITY_S = 1800.0

# The slowest that is still at work: a processor with few cores quantizes a megabyte of weights in
# about a second, and an environment may have to be downloaded first.
QUANTIZE_BASE_S = 3600.0
QUANTIZE_BYTES_PER_S = 1e6


def quantize_s(given_s: float | None, size_bytes: float) -> float:
    """How long one quantized checkpoint may take to be made.

    Args:
        given_s: ``quantize.timeout_s``.
        size_bytes: of the unquantized weights.
    """
    return QUANTIZE_BASE_S + size_bytes / QUANTIZE_BYTES_PER_S if given_s is None else given_s


def stall_s(given_s: float | None, start_s: float) -> float:
    """How long nothing may move in a start; a short start ends by its own deadline before."""
    return max(MIN_STALL_S, start_s / 3) if given_s is None else given_s


def tokenize_s(start_s: float) -> float:
    """How long the server may take to tokenize the bank of sentences."""
    return max(MIN_TOKENIZE_S, start_s / 2)


def hang_s(given_s: float | None, start_s: float) -> float:
    """How long a server under load may write nothing and count nothing."""
    return max(MIN_HANG_S, start_s / 4) if given_s is None else given_s


def quality_s(given_s: float | None, start_s: float) -> float:
    """How long judging the output may take as a whole."""
    return max(MIN_QUALITY_S, 2 * start_s) if given_s is None else given_s
