"""What any engine on a machine may run into: memory of the host, disk, devices, libraries. Pure.

Errors of the operating system are known by their number first: their words are translated by the
locale, and in the bytes of any encoding.
"""

from __future__ import annotations

from sweeper.engine.exit_codes import ending
from sweeper.engine.rules import Rule, rule
from sweeper.verdicts import Verdict

CAPACITY = Verdict.CAPACITY
INFEASIBLE = Verdict.INFEASIBLE_CONFIG
INFRA = Verdict.INFRA

_SHARED_MEMORY = ending(-7).remedy
_LESS_HOST_MEMORY = (
    "the machine's own memory (not a GPU's) is full: lower cpu_offload_gb (on a CPU engine "
    "gpu_memory_utilization, max_num_seqs or max_num_batched_tokens), use a smaller model, or "
    "raise the container's memory limit"
)

HOST: tuple[Rule, ...] = (
    rule(
        "too_many_files",
        r"\[Errno 24\]|Too many open files|\bos error 24\b",
        INFRA,
        "raise the limit of open files (ulimit -n 65536; --ulimit nofile on Docker)",
    ),
    rule(
        "shared_memory",
        r"[Uu]nable to (?:open|mmap|resize|allocate|write to)\b.{0,80}\bshared memory"
        r"|insufficient shared memory|Unexpected bus error|^Bus error|Fatal Python error: Bus error"
        r"|\bSIGBUS\b|Error while creating shared memory segment"
        r"|\[Errno 28\].{0,200}(?:/dev/shm|/psm_|torch_shm)"
        r"|No space left on device.{0,200}(?:/dev/shm|/psm_|torch_shm)"
        r"|/dev/shm.{0,200}(?:\[Errno 28\]|No space left on device)",
        INFRA,
        _SHARED_MEMORY,
        every_launch=True,
    ),
    rule(
        "disk_full",
        r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded|\bos error 28\b",
        INFRA,
        "free disk space or /dev/shm",
        every_launch=True,
    ),
    rule(
        "read_only",
        r"\[Errno 30\]|Read-only file system|\bos error 30\b",
        INFRA,
        "a folder that must be written is read-only: mount it writable, or set another cache_dir",
        every_launch=True,
    ),
    rule(
        "permission_denied",
        r"\[Errno 13\]|PermissionError\b|Permission denied|\bos error 13\b",
        INFRA,
        "this user may not read or write the path that the text names: change its owner or mode",
    ),
    rule(
        "host_out_of_memory",
        r"Out of memory: Kill|oom-kill|oom_reaper|OOMKilled|Memory cgroup out of memory"
        r"|killed due to memory pressure|due to the node running low on memory",
        CAPACITY,
        _LESS_HOST_MEMORY,
    ),
    rule(
        "host_out_of_memory",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|^MemoryError\b"
        r"|\[Errno 12\]|Cannot allocate memory|std::bad_alloc|\bos error 12\b"
        r"|ArrayMemoryError\b|Unable to allocate [\d.]+ [KMGT]?i?B for an array",
        CAPACITY,
        _LESS_HOST_MEMORY,
    ),
    rule(
        "too_many_threads",
        r"can't start new thread|pthread_create failed|Thread creation failed"
        r"|Resource temporarily unavailable|\[Errno 11\]",
        INFRA,
        "raise the limit of processes (ulimit -u; pids limit of the container)",
        every_launch=True,
    ),
    rule(
        "port_taken",
        r"[Aa]ddress already in use|\[Errno 98\]|\bEADDRINUSE\b",
        INFRA,
        "another program has the port: end it or use another port (a study does that by itself)",
    ),
    rule(
        "illegal_instruction",
        r"^Illegal instruction|Fatal Python error: Illegal instruction|\bSIGILL\b",
        INFRA,
        ending(-4).remedy,
        every_launch=True,
    ),
)
"""The machine itself: its limits, its disks, its memory."""

LIBRARIES: tuple[Rule, ...] = (
    rule(
        "no_device",
        r"libcuda\.so(?:\.1)?: cannot open shared object file",
        INFRA,
        "no driver is seen: start the container with --gpus all, or install the driver",
        every_launch=True,
    ),
    rule(
        "library_missing",
        r"(?P<library>lib[\w.+-]{1,80}\.so[\w.]{0,20}): cannot open shared object file",
        INFRA,
        "the library that the text names is not installed or not in LD_LIBRARY_PATH: reinstall the "
        "engine for the CUDA of this machine",
        every_launch=True,
        library=str,
    ),
    rule(
        "library_mismatch",
        r"undefined symbol: (?P<symbol>\w{1,300})"
        r"|version `(?P<version>GLIBC(?:XX)?_[\d.]+)' not found"
        r"|operator torchvision::nms does not exist|PackageNotFoundError: .{0,80}\bvllm\b",
        INFRA,
        "parts of the installation do not fit each other: install engine and torch anew, together "
        "(and no torchvision that belongs to another torch)",
        every_launch=True,
        symbol=str,
        version=str,
    ),
    rule(
        "engine_missing",
        r"No module named '?(?P<module>vllm|torch|transformers|sweeper)\b",
        INFRA,
        "install it in the engine's interpreter, see engine.python",
        every_launch=True,
        module=str,
    ),
)
"""Programs and libraries that are not there, or not of one make."""

DEVICES: tuple[Rule, ...] = (
    rule(
        "driver_too_old",
        r"CUDA driver version is insufficient for CUDA runtime version"
        r"|NVIDIA driver on your system is too old(?: \(found version (?P<driver_version>\d+)\))?"
        r"|forward compatibility was attempted on non supported HW"
        r"|provided PTX was compiled with an unsupported toolchain"
        r"|Driver/library version mismatch|cudaErrorInsufficientDriver",
        INFRA,
        "driver and CUDA runtime do not fit: update the driver (and reboot), or install an engine "
        "built for an older CUDA",
        every_launch=True,
        driver_version=int,
    ),
    rule(
        "no_device",
        r"No CUDA GPUs are available|no CUDA-capable device is detected|Found no NVIDIA driver"
        r"|Failed to infer device type|Can't initialize NVML|NVMLError_(?:DriverNotLoaded"
        r"|LibraryNotFound|Unknown|NoPermission)|NVIDIA-SMI has failed|cudaErrorNoDevice"
        r"|Torch not compiled with CUDA enabled|CUDA unknown error|No HIP GPUs are available"
        r"|system not yet initialized",
        INFRA,
        "no device is seen: check nvidia-smi, CUDA_VISIBLE_DEVICES and the container's --gpus (and "
        "the fabric manager on NVSwitch machines)",
        every_launch=True,
    ),
    rule(
        "device_broken",
        r"uncorrectable ECC error|fallen off the bus|GPU is lost|NVMLError_GpuIsLost"
        r"|Uncorrectable NVLink error|hardware error encountered"
        r"|NVRM: Xid \([^)]{0,60}\): (?P<xid>48|6[1-4]|74|79|92|9[45]|119|120|140|143)\b",
        INFRA,
        "the device reports a fault of its hardware: look at dmesg and nvidia-smi -q, reset it or "
        "take it out",
        every_launch=True,
        xid=int,
    ),
    rule(
        "device_busy",
        r"CUDA-capable device(?:\(s\)|s)? (?:is/are|is|are) busy or unavailable"
        r"|cudaErrorDevicesUnavailable",
        INFRA,
        "another program holds the device for itself (compute mode exclusive?): end it",
    ),
)
"""Devices and their driver."""

COMMUNICATION: tuple[Rule, ...] = (
    rule(
        "nccl",
        r"NCCL error:? (?:in: [^,]{1,300}, )?(?P<nccl_error>[^(,\n]{1,120}[^(,\s])"
        r"|\bnccl(?P<nccl_code>(?:UnhandledCuda|System|Internal|Remote|InvalidUsage)Error)\b"
        r"|Watchdog caught (?P<watchdog>collective operation timeout)"
        r"|Duplicate GPU detected",
        INFRA,
        "communication between the devices failed, not the deployment: run with "
        "env.NCCL_DEBUG=INFO, and leave tensor_parallel_size at 1 if it persists",
        follows=True,
        nccl_error=str,
        nccl_code=str,
        watchdog=str,
    ),
    rule(
        "rendezvous",
        r"DistNetworkError|DistStoreError|Gloo connectFullMesh failed|gloo/transport/tcp"
        r"|Timed out after \d{1,9} seconds? waiting for clients|TCPStore\b.{0,80}(?:fail|timed out)"
        r"|\[Errno (?:101|104|110|111|113)\]|Temporary failure in name resolution",
        INFRA,
        "the processes of the engine did not find or lost each other: see the first process that "
        "ended, and whether a firewall, proxy or VLLM_HOST_IP is in the way",
        follows=True,
    ),
)
"""Between processes: what fails here is often the echo of a worker that has died before."""

SURROUNDINGS: tuple[Rule, ...] = (*HOST, *LIBRARIES, *DEVICES, *COMMUNICATION)
