# One command each, on a fresh clone too: every target sets up what it needs.
#
#   make sweep                                 a study of the embedded model on this machine
#   make sweep ARGS="budget.launches=3"        the same with overrides
#   make setup EXTRA=cpu                       choose the engine build: cpu, vllm or none

.DEFAULT_GOAL := help
VENV_PYTHON := .venv/bin/python
ARGS ?=
PORT ?= 5000
MLFLOW_DB := studies/mlflow.db
# Most tests wait for servers they have started, so there are more workers than cores. End-to-end tests are
# left out: two engines on few cores would slow each other down.
PARALLEL := -n 4 --dist worksteal

.PHONY: help setup sweep test test-unit chaos check format ui

help:
	@echo "make sweep [ARGS='key=value ...']   run a study (default: embedded model, this machine)"
	@echo "make test                           unit tests, chaos (100 launches), end-to-end tests on a real engine"
	@echo "make chaos [ARGS='--seed 2']        200 launches with random faults and kills, all checked"
	@echo "make check                          lint, formatting, types, architecture"
	@echo "make ui [PORT=5000]                 open MLflow on the studies made here"
	@echo "make setup [EXTRA=cpu|vllm|none]    only make the environment .venv"

setup:
	@PYTHON="$(PYTHON)" sh scripts/setup.sh $(EXTRA)

sweep: setup
	@$(VENV_PYTHON) -m sweeper $(ARGS)

test: setup
	$(VENV_PYTHON) -m pytest -q -m "not e2e and not chaos" $(PARALLEL)
	$(VENV_PYTHON) -m pytest -q -s -m chaos
	$(VENV_PYTHON) -m pytest -q -m e2e

test-unit: setup
	$(VENV_PYTHON) -m pytest -q -m "not e2e and not chaos" $(PARALLEL)

chaos: setup
	$(VENV_PYTHON) -m tests.chaos.run $(ARGS)

check: setup
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .
	$(VENV_PYTHON) -m mypy
	$(VENV_PYTHON) -m pytest -q tests/test_architecture.py

format: setup
	$(VENV_PYTHON) -m ruff check --fix .
	$(VENV_PYTHON) -m ruff format .

ui: setup
	@test -f $(MLFLOW_DB) || { echo "no study has been tracked here yet; run make sweep first"; exit 1; }
	@echo "open http://127.0.0.1:$(PORT)/#/experiments?workflowType=machine_learning"
	@MLFLOW_DISABLE_TELEMETRY=true $(VENV_PYTHON) -m mlflow ui --port $(PORT) --backend-store-uri "sqlite:///$(CURDIR)/$(MLFLOW_DB)"
