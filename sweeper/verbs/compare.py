"""Compare two measurements: conditions that differ, results, and whether the comparison is fair.

usage: python -m sweeper compare a=SIDE b=SIDE [load="concurrency 8"] [format=table|json]
                                 [studies_dir=DIR] [select.slo.ttft_p95_ms=500]

A side is one of
  STUDY/TRIAL   a trial of a study: example/3
  STUDY         the study's recommendation, or its fastest trial if nothing can be recommended
  FILE.json     a result of `vllm bench serve --save-result` or --append-result, a report of
                guidellm, or rows of InferenceX; FILE.json#2 takes the second result of several

Ratios are b / a, at the load levels that both sides have; load= takes one of them (load=8 means
concurrency 8). Predicted against measured is never fair; a file of another client tells too few of
its conditions to be known to be.

examples:
  python -m sweeper compare a=NAME/0 b=NAME/3
  python -m sweeper compare a=NAME b=OTHER load=8 format=json
  python -m sweeper compare a=NAME/0 b=bench.json#2 select.slo.ttft_p95_ms=500

exit codes: 0 shown, fair or not; 1 a record cannot be read; 2 bad input, a side that does not
exist or is of no known format
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sweeper.errors import ConfigError, NoFeasibleTrialError
from sweeper.metrics.external.read import read_foreign
from sweeper.pareto.points import latest_attempts
from sweeper.redaction import shown
from sweeper.report.comparison.compare import compare, to_dict
from sweeper.report.comparison.side import Side, side_of_file, side_of_trial
from sweeper.report.comparison.text import render_comparison
from sweeper.trial.outcome import TrialOutcome
from sweeper.verbs.studies import OpenedStudy, choice, open_study, take

_EXAMPLE = "python -m sweeper compare a=STUDY/0 b=STUDY/3"
_FILES = (".json", ".jsonl", ".ndjson")


def run(arguments: list[str]) -> int:
    """Print the comparison of two sides."""
    form, rest = choice(arguments, "format", ["table", "json"])
    level, rest = take(rest, "load")
    texts: list[str] = []
    for name in ("a", "b"):
        text, rest = take(rest, name)
        if not text:
            raise ConfigError(f"what to compare? {name}= is missing", _EXAMPLE)
        texts.append(text)
    study_arguments = [item for item in rest if item.startswith(("studies_dir=", "select."))]
    unknown = [item for item in rest if item not in study_arguments]
    if unknown:
        raise ConfigError(
            f"compare does not take {unknown[0]}",
            "it takes a, b, load, format, studies_dir, select",
        )
    a, b = (_side(text, study_arguments) for text in texts)
    found = compare(a, b, level)
    if form == "json":
        print(json.dumps(to_dict(found), indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print(shown(render_comparison(found)))
    return 0


def _side(text: str, study_arguments: list[str]) -> Side:
    path, pick = _file(text)
    if path is not None:
        return side_of_file(read_foreign(_content(path), path.name, pick), label=text)
    name, slash, trial = text.partition("/")
    study = open_study([f"study={name}", *study_arguments])
    if slash:
        outcome, what = _trial(study, name, trial)
    else:
        outcome, what = _best(study, name)
    return side_of_trial(outcome, label=text, what=what, study=str(study.paths.root))


def _file(text: str) -> tuple[Path | None, int | None]:
    """(path, number of the result in it) if the text means a file, else (None, None)."""
    plain, mark, digits = text.rpartition("#")
    name = plain if mark and digits.isdigit() else text
    is_file = name.endswith(_FILES) or Path(name).is_file()
    if not is_file:
        return None, None
    return Path(name), int(digits) if name != text else None


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(
            f"{path} cannot be read: {reason}",
            "give the JSON file of a benchmark client, or STUDY/TRIAL",
        ) from error


def _trial(study: OpenedStudy, name: str, text: str) -> tuple[TrialOutcome, str]:
    trials = {outcome.number: outcome for outcome in latest_attempts(study.outcomes)}
    number = int(text) if re.fullmatch(r"[0-9]+", text) else None
    if number is None or number not in trials:
        known = ", ".join(map(str, trials)) or "none yet"
        raise ConfigError(f"study {name} has no trial {text!r}", f"its trials: {known}")
    outcome = trials[number]
    return outcome, f"trial {number} ({outcome.kind})"


def _best(study: OpenedStudy, name: str) -> tuple[TrialOutcome, str]:
    """The recommended trial, or the fastest if nothing can be recommended."""
    from sweeper.pareto.points import points_frame
    from sweeper.pareto.select import recommend

    try:
        number = recommend(points_frame(study.outcomes), study.cfg.select).trial
    except NoFeasibleTrialError:
        return _fastest(study, name)
    outcome, what = _trial(study, name, str(number))
    return outcome, f"{what}, the study's recommendation"


def _fastest(study: OpenedStudy, name: str) -> tuple[TrialOutcome, str]:
    measured = [
        (point.metrics["output_tokens_per_s"], outcome)
        for outcome in latest_attempts(study.outcomes)
        for point in outcome.points
        if "output_tokens_per_s" in point.metrics
    ]
    if not measured:
        raise ConfigError(
            f"study {name} has measured nothing yet",
            f"run it on: `python -m sweeper resume study={name}`",
        )
    outcome = max(measured, key=lambda found: found[0])[1]
    return outcome, (
        f"trial {outcome.number} ({outcome.kind}), the study's fastest; it can recommend nothing"
    )
