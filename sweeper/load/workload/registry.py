"""Kinds of workload by name, each imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module

from sweeper.config.schema import WorkloadConfig
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.load.prompts import Bank, sentences_sha256
from sweeper.load.workload.item import Workload
from sweeper.load.workload.source_file import read_source

WORKLOADS = {
    "synthetic": "sweeper.load.workload.synthetic:Synthetic",
    "shared_prefix": "sweeper.load.workload.shared_prefix:SharedPrefix",
    "conversation": "sweeper.load.workload.conversation:Conversation",
    "file": "sweeper.load.workload.file:FromFile",
    "standard": "sweeper.load.workload.standard:Standard",
    "trace": "sweeper.load.workload.trace:TraceReplay",
}


def create(cfg: WorkloadConfig, bank: Bank, seed: int) -> Workload:
    """The workload of the configuration.

    Args:
        cfg: `workload` group of the configuration, checked.
        bank: sentences in the model's tokens, see `sweeper.load.prompts.tokenize_bank`.
        seed: of prompts and lengths.

    Raises:
        ConfigError: no workload of that kind, or a file that cannot be read.
    """
    place = WORKLOADS.get(cfg.kind)
    if place is None:
        raise ConfigError(
            f"workload.kind={cfg.kind} is no workload",
            did_you_mean(cfg.kind, WORKLOADS, what="workloads"),
        )
    module, _, variant = place.partition(":")
    workload: Workload = getattr(import_module(module), variant)(cfg, bank, seed)
    return workload


def content_sha256(cfg: WorkloadConfig) -> str:
    """Of the texts behind a workload: its file, the standard suite, or the bank of sentences.

    Raises:
        ConfigError: a file that cannot be read.
    """
    if cfg.path is not None:
        return read_source(cfg.path).sha256
    if cfg.kind == "standard":
        from sweeper.load.workload.standard import suite

        return suite().sha256
    return sentences_sha256()
