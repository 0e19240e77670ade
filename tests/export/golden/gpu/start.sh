#!/bin/sh
# Recommended deployment of qwen7b: study chat-h200, trial 1 (search), deployment 5f99392616c3.
# Measured at concurrency 8 (n = 192 requests): 149.7 output tokens/s [147.7, 151.7], time to first
#   token P95 100 ms [100, 100], time per output token P95 20 ms [20, 20], end-to-end P95 601.4 ms
#   [593.3, 609.5].
# Confirmed: better by 49.7 % [45.2, 54.3] than the defaults at the same load.
# Keeps the SLO e2e_p95_ms=1000.
# Engine vllm 0.33.0 (vllm, cuda), on 2 x NVIDIA H200 (140 GiB), driver 580.65.
# Admission limit: 8 concurrent requests a server. vLLM queues what comes above it and never
#   refuses: limit admission in front of it.
# Checkpoint made by sweeper: recipe w4a16 of llmcompressor (bits=4, group_size=64); digest
#   d41c88f0b1e64c0a9a6f2f7f3f1d5e77; made with llmcompressor 0.14.0, torch 2.13.0.
# /data/checkpoints/9f3c1a7be0d24c55 is in the cache of sweeper, from which `python -m sweeper
#   checkpoints` or quantize.cache_limit_gib may remove it: copy the folder, and name the copy as
#   the model.
#
# More flags can be given and win over vllm.yaml: ./start.sh --port 9000
# Not exported, set VLLM_API_KEY yourself.
set -eu
cd -- "$(dirname -- "$0")"
export NCCL_DEBUG=WARN
export VLLM_ATTENTION_BACKEND=FLASHINFER
# PYTHON names the interpreter that has vLLM; without it `vllm` is looked up in PATH.
if [ -n "${PYTHON:-}" ]; then
    exec "$PYTHON" -m vllm.entrypoints.cli.main serve --config vllm.yaml "$@"
fi
exec vllm serve --config vllm.yaml "$@"
