"""What was found on this machine, as values. None means that it could not be found out."""

from __future__ import annotations

from dataclasses import dataclass, field

from sweeper.doctor.needs import Needs

UNLIMITED = 2**62
"""A limit that is not set."""


@dataclass(frozen=True)
class Room:
    """A file system, in GiB, with free inodes where it counts them."""

    total_gib: float
    free_gib: float
    free_inodes: int | None = None


@dataclass(frozen=True)
class HostFacts:
    """The machine as this process sees it.

    Attributes:
        system: kernel's name.
        python: version of the tuner's interpreter.
        unmet: dependencies of sweeper that are missing or of another version, one text each; None
            if the package does not say what it needs.
        in_container: whether this is a container.
        cpu_model, cpu_cores, cpu_features, memory_gib, free_memory_gib: see `hardware.host.Host`.
        machine: ``x86_64``, ``aarch64``...
        shared_memory: /dev/shm.
        overcommit: vm.overcommit_memory, 0 to 2.
        max_files: open files that this process may ask for.
        max_tasks: threads and processes this user or container may have.
        ports: how many ephemeral ports there are.
        loopback_error: why no port of 127.0.0.1 can be had; empty if one can.
        encoding: of standard output.
        clock_ahead_s: how far the newest of our own files is in the future (s); negative if not.
        disk_clock_s: what the disk's clock says minus what this machine says (s).
        clock_source: the kernel's, ``tsc`` for example.
        compiler: C compiler on PATH.
    """

    system: str = "Linux"
    python: tuple[int, ...] = (3, 11)
    unmet: tuple[str, ...] | None = ()
    in_container: bool = False
    cpu_model: str = ""
    cpu_cores: int = 8
    cpu_features: tuple[str, ...] = ("avx2", "avx512f")
    machine: str = "x86_64"
    memory_gib: float | None = None
    free_memory_gib: float | None = None
    shared_memory: Room | None = None
    overcommit: int | None = None
    max_files: int | None = None
    max_tasks: int | None = None
    ports: int | None = None
    loopback_error: str = ""
    encoding: str = "utf-8"
    clock_ahead_s: float | None = None
    disk_clock_s: float | None = None
    clock_source: str | None = None
    compiler: str | None = None


@dataclass(frozen=True)
class GpuFacts:
    """One GPU of this machine.

    Attributes:
        name: as the driver says.
        total_gib, free_gib: its memory.
        capability: compute capability.
        mig: in how many slices it is cut; None if it is not in MIG mode.
        compute_mode: ``default``, ``exclusive`` or ``prohibited``.
        holders: processes that hold its memory, in words.
    """

    name: str
    total_gib: float
    free_gib: float
    capability: tuple[int, int] | None = None
    mig: int | None = None
    compute_mode: str = "default"
    holders: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeviceFacts:
    """GPUs, from the bus up to what this process may use.

    Attributes:
        on_bus: makers of the display and compute devices on the PCI bus; None if it is not shown.
        nodes: device files of NVIDIA GPUs.
        kernel_driver: version of the loaded kernel module.
        nvml_error: why the driver's library does not answer; empty if it does.
        driver: the driver's version.
        cuda: CUDA version that the driver offers, ``12.4``.
        gpus: all GPUs that the driver shows here.
        setting: CUDA_VISIBLE_DEVICES, None if it is not set.
        visible: how many of them this process may use.
        mps: whether a multi-process service is in use.
    """

    on_bus: tuple[str, ...] | None = ()
    nodes: tuple[str, ...] = ()
    kernel_driver: str | None = None
    nvml_error: str = ""
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[GpuFacts, ...] = ()
    setting: str | None = None
    visible: int = 0
    mps: bool = False


@dataclass(frozen=True)
class EngineFacts:
    """What the engine's interpreter says.

    Attributes:
        python: path of the interpreter.
        error: why it cannot be asked; empty if it can.
        version: of the interpreter.
        versions: distribution → version, of those that were asked for and are there.
        torch_pins: distribution → the torch it asks for, as its metadata words it.
        headers: whether Python.h is there.
        imported: module → error of its import, empty if it worked; what is not there did not end
            in time, or is not installed.
        limit_s: how long that was waited for.
        torch_cuda: CUDA version torch was built for, empty for none.
        torch_sees: GPUs that torch sees.
        torch_says: what torch warns of.
        torch_archs: architectures torch was built for, ``sm_90``...
    """

    python: str = "python"
    error: str = ""
    version: str = "3.11.7"
    versions: dict[str, str] = field(default_factory=dict)
    torch_pins: dict[str, str] = field(default_factory=dict)
    headers: bool = True
    imported: dict[str, str] = field(default_factory=dict)
    limit_s: float = 10.0
    torch_cuda: str | None = None
    torch_sees: int | None = None
    torch_says: str = ""
    torch_archs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folder:
    """A folder that is written to.

    Attributes:
        what: what for.
        key: how it is set.
        path: where.
        error: why nothing can be written there; empty if it can.
        room: of its disk.
        local_locks: whether locks on its file system stay on this machine while others see it.
        network: whether it lies on a network's file system.
    """

    what: str
    key: str
    path: str
    error: str = ""
    room: Room | None = None
    local_locks: bool = False
    network: bool = False


@dataclass(frozen=True)
class Answer:
    """Whether somebody answers at an address.

    Attributes:
        address: without user and password.
        error: why not; empty if it does.
        status: of HTTP, where that was asked.
    """

    address: str
    error: str = ""
    status: int | None = None


@dataclass(frozen=True)
class OutsideFacts:
    """What is not on this machine.

    Attributes:
        mlflow: the tracking server; None if there is none, and an embedded one is used.
        mlflow_off: tracking is switched off.
        mlflow_address: as configured, without password; empty for the embedded one.
        hub: the model hub; None if it was not asked.
        offline: the hub's client is told to stay off the network.
        hub_cache: where its downloads lie.
        hub_token: whether a token for it is set.
        server: the server of an engine that drives one; None if it was not asked.
    """

    mlflow: Answer | None = None
    mlflow_off: bool = False
    mlflow_address: str = ""
    hub: Answer | None = None
    offline: bool = False
    hub_cache: str = ""
    hub_token: bool = False
    server: Answer | None = None


@dataclass(frozen=True)
class Wanted:
    """What the study asks for.

    Attributes:
        engine: its name.
        needs: what that needs.
        model: its name or path.
        source: ``embedded``, ``local`` or ``hub``.
        model_error: what is wrong with it; empty if nothing is known to be.
        model_here: whether its weights are on this machine.
        weights_gib: at 16 bits; None if not known.
        kind: ``cuda`` or ``cpu`` where hardware is described, ``auto`` for this machine.
        streams: most requests at once.
        recipes: quantization recipes that need environments of their own.
        eager: the engine is told not to compile.
        python: whether an interpreter of the engine's own is named.
    """

    engine: str = "vllm"
    needs: Needs = field(default_factory=Needs)
    model: str = "smollm2"
    source: str = "embedded"
    model_error: str = ""
    model_here: bool | None = None
    weights_gib: float | None = None
    kind: str = "auto"
    streams: int = 32
    recipes: tuple[str, ...] = ()
    eager: bool = False
    python: bool = False


@dataclass(frozen=True)
class Facts:
    """Everything that is judged.

    Attributes:
        orphans: study → processes of a killed run of it that still live.
        uv: path of uv.
    """

    wanted: Wanted = field(default_factory=Wanted)
    host: HostFacts = field(default_factory=HostFacts)
    devices: DeviceFacts = field(default_factory=DeviceFacts)
    engine: EngineFacts | None = None
    folders: tuple[Folder, ...] = ()
    outside: OutsideFacts = field(default_factory=OutsideFacts)
    orphans: dict[str, list[int]] = field(default_factory=dict)
    uv: str | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether an engine would run on a GPU here."""
        return self.wanted.kind != "cpu" and self.devices.visible > 0
