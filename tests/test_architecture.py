"""Holds the house to its rules: import order of rooms, no cycles, import budget, sizes."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sweeper"

# A room imports only rooms on lines before its own.
ORDER = (
    ("errors", "redaction", "verdicts"),
    ("config",),
    ("toolchain",),
    ("models",),
    ("hardware",),
    ("space",),
    ("estimate",),
    ("quantize",),
    ("engine",),
    ("load",),
    ("metrics",),
    ("quality",),
    ("trial",),
    ("tracking",),
    ("pareto",),
    ("launcher",),
    ("search",),
    ("report",),
    ("notebook",),
    ("export",),
    ("doctor",),
    ("verbs",),
    ("__main__",),
)
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}

HEAVY = (
    "torch",
    "vllm",
    "mlflow",
    "optuna",
    "pandas",
    "hydra",
    "transformers",
    "plotly",
    "pyarrow",
)
MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 70


@cache
def modules() -> dict[str, Path]:
    """Dotted name → file, for every module of the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Dotted names a file imports anywhere in it, lazily or not, with their lines."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (name if name in modules() else node.module), node.lineno


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "sweeper" and len(parts) > 1 else None


def test_every_room_has_a_place_in_the_order() -> None:
    rooms = {room_of(name) for name in modules()} - {None}
    assert rooms <= set(RANK), f"no place in ORDER for {rooms - set(RANK)}"


@pytest.mark.parametrize("module", modules())
def test_rooms_import_only_rooms_before_them(module: str) -> None:
    room = room_of(module)
    wrong = [
        f"{module}:{line} imports {name}"
        for name, line in imported(modules()[module])
        if (other := room_of(name)) is not None
        and other != room
        and (room is None or RANK[other] >= RANK[room])
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles() -> None:
    graph = {
        name: sorted({target for target, _ in imported(path) if target in modules()} - {name})
        for name, path in modules().items()
    }
    assert find_cycle(graph) is None


def find_cycle(graph: dict[str, list[str]]) -> list[str] | None:
    """A cycle as the list of its nodes, None if there is none (depth-first)."""
    done: set[str] = set()
    trail: list[str] = []

    def visit(node: str) -> list[str] | None:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        trail.append(node)
        for target in graph[node]:
            if (cycle := visit(target)) is not None:
                return cycle
        trail.pop()
        done.add(node)
        return None

    return next((cycle for node in graph if (cycle := visit(node)) is not None), None)


def test_the_cycle_finder_finds_one() -> None:
    assert find_cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert find_cycle({"a": ["b", "c"], "b": ["c"], "c": []}) is None


@pytest.mark.parametrize("module", modules())
def test_no_module_imports_vllm(module: str) -> None:
    lines = [line for name, line in imported(modules()[module]) if name.split(".")[0] == "vllm"]
    assert not lines, f"{module} imports vllm in lines {lines}: it runs as a process of its own"


@pytest.mark.parametrize("module", ["sweeper", "sweeper.__main__"])
def test_import_budget(module: str) -> None:
    script = f"import sys, {module}; print(*sorted(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", modules())
def test_sizes(module: str) -> None:
    path = modules()[module]
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_FILE_LINES, f"{path} has {lines} lines"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{path}: {node.name} has {length} lines"


@pytest.mark.parametrize("module", modules())
def test_nothing_runs_text_as_code_or_through_a_shell(module: str) -> None:
    for node in ast.walk(tree(modules()[module])):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        assert name not in {"eval", "exec"}, f"{module}:{node.lineno} calls {name}"
        shells = [k for k in node.keywords if k.arg == "shell"]
        assert not shells, f"{module}:{node.lineno} passes shell="


@pytest.mark.parametrize("module", modules())
def test_no_failure_is_swallowed(module: str) -> None:
    for node in ast.walk(tree(modules()[module])):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            pytest.fail(f"{module}:{node.lineno} has a bare except")
