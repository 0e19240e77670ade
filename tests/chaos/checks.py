"""What must hold after a chaos run. Each check answers with what it found wrong."""

from __future__ import annotations

import json
import socket
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import psutil

from sweeper.engine.ports import LOOPBACK
from sweeper.engine.served import PORT_ATTEMPTS
from sweeper.tracking.lock import StudyLock
from sweeper.verdicts import Verdict
from tests.chaos.study import ChaosStudy
from tests.chaos.tuner import Record, command, environment
from tests.tracking.mirror import assert_mirrors

Problems = list[str]

LASTING = {".mlflow.lock", ".reserve"}
"""Names with a dot that stay: a lock between processes, and disk space kept for the journal."""
AT_ONCE = 2
"""Studies, and syncs, that run at a time."""
PASSING = ("launch.json", "in_flight.json")
"""Notes that are there only while something runs."""


def processes(studies: Sequence[ChaosStudy]) -> Problems:
    """Nothing runs any more: no tuner, no server, no child of one, whatever it calls itself."""
    marks = {name for study in studies for name in study.names()}
    folder = str(studies[0].folder)
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            is_ours = process.environ().get("CHAOS") == folder or marks.intersection(words)
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"process {process.pid} is left: {' '.join(words)[:300]}")
        except psutil.Error:
            continue  # it has gone, or is another user's
    return found


def ports(studies: Sequence[ChaosStudy]) -> Problems:
    """No port of any launch is listened on."""
    found = []
    for study in studies:
        for path in sorted(study.root.glob("trials/**/argv.json")):
            argv = json.loads(path.read_text())["argv"]
            port = int(argv[argv.index("--port") + 1])
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    found.append(f"{study.name}: port {port} is still listened on")
    return found


def files(studies: Sequence[ChaosStudy]) -> Problems:
    """No temporary file, no note of something running, and no lock that is held."""
    folder = studies[0].folder
    found = [f"{path} is left" for path in folder.rglob(".*") if path.name not in LASTING]
    found += [f"{path} is left" for name in PASSING for path in folder.rglob(name)]
    found += [f"{path} is left" for path in (folder / "tmp").iterdir()]
    runtime = [path for path in (folder / "runtime").rglob("*") if path.is_file()]
    found += [f"{path} is left" for path in runtime if path.suffix != ".lock"]
    found += [
        f"{study.name}: its lock is held"
        for study in studies
        if StudyLock(study.root / "study.lock").is_held()
    ]
    return found


def journals(studies: Sequence[ChaosStudy]) -> Problems:
    """Every line is whole, every launch has its line, numbers and attempts have no gap."""
    found = []
    for study in studies:
        if not study.journal.read_bytes().endswith(b"\n"):
            found.append(f"{study.name}: the last line is torn")
        attempts: dict[int, list[int]] = defaultdict(list)
        for outcome in study.outcomes():
            attempts[outcome["number"]].append(outcome["attempt"])
        if sorted(attempts) != list(range(len(attempts))):
            found.append(f"{study.name}: numbers are {sorted(attempts)}")
        for number, each in attempts.items():
            if each != list(range(1, len(each) + 1)):
                found.append(f"{study.name}: trial {number} has attempts {each}")
        recorded = {(number, attempt) for number, each in attempts.items() for attempt in each}
        lost = set(study.started()) - recorded
        if lost:
            found.append(f"{study.name}: launched and not journalled: {sorted(lost)}")
    return found


def repeats(studies: Sequence[ChaosStudy], records: Iterable[Record]) -> Problems:
    """What has ended for good is never launched again."""
    found = [line for record in records for line in record.repeated]
    for study in studies:
        twice = [name for name, count in Counter(study.names()).items() if count > PORT_ATTEMPTS]
        found += [f"{study.name}: {name} was launched again by the same tuner" for name in twice]
    for study in studies:
        ended: dict[str, int] = {}
        for outcome in study.outcomes():
            digest, number = outcome["deployment_hash"], outcome["number"]
            if digest in ended and outcome["launched"]:
                found.append(f"{study.name}: trial {number} repeats trial {ended[digest]}")
            if not Verdict(outcome["verdict"]).is_retryable:
                ended[digest] = number
    return found


def ends(studies: Sequence[ChaosStudy], records: Iterable[Record]) -> Problems:
    """Each study used its budget and left its report; each run of the tuner ended as it may."""
    found = [line for record in records for line in record.errors]
    for study in studies:
        launched = sum(outcome["launched"] for outcome in study.outcomes())
        if launched < study.launches:
            found.append(f"{study.name}: {launched} of {study.launches} launches are journalled")
        found += [
            f"{study.name}: {name} is missing"
            for name in ("report.html", "pareto.csv", "study.yaml")
            if not (study.root / name).exists()
        ]
    return found


def mirrors(studies: Sequence[ChaosStudy]) -> Problems:
    """After `sync` MLflow is the journal, and a second sync has nothing to do."""
    found = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        synced = list(pool.map(_sync, studies))
    for study, done in zip(studies, synced, strict=True):
        if done.returncode != 0:
            found.append(f"{study.name}: sync: {done.stderr[-1000:]}")
            continue
        try:
            uri = f"sqlite:///{study.folder / 'studies' / 'mlflow.db'}"
            assert_mirrors(study.journal, uri, study.name)
        except AssertionError as difference:
            found.append(f"{study.name}: {difference}")
    again = _sync(studies[0])
    if "0 trials logged, 0 repaired" not in again.stdout:
        found.append(f"a second sync: {again.stdout[-500:]}")
    return found


def _sync(study: ChaosStudy) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("sync", f"study={study.name}", f"studies_dir={study.folder / 'studies'}"),
        cwd=study.folder,
        env=environment(study.folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def all_checks(studies: Sequence[ChaosStudy], records: Sequence[Record]) -> dict[str, Problems]:
    """Every check by its name."""
    checks: dict[str, Callable[[], Problems]] = {
        "0 processes": lambda: processes(studies),
        "0 listening ports": lambda: ports(studies),
        "MLflow identical to the journal": lambda: mirrors(studies),
        "0 leaked files": lambda: files(studies),
        "journal complete": lambda: journals(studies),
        "no finished trial repeated": lambda: repeats(studies, records),
        "every study at its end": lambda: ends(studies, records),
    }
    return {name: check() for name, check in checks.items()}
