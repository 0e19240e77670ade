#!/bin/sh
# Nearest equivalent in TensorRT-LLM, which was NOT RUN: every number and every limit below is of
#   vLLM. Where no flag is given, the default of TensorRT-LLM holds.
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
# Clients ask for the model by the last part of its path: there is no other name for it.
# What became of each flag of vLLM:
# --data-parallel-size 2: NO EQUIVALENT in TensorRT-LLM (start as many servers behind a proxy; its
#   attention_dp is another thing)
# --quantization fp8_per_tensor: NO EQUIVALENT in TensorRT-LLM (it takes the precision from the
#   checkpoint: make one with NVIDIA ModelOpt, and measure it)
# --speculative-config {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":5}: near:
#   speculative_config: {"decoding_type": "NGram", "max_draft_len": 4, "max_matching_ngram_size": 5}
#   (it looks n-grams up in a pool that all requests share)
set -eu
cd -- "$(dirname -- "$0")"
exec trtllm-serve serve \
    --host 0.0.0.0 \
    --port 8000 \
    --revision a09a35458c702b33eeacc393d103063234e8bc28 \
    --config trtllm.yaml \
    "$@" \
    -- Qwen/Qwen2.5-7B-Instruct
