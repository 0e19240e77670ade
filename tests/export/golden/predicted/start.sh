#!/bin/sh
# Predicted deployment of qwen7b: study what-if, trial 1 (search), deployment 5f99392616c3.
# PREDICTED, NOT MEASURED at concurrency 8 (n = 64 requests): 150 output tokens/s [147, 153], time
#   to first token P95 100 ms [98, 102], time per output token P95 20 ms [19.6, 20.4], end-to-end
#   P95 700 ms [686, 714].
# These numbers are predicted, not measured: measure before relying on them.
# Keeps the SLO e2e_p95_ms=1000.
# Engine simulate 0.13.0 (aisimulate, cuda), on 2 x h200 (140 GiB).
# Admission limit: 8 concurrent requests a server. vLLM queues what comes above it and never
#   refuses: limit admission in front of it.
#
# More flags can be given and win over vllm.yaml: ./start.sh --port 9000
set -eu
cd -- "$(dirname -- "$0")"
# PYTHON names the interpreter that has vLLM; without it `vllm` is looked up in PATH.
if [ -n "${PYTHON:-}" ]; then
    exec "$PYTHON" -m vllm.entrypoints.cli.main serve --config vllm.yaml "$@"
fi
exec vllm serve --config vllm.yaml "$@"
