#!/bin/sh
# Nearest equivalent in SGLang, which was NOT RUN: every number and every limit below is of vLLM.
#   Where no flag is given, the default of SGLang holds.
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
# What became of each flag of vLLM:
# --data-parallel-size 2: --dp-size 2
# --quantization fp8_per_tensor: near: --quantization fp8 (its own scales when it loads the weights)
# --speculative-config {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":5}: near:
#   --speculative-algorithm NGRAM --speculative-num-draft-tokens 4 (it looks n-grams up in what it
#   has served, not in the prompt alone; the names of their lengths change between its versions)
set -eu
cd -- "$(dirname -- "$0")"
exec "${PYTHON:-python3}" -m sglang.launch_server \
    --model-path Qwen/Qwen2.5-7B-Instruct \
    --served-model-name qwen7b \
    --host 0.0.0.0 \
    --port 8000 \
    --revision a09a35458c702b33eeacc393d103063234e8bc28 \
    --dp-size 2 \
    --quantization fp8 \
    --speculative-algorithm NGRAM \
    --speculative-num-draft-tokens 4 \
    "$@"
