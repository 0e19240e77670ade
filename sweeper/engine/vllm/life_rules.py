"""vLLM's error texts about its command line, its compiler and the life of its processes. Pure."""

from __future__ import annotations

import re

from sweeper.engine.rules import Rule, rule
from sweeper.verdicts import Verdict

CAPACITY = Verdict.CAPACITY
INFEASIBLE = Verdict.INFEASIBLE_CONFIG
INFRA = Verdict.INFRA
STARTUP_TIMEOUT = Verdict.STARTUP_TIMEOUT

_LASTING = (
    r"(?!.{0,400}?(?i:time[ds]? ?out|connect|network|download|https?:|cache_?dir|disk"
    r"|no such file|\block|busy|temporar|corrupt|out of memory|free memory|retry))"
)
_EAGER = "or run without compilation (enforce_eager=true)"

COMMAND_LINE: tuple[Rule, ...] = (
    rule(
        "unknown_flag",
        r"error: unrecognized arguments: (?P<unrecognized_arguments>.+)",
        INFEASIBLE,
        "the installed version does not know this flag: remove or rename it in engine.args or the "
        "space",
        "any",
        unrecognized_arguments=str,
    ),
    rule(
        "bad_flag_value",
        r"error: (?:argument (?P<argument>\S{1,200}): |ambiguous option: |the following arguments "
        r"are required: )(?:\d+ validation errors? for |(?P<problem>.+))",
        INFEASIBLE,
        "give the flag a value that the installed version accepts",
        "any",
        argument=str,
        problem=str,
    ),
    # Whatever else the program says of its command line.
    rule(
        "bad_flag_value",
        r"^(?:\S{0,80}\.py|vllm(?: [\w-]{1,40}){0,2}): error: (?P<problem>.+)",
        INFEASIBLE,
        "change the flags that the cause names",
        "any",
        problem=str,
    ),
    rule(
        "flags_exclude_each_other",
        r"(?P<first>[\w.'\[\]-]{1,120}) and (?P<second>[\w.'\[\]-]{1,120}) are mutually exclusive",
        INFEASIBLE,
        "give one of the two",
        "0.32",
        first=str,
        second=str,
    ),
    rule(
        "unknown_variable",
        r"Unknown vLLM environment variable detected: (?P<variable>\w{1,100})",
        INFEASIBLE,
        "remove the variable from engine.env or from the shell",
        "0.32",
        variable=str,
    ),
)

COMPILER: tuple[Rule, ...] = (
    rule(
        "compile_cache_corrupt",
        r"vLLM failed to compile the model.*previous compilation failed"
        r"|Expected tensors only, but got: <class 'int'>"
        r"|Inductor cache lookup failed",
        INFRA,
        "remove the engine's cache (folder vllm in sweeper's cache) and try again",
        "0.32 and 0.33",
    ),
    rule(
        "compiler_missing",
        r"Failed to find C compiler|InvalidCxxCompiler|No working C\+\+ compiler"
        r"|Could not find (?:nvcc|CUDA_HOME|CUDA installation)"
        r"|CUDA_HOME environment variable is not"
        r"|Ninja is required|Python\.h: No such file"
        r"|No such file or directory: '(?:\S{0,200}/)?(?:gcc|g\+\+|cc|clang|nvcc|ninja|ptxas)'"
        r"|\b(?:gcc|g\+\+|nvcc|ninja): (?:command )?not found|cannot find -lcuda",
        INFRA,
        f"install a C compiler with Python's headers (and nvcc, ninja for FlashInfer), {_EAGER}",
        "any",
    ),
    rule(
        "compiler_out_of_memory",
        r"died due to signal 9\b|Killed signal terminated program cc1",
        INFRA,
        "the kernel ended the compiler for want of the machine's memory: compile fewer files at "
        f"once (env.MAX_JOBS=2), {_EAGER}",
        "any",
    ),
    rule(
        "kernel_resources",
        r"OutOfResources: out of resource: (?P<resource>[\w ]{1,40}), Required: "
        r"(?P<required>\d+), Hardware limit: (?P<limit>\d+)",
        INFEASIBLE,
        "a kernel of this combination is too large for the device: choose another quantization, "
        "attention backend or block_size",
        "any",
        resource=str,
        required=int,
        limit=int,
    ),
    rule(
        "compile_failed",
        r"\bInductorError\b|BackendCompilerFailed|CppCompileError|\bLoweringException\b"
        r"|triton\.compiler\.errors\.\w+|^CompilationError: at |PassManager::run failed"
        r"|torch\._dynamo\.exc\.\w+|\bPTXASError\b|ptxas fatal|^LLVM ERROR: ",
        INFEASIBLE,
        f"the compiler fails on this combination: leave it out, {_EAGER}",
        "any",
    ),
    # What the compiler said stands below it.
    rule(
        "compile_failed",
        r"ninja: build stopped|Ninja build failed"
        r"|CalledProcessError: Command .{0,400}\b(?:gcc|g\+\+|nvcc|ninja|ptxas)\b",
        INFEASIBLE,
        f"the compiler fails on this combination: leave it out, {_EAGER}",
        "any",
        follows=True,
    ),
)

KERNELS: tuple[Rule, ...] = (
    rule(
        "no_kernel_for_device",
        r"no kernel image is available for execution on the device|cudaErrorNoKernelImageForDevice"
        r"|FlashInfer requires GPUs with sm\d{2,3} or higher"
        r"|No supported CUDA architectures found for major versions",
        INFEASIBLE,
        "this build has no kernel of this combination for this device: leave it out; if the "
        "defaults fail too, install a build for this GPU",
        "any",
    ),
    rule(
        "kernel_fault",
        r"CUDA error: (?P<kernel_fault>an illegal memory access|device-side assert"
        r"|misaligned address|unspecified launch failure|an illegal instruction"
        r"|invalid configuration argument|invalid argument|operation not supported)"
        r"|cudaErrorIllegalAddress|CUBLAS_STATUS_(?:EXECUTION_FAILED|NOT_SUPPORTED|INVALID_VALUE"
        r"|INTERNAL_ERROR)|Error Internal\b",
        INFEASIBLE,
        "a kernel of this combination fails on this device: leave it out, or try another "
        "quantization, attention backend or enforce_eager; if everything fails, check the device",
        "any",
        kernel_fault=str,
    ),
)

PROCESSES: tuple[Rule, ...] = (
    rule(
        "engine_not_ready_in_time",
        r"Timed out waiting for (?:new )?engine core processes to start"
        r"|Did not receive response from front-end process within"
        r"|failed to report ZMQ addresses within timeout",
        STARTUP_TIMEOUT,
        "raise env.VLLM_ENGINE_READY_TIMEOUT_S if the engine was still at work (large weights, "
        "slow disk)",
        "0.32",
        follows=True,
    ),
    rule(
        "worker_silent",
        r"RPC call to (?P<call>\w{1,80}) timed out|Engine iteration timed out",
        INFRA,
        "a worker hangs: look at the last lines of each worker, at NCCL and at the devices",
        "0.32",
        follows=True,
        call=str,
    ),
    rule(
        "ray_too_few_devices",
        r"number of required \w+ exceeds the total number of available \w+ in the placement group"
        r"|current platform \S{1,60} does not support ray",
        INFEASIBLE,
        "lower tensor_parallel_size · pipeline_parallel_size to the devices of the Ray cluster",
        "0.32",
    ),
    rule(
        "ray",
        r"Cannot provide a placement group|No available node types can fulfill"
        r"|Current node has no \w{1,20} available|You don't have enough GPUs available"
        r"|Ray does not allocate any GPUs|installation of ray|Failed to import Ray"
        r"|Ray version \S{1,40} is required|Ray is not initialized|Ray workers have not started"
        r"|Could not find any running Ray instance|RaySystemError|Failed to connect to GCS"
        r"|Every node should have a unique IP address",
        INFRA,
        "the Ray cluster is not there or its devices are taken: look at `ray status`, or use "
        "distributed_executor_backend=mp on one machine",
        "0.32",
    ),
    rule(
        "package_missing",
        r"(?:ModuleNotFound|Import)Error: (?:No module named '?(?P<module>[\w.]{1,100})"
        r"|[Pp]lease install (?P<package>[\w.\[\]-]{1,100})|(?P<needed>[\w .-]{1,60}?) is required)"
        r"|Arctic Inference is required for suffix decoding",
        INFEASIBLE,
        "what was asked for needs a package that is not installed: install it in the engine's "
        "interpreter, or leave it out",
        "any",
        module=str,
        package=str,
        needed=str,
    ),
    rule(
        "versions_do_not_fit",
        r"ImportError: cannot import name '(?P<imported>\w{1,100})' from "
        r"'(?P<module>[\w.]{1,200})'",
        INFRA,
        "packages of the engine's interpreter do not fit each other: install the engine anew",
        "any",
        imported=str,
        module=str,
    ),
)

LAST_RESORT: tuple[Rule, ...] = (
    # Whatever the text: the engine itself says that it has no code for what was asked.
    rule(
        "not_implemented",
        r"NotImplementedError: (?P<not_implemented>.+)",
        INFEASIBLE,
        "the installed version has no implementation for this combination: leave it out",
        "any",
        not_implemented=str,
    ),
    # Whatever the text: the engine checked its configuration and refused it.
    rule(
        "configuration_refused",
        r"ValidationError: \d+ validation errors? for \w{0,60}(?:Config|Args)\b",
        INFEASIBLE,
        "the engine refuses this configuration: give what the cause names a value that it takes, "
        "or leave it out",
        "0.32",
    ),
    rule(
        "zero_size",
        r"ZeroDivisionError: ",
        INFEASIBLE,
        "a size of this deployment is 0 somewhere: give parallel sizes and block_size of 1 or more",
        "0.32",
    ),
    # Whatever the text, by where it was raised. A check in the code that reads the configuration,
    # or builds the model's layers by it, comes to the same result at every start. Words of what
    # comes and goes (files, networks, waiting) leave the text unknown, which is tried once more;
    # so do classes that a mistake in the code raises as well (KeyError, TypeError).
    Rule(
        "refused_by_engine",
        re.compile(rf"^ValueError: {_LASTING}|^AssertionError\b{_LASTING}"),
        INFEASIBLE,
        "a check of the engine refuses this configuration or model: change what the cause names, "
        "or leave the combination out",
        "any",
        raised_in=re.compile(
            r"/vllm/(?:config(?:\.py|/)|engine/arg_utils\.py|platforms/|attention/|v1/attention/"
            r"|v1/spec_decode/|lora/|models/"
            r"|model_executor/(?:layers/|models/|kernels/|parameter\.py|model_loader/__init__\.py"
            r"|model_loader/utils\.py))"
        ),
    ),
)
