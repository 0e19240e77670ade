#!/bin/sh
# Starts the recommended server. PYTHON names the interpreter that vLLM is installed in.
# More flags can be given: they win over vllm.yaml (./start.sh --port 9000).
set -eu
cd "$(dirname "$0")"
exec "${PYTHON:-python3}" -m vllm.entrypoints.openai.api_server --config vllm.yaml "$@"
