"""The machine around the devices: processor, memory, limits, clock. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sweeper.doctor.facts import UNLIMITED, Facts
from sweeper.doctor.finding import Finding, ok, problem, unknown, warning

PYTHON = ((3, 11), (3, 14))
MIB = 1 / 1024
DOCKER_SHM_GIB = 64 * MIB
SHM_PER_GPU_GIB = 1.0
"""NCCL and the engine's message queues use a few hundred MiB for each worker."""
FILES_BESIDE_STREAMS = 512
FEW_TASKS = 2048
FEW_PORTS = 4096
CPU_HEADROOM = 1.3
"""Room beside the weights; the same as where a study refuses a model."""
CLOCK_TOLERANCE_S = 5.0
SLOW_CLOCKS = {"hpet", "acpi_pm", "jiffies", "xen"}


def python(facts: Facts) -> Iterator[Finding]:
    """The tuner's own interpreter and packages."""
    host = facts.host
    version = ".".join(map(str, host.python))
    least, until = PYTHON
    if host.system != "Linux":
        yield problem(
            "system",
            f"{host.system} is not supported",
            "run it on Linux, in a container or virtual machine (WSL 2 on Windows)",
        )
    if not least <= host.python[:2] < until:
        yield problem(
            "python",
            f"Python {version} is not supported",
            "make the environment with Python 3.11, 3.12 or 3.13: make setup PYTHON=python3.11",
        )
    else:
        yield ok("python", f"Python {version}")
    if host.unmet is None:
        yield unknown("packages", "what sweeper depends on is not recorded in this environment")
    elif host.unmet:
        yield problem(
            "packages",
            f"{', '.join(host.unmet)}",
            "install sweeper anew, with what it depends on: make setup, or pip install -e .",
        )
    else:
        yield ok("packages", "everything that sweeper depends on is installed")


def processor(facts: Facts) -> Iterator[Finding]:
    """Cores for engine and load client, and what the processor lacks."""
    host = facts.host
    told = f"{host.cpu_cores} x {host.cpu_model or 'processor of unknown model'}"
    if host.cpu_cores < 2:
        yield warning(
            "processor",
            f"{told}: the load client and the server share one core",
            "give the container more cores (--cpus), or read latencies as upper bounds",
        )
        return
    is_x86 = host.machine in {"x86_64", "AMD64"}
    if facts.on_gpu or not facts.wanted.needs.torch or not is_x86 or not host.cpu_features:
        yield ok("processor", told)
    elif "avx2" not in host.cpu_features:
        yield problem(
            "processor",
            f"{told}: it has no AVX2, for which CPU engines are built",
            "use a newer processor or a GPU, or drive a server elsewhere: engine=openai",
        )
    elif "avx512f" in host.cpu_features:
        yield ok("processor", f"{told}, AVX-512")
    else:
        yield ok(
            "processor",
            f"{told}, AVX2 without AVX-512: left out of studies are an fp8 KV cache and 4-bit "
            "checkpoints that have kernels for AVX-512 only",
        )


def memory(facts: Facts) -> Iterator[Finding]:
    """Memory of the machine or the container, beside what the model needs on a CPU."""
    host, wanted = facts.host, facts.wanted
    if host.memory_gib is None or host.free_memory_gib is None:
        yield unknown("memory", "how much memory there is cannot be read")
        return
    told = f"{host.free_memory_gib:.1f} of {host.memory_gib:.1f} GiB free"
    needs = wanted.weights_gib if wanted.needs.torch and not facts.on_gpu else None
    least = 2.0 if needs is None else needs * CPU_HEADROOM + 1.0
    if needs is not None and needs * CPU_HEADROOM > host.memory_gib:
        yield problem(
            "memory",
            f"{told}; the weights of {wanted.model} are {needs:.1f} GiB",
            "use a smaller model, a machine with more memory, or raise the container's limit",
        )
    elif host.free_memory_gib < least:
        yield warning(
            "memory",
            f"{told}; about {least:.1f} GiB are wanted",
            "end what else uses memory, or raise the container's limit (--memory)",
        )
    else:
        yield ok("memory", told)
    if host.overcommit == 2:
        yield warning(
            "overcommit",
            "vm.overcommit_memory=2 refuses reservations that engines make and never fill",
            "set it to 0 (sysctl vm.overcommit_memory=0), or leave much swap",
        )


def shared_memory(facts: Facts) -> Iterator[Finding]:
    """/dev/shm, over which workers of several devices talk."""
    if not facts.wanted.needs.torch:
        return
    room = facts.host.shared_memory
    if room is None:
        yield unknown("shared memory", "/dev/shm cannot be looked at", _SHM_REMEDY)
        return
    several = facts.on_gpu and facts.devices.visible > 1
    wanted = SHM_PER_GPU_GIB * facts.devices.visible if several else 0.25
    told = f"/dev/shm has {_size(room.free_gib)} of {_size(room.total_gib)} free"
    if several and room.total_gib <= DOCKER_SHM_GIB:
        yield problem("shared memory", f"{told}: NCCL fails on several GPUs", _SHM_REMEDY)
    elif room.total_gib < wanted:
        why = f"{wanted:.0f} GiB are wanted for {facts.devices.visible} GPUs"
        yield warning(
            "shared memory", f"{told}: " + (why if several else "that is little"), _SHM_REMEDY
        )
    elif room.free_gib < min(wanted, 0.25):
        yield warning(
            "shared memory",
            f"{told}: something has filled it",
            "look with `ls -l /dev/shm`, remove what no process uses (psm_*, torch_*, nccl-*)",
        )
    else:
        yield ok("shared memory", told)


def limits(facts: Facts) -> Iterator[Finding]:
    """Open files, threads, ports."""
    host = facts.host
    files = facts.wanted.streams + FILES_BESIDE_STREAMS
    if host.max_files is None:
        yield unknown("open files", "the limit cannot be read")
    elif host.max_files < files:
        yield problem(
            "open files",
            f"{host.max_files} may be open; {facts.wanted.streams} streams need about {files}",
            "raise the limit: ulimit -n 65536 (--ulimit nofile=65536 on Docker)",
        )
    else:
        yield ok("open files", f"{_limit(host.max_files)} may be open")
    if host.max_tasks is not None and host.max_tasks < FEW_TASKS:
        yield warning(
            "threads",
            f"{host.max_tasks} threads are allowed, and an engine starts hundreds",
            "raise the limit: ulimit -u (--pids-limit on Docker, podPidsLimit on Kubernetes)",
        )
    yield from _ports(facts)


def _ports(facts: Facts) -> Iterator[Finding]:
    host = facts.host
    if host.loopback_error:
        yield problem(
            "ports",
            f"no port of 127.0.0.1 can be listened on: {host.loopback_error}",
            "bring the loopback interface up (ip link set lo up), and see that no sandbox "
            "forbids to listen",
        )
    elif host.ports is None:
        yield unknown("ports", "net.ipv4.ip_local_port_range cannot be read")
    elif host.ports < max(FEW_PORTS, 4 * facts.wanted.streams):
        yield warning(
            "ports",
            f"net.ipv4.ip_local_port_range holds {host.ports} ports; each connection takes one, "
            "and keeps it for a minute",
            'widen it: sysctl net.ipv4.ip_local_port_range="32768 60999"',
        )
    else:
        yield ok("ports", f"{host.ports} for connections, 127.0.0.1 can be listened on")


def text(facts: Facts) -> Iterator[Finding]:
    """Whether tables and messages can be shown."""
    encoding = facts.host.encoding
    if encoding.lower().replace("-", "") in {"utf8", "utf8sig"}:
        yield ok("locale", encoding.lower())
        return
    yield warning(
        "locale",
        f"standard output is {encoding}: some characters of tables show as '?'",
        "set LC_ALL=C.UTF-8, or PYTHONIOENCODING=utf-8",
    )


def clock(facts: Facts) -> Iterator[Finding]:
    """A clock that is right, and quick to read."""
    host = facts.host
    ahead, disk = host.clock_ahead_s, host.disk_clock_s
    if ahead is None:
        yield unknown("clock", "the time of sweeper's own files cannot be read")
    elif ahead > CLOCK_TOLERANCE_S:
        yield problem(
            "clock",
            f"it is {ahead / 3600:.1f} h behind the files of this installation",
            "set the clock (timedatectl set-ntp true): certificates and MLflow go by it",
        )
    elif disk is not None and abs(disk) > CLOCK_TOLERANCE_S:
        yield warning(
            "clock",
            f"the disk of studies_dir is {disk:+.0f} s off this machine's clock",
            "set the clocks of this machine and of the file server by NTP",
        )
    elif host.clock_source in SLOW_CLOCKS:
        yield warning(
            "clock",
            f"clock source {host.clock_source} takes microseconds to read and is coarse",
            "boot with clocksource=tsc (kvm-clock in a virtual machine) if it is stable",
        )
    else:
        yield ok("clock", f"plausible, source {host.clock_source or 'not shown'}")


_SHM_REMEDY = (
    "give the container more: --shm-size=8g or --ipc=host on Docker, an emptyDir of medium Memory "
    "at /dev/shm on Kubernetes; on a host: mount -o remount,size=8G /dev/shm"
)


def _size(gib: float) -> str:
    return f"{gib:.1f} GiB" if gib >= 1 else f"{gib / MIB:.0f} MiB"


def _limit(number: int) -> str:
    return "any number" if number >= UNLIMITED else str(number)
