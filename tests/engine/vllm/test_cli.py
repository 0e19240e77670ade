"""vLLM's help texts of several versions, read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.engine.flag_check import BOOLEAN, LIST, OPTIONAL, SWITCH, VALUE, Flag
from sweeper.engine.vllm.cli import is_whole, parse_help

DATA = Path(__file__).parent / "data"
CPU_032 = (DATA / "help_0_32_cpu.txt").read_text()


def read(name: str) -> dict[str, Flag]:
    return {flag.name: flag for flag in parse_help((DATA / name).read_text())}


@pytest.mark.parametrize("name", ["help_0_6.txt", "help_0_11.txt", "help_0_32_cpu.txt"])
def test_every_layout_is_whole(name: str) -> None:
    flags = parse_help((DATA / name).read_text())
    assert is_whole(flags)
    assert len(flags) == len({flag.name for flag in flags})


def test_every_entry_of_the_text_is_a_flag() -> None:
    entries = [line for line in CPU_032.splitlines() if line.startswith(("  --", "  -h"))]
    flags = parse_help(CPU_032)
    assert len(flags) == len(entries) > 300


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("max_num_seqs", VALUE),
        ("enforce_eager", BOOLEAN),
        ("headless", SWITCH),
        ("api_key", LIST),
        ("hf_token", OPTIONAL),
        ("collect_detailed_traces", LIST),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert read("help_0_32_cpu.txt")[name].kind == kind


def test_choices_and_names() -> None:
    flags = read("help_0_32_cpu.txt")
    assert "fp8_e4m3" in flags["kv_cache_dtype"].choices
    assert flags["performance_mode"].choices == ("balanced", "interactivity", "throughput")
    assert flags["collect_detailed_traces"].choices == ("all", "model", "worker", "None")
    assert flags["tensor_parallel_size"].short == ("tp",)
    assert flags["gpu_memory_utilization"].aliases == ("device_memory_utilization",)
    assert flags["enable_expert_parallel"].short == ("ep",)


@pytest.mark.parametrize("name", ["tokenizer_mode", "tool_call_parser", "quantization"])
def test_open_lists_are_no_choices(name: str) -> None:
    """What a plugin may add to, or the help does not name, is not held against anybody."""
    assert read("help_0_32_cpu.txt")[name].choices == ()


def test_what_the_engine_says_has_no_effect() -> None:
    dead = [name for name, flag in read("help_0_32_cpu.txt").items() if flag.without_effect]
    assert dead == ["disable_cascade_attn"]


def test_plain_argparse_of_0_6() -> None:
    flags = read("help_0_6.txt")
    assert flags["quantization"].short == ("q",)
    assert flags["quantization"].choices[:2] == ("aqlm", "awq")
    assert flags["block_size"].choices == ("8", "16", "32", "64", "128")
    assert flags["enforce_eager"].kind == SWITCH
    assert flags["enable_chunked_prefill"].kind == OPTIONAL
    assert flags["tool_call_parser"].choices == ()
    assert "speculative_config" not in flags


def test_groups_of_0_11() -> None:
    flags = read("help_0_11.txt")
    assert flags["distributed_executor_backend"].choices == ()
    assert flags["cuda_graph_sizes"].kind == LIST
    assert {"task", "swap_space", "disable_log_requests", "enable_log_requests"} <= set(flags)


def test_python_3_13_writes_the_metavar_once() -> None:
    (flag,) = parse_help("options:\n  -q, --quantization {awq,gptq}\n      Method.\n")
    assert flag == Flag("quantization", short=("q",), choices=("awq", "gptq"))


def test_colours_are_no_part_of_a_name() -> None:
    (flag,) = parse_help("  \x1b[1;36m--dtype\x1b[0m \x1b[1;33m{auto,half}\x1b[0m  Data type.\n")
    assert flag == Flag("dtype", choices=("auto", "half"))


def test_the_short_help_is_not_taken_for_the_whole() -> None:
    short = (
        "usage: vllm serve\n\nConfig Groups:\n  ModelConfig  For the model.\n  -h, --help  help\n"
    )
    assert not is_whole(parse_help(short))


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for flag in parse_help(text):
        assert flag.name


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.from_regex(r"\A[a-z]{2,8}(_[a-z]{2,8}){0,3}\Z").filter(
            lambda n: not n.startswith("no_")
        ),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    st.sampled_from(["INFO 10-25 [x.py:1] --not-a-flag is set", "", "Section:", "  - a point"]),
)
def test_lines_between_the_entries_do_not_matter(names: list[str], between: str) -> None:
    text = f"\n{between}\n".join(f"  --{name.replace('_', '-')} X  Words." for name in names)
    assert [flag.name for flag in parse_help(text)] == names
