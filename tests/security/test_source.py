"""What the source must not do, wherever it stands: run data as code, or speak without a limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for folder in ("sweeper", "scripts", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
]

MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "xmlrpc"}
"""Reading what they wrote runs it."""
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    *("os.system", "os.popen", "os.execl", "os.spawnl", "tempfile.mktemp", "commands.getoutput"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.Loader"),
    *("yaml.UnsafeLoader", "yaml.FullLoader", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("torch.load", "pandas.read_pickle", "pd.read_pickle", "ssl._create_unverified_context"),
    *("shutil.unpack_archive", "ssl.CERT_NONE"),
}
EXTRACTING = {"extractall", "extract"}
"""An archive's own names lead anywhere: members are opened by their name and written to ours."""
WITH_TIMEOUT = {
    *("requests.get", "requests.post", "requests.request", "urllib.request.urlopen"),
    *(
        "urlopen",
        "socket.create_connection",
        "http.client.HTTPConnection",
        "http.client.HTTPSConnection",
    ),
}

KNOWN = {
    # The simulator's own calls are answered from memory the second time, with its own loader.
    "benchmarks/efficiency/predict_worker.py": {"yaml.load"},
}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def faults(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.split(".")[0] in MODULES:
                yield module
            yield from (n for a in node.names if (n := f"{module}.{a.name}") in METHODS)
        elif isinstance(node, ast.Attribute) and dotted(node) in METHODS:
            yield dotted(node)
        elif isinstance(node, ast.Call):
            yield from _call_faults(node)


def _call_faults(node: ast.Call) -> Iterator[str]:
    name = dotted(node.func)
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if name in CALLS:
        yield name
    if "shell" in given or "allow_pickle" in given:
        yield f"{name}({', '.join(map(str, given))})"
    if isinstance(node.func, ast.Attribute) and node.func.attr in EXTRACTING and "zip" in name:
        yield name
    for off in ("verify", "ssl", "check_hostname"):
        if isinstance(value := given.get(off), ast.Constant) and value.value is False:
            yield f"{name}({off}=False)"
    if isinstance(value := given.get("trust_env"), ast.Constant) and value.value is True:
        yield f"{name}(trust_env=True)"
    if name in WITH_TIMEOUT and "timeout" not in given and None not in given:
        yield f"{name} without a timeout"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_dangerous(path: Path) -> None:
    known = KNOWN.get(path.relative_to(ROOT).as_posix(), set())
    found = [one for one in faults(ast.parse(path.read_text(encoding="utf-8"))) if one not in known]
    assert not found, f"{path}: {', '.join(found)}"


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from joblib import load",
        "eval(x)",
        "os.system('ls')",
        "from os import system",
        "yaml.load(x, Loader=yaml.Loader)",
        "tempfile.mktemp()",
        "subprocess.run(x, shell=True, timeout=1)",
        "np.load(x, allow_pickle=True)",
        "urllib.request.urlopen(x)",
        "session.get(x, verify=False)",
        "aiohttp.ClientSession(trust_env=True)",
        "zip_file.extractall()",
    ],
)
def test_the_search_finds_it(text: str) -> None:
    assert list(faults(ast.parse(text)))


@pytest.mark.parametrize("text", ["re.compile(x)", "yaml.safe_load(x)", "model.eval()"])
def test_the_search_leaves_what_is_harmless(text: str) -> None:
    assert not list(faults(ast.parse(text)))
