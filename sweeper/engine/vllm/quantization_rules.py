"""vLLM's error texts about quantized weights and KV caches. Pure."""

from __future__ import annotations

from sweeper.engine.rules import Rule, rule
from sweeper.verdicts import Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG

_SHARD = "lower tensor_parallel_size, or choose a checkpoint with another group size"
_LEAVE_OUT = "leave this quantization out on this device"

METHOD: tuple[Rule, ...] = (
    rule(
        "dtype_for_quantization",
        r"(?:torch\.)?(?P<dtype>\w{1,40}) is not supported for quantization method "
        r"(?P<quantization>[\w-]{1,60})"
        r"(?:\. Supported dtypes: \[(?P<supported_dtypes>[^\]]{1,200}))?",
        INFEASIBLE,
        "use one of the precisions that the message names, or another quantization",
        "0.32 and 0.33; awq and gptq take bfloat16 by then",
        dtype=str,
        quantization=str,
        supported_dtypes=str,
    ),
    rule(
        "device_too_old_for_quantization",
        r"The quantization method (?P<quantization>[\w +-]{1,60}) is not supported for the current "
        r"GPU\. Minimum capability: (?P<min_capability>\d+)\. Current capability: "
        r"(?:DeviceCapability\(.{0,60})?(?P<capability>\d+)?",
        INFEASIBLE,
        _LEAVE_OUT,
        "0.32 and 0.33",
        quantization=str,
        min_capability=int,
        capability=int,
    ),
    rule(
        "quantization_not_on_platform",
        r"(?P<quantization>[\w-]{1,60}) quantization is currently not supported (?:in|on) "
        r"(?P<platform>\w{1,40})",
        INFEASIBLE,
        _LEAVE_OUT,
        "0.32",
        quantization=str,
        platform=str,
    ),
    rule(
        "quantization_mismatch",
        r"Quantization method specified in the model config \((?P<checkpoint>\S+)\) does not "
        r"match the quantization method specified in the `quantization` argument "
        r"\((?P<quantization>\S+)\)",
        INFEASIBLE,
        "use the checkpoint's own quantization, or a checkpoint made for the one asked for",
        "0.32",
        checkpoint=str,
        quantization=str,
    ),
    rule(
        "unknown_quantization",
        r"(?:Unknown|Invalid) quantization method: (?P<quantization>[\w-]{1,60})"
        r"|The quantization method (?P<deprecated>[\w%-]{1,60}) is deprecated",
        INFEASIBLE,
        "the installed version does not have this quantization; use one that the message names",
        "0.32",
        quantization=str,
        deprecated=str,
    ),
    rule(
        "no_online_quantization",
        r"The `(?P<quantization>\w+)` quantization method no longer supports online quantization"
        r"(?:.*`--quantization (?P<replacement>\w+)`)?",
        INFEASIBLE,
        "use the replacement that the message names, or a checkpoint quantized beforehand",
        "0.32 and 0.33",
        quantization=str,
        replacement=str,
    ),
    rule(
        "quantization_config_missing",
        r"Cannot find the config file for (?P<quantization>[\w-]{1,60})"
        r"|Cannot find any of \[.{1,200}\] in the model's quantization config",
        INFEASIBLE,
        "the checkpoint is not quantized this way: use one that is, or leave the quantization out",
        "0.32",
        quantization=str,
    ),
    rule(
        "no_quantized_kernel",
        r"Failed to find a kernel that can implement the (?P<layer>[\w ]{1,60}?)(?: linear)? layer"
        r"|No (?P<format>[\w-]{1,40}) compatible scheme was found",
        INFEASIBLE,
        "no kernel of this build can compute this quantization here: use another one, or another "
        "tensor_parallel_size if shapes are the reason",
        "0.32",
        layer=str,
        format=str,
    ),
    rule(
        "not_built_for_cpu",
        r"_C::(?P<kernel>\w+)\(\) expected at most 0 argument"
        r"|'_OpNamespace' '_C' object has no attribute '(?P<operator>\w+)'",
        INFEASIBLE,
        "this build of vLLM lacks the kernel: leave the quantization out on this platform",
        "0.32, CPU builds (text of torch)",
        kernel=str,
        operator=str,
    ),
    rule(
        "checkpoint_unsupported",
        r"activation ordering \(actorder=.{1,80}no longer supported"
        r"|Sparsity support has been removed from compressed-tensors"
        r"|Unsupported quantization config: bits=(?P<bits>\d+)"
        r"|Unsupported num_bits = (?P<num_bits>\d+)|only supports? 4bit now",
        INFEASIBLE,
        "the installed version cannot read this checkpoint: use one made for it",
        "0.32 and 0.33",
        bits=int,
        num_bits=int,
    ),
)

SHAPES: tuple[Rule, ...] = (
    rule(
        "shard_not_divisible",
        r"(?:in|out)put_(?:size_per_partition|partition_size|size of \w{1,10}'s weight)"
        r" ?= ?(?P<partition>\d+)(?: for layer '[^']{1,200}')? is not divisible by\s{1,4}"
        r"(?:min_thread_[kn]|group_size|weight quantization block_[nk]) ?= ?(?P<divisor>\d+)",
        INFEASIBLE,
        _SHARD,
        "0.32; group_size also 0.33",
        partition=int,
        divisor=int,
    ),
    rule(
        "shard_not_divisible",
        r"(?:(?:in|out)put_size of \w{1,10}'s and up's weight = (?P<partition>\d+)|\(2 \* "
        r"intermediate_size_per_partition = (?P<channels>\d+)\)|hidden_size \((?P<hidden>\d+)\)) "
        r"(?:is not|must be) divisible by (?:weight quantization block_[nk] = (?P<divisor>\d+)"
        r"|packed_factor \((?P<packed_factor>\d+)\))",
        INFEASIBLE,
        _SHARD,
        "0.32, mixture of experts",
        partition=int,
        channels=int,
        hidden=int,
        divisor=int,
        packed_factor=int,
    ),
    rule(
        "shard_not_aligned",
        r"The (?P<side>input|output) size is not aligned with the quantized weight shape",
        INFEASIBLE,
        _SHARD,
        "0.32",
        side=str,
    ),
    rule(
        "kernel_shape",
        r"size_[kn] must (?:be )?divisible by BLOCK_SIZE_[KN]",
        INFEASIBLE,
        _SHARD,
        "0.8; strikes at the first request only",
    ),
    rule(
        "size_not_divisible",
        r"^(?:AssertionError: )?(?P<size>\d+) is not divisible by (?P<divisor>\d+)$",
        INFEASIBLE,
        "a size of the model does not divide by tensor_parallel_size: choose one that divides it",
        "0.32",
        size=int,
        divisor=int,
    ),
)

KV_CACHE: tuple[Rule, ...] = (
    rule(
        "fp8_on_old_device",
        r"type fp8e4nv not supported in this architecture"
        r"|FP8 KV cache is not supported by the (?P<backend>\w{1,60})(?: MLA| attention) backend"
        r"(?:.{0,200}compute capability (?P<capability>\d{1,2}(?:\.\d)?))?"
        r"(?:.*Re-run with --kv-cache-dtype (?P<suggested_kv_cache_dtype>\w+))?"
        r"|cannot store kv_cache_dtype=(?P<kv_cache_dtype>\w{1,40})\s+on this device",
        INFEASIBLE,
        "this device has no native FP8: leave kv_cache_dtype and quantization without fp8",
        "the first wording is Triton's; the second 0.32 and 0.33",
        backend=str,
        capability=float,
        suggested_kv_cache_dtype=str,
        kv_cache_dtype=str,
    ),
    rule(
        "bfloat16_kv_cache_on_old_device",
        r"bfloat16 KV cache is not supported"
        r"(?:.{0,200}compute capability (?P<capability>\d{1,2}(?:\.\d)?))?"
        r"(?:.*Re-run with --kv-cache-dtype (?P<suggested_kv_cache_dtype>\w+))?",
        INFEASIBLE,
        "use the kv_cache_dtype that the message suggests",
        "0.32",
        capability=float,
        suggested_kv_cache_dtype=str,
    ),
    rule(
        "fp8_kv_cache_on_cpu",
        r"FP8 KV cache on CPU requires|FP8 KV cache requires head_size divisible"
        r"|FP8 KV cache is not yet supported with KV transfer on CPU",
        INFEASIBLE,
        "this processor has no kernel for it: leave kv_cache_dtype at auto",
        "0.32, CPU",
    ),
    rule(
        "kv_cache_dtype_with_checkpoint",
        r"fp8_e5m2 kv-cache is not supported with fp8 checkpoints"
        r"|nvfp4 KV cache is not supported with MLA"
        r"|Only support per-tensor scaling factor for fp8 KV cache",
        INFEASIBLE,
        "choose another kv_cache_dtype for this checkpoint (auto, or fp8_e4m3)",
        "0.32",
    ),
)

QUANTIZATION: tuple[Rule, ...] = (*METHOD, *SHAPES, *KV_CACHE)
