"""A study's identity: what changes it, what does not, and how a difference is told."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.compose import compose
from sweeper.config.document import from_plain, to_plain, to_yaml
from sweeper.config.identity import differences, identity_hash, study_identity
from sweeper.config.names import study_name, study_name_fault
from sweeper.config.schema import QualityConfig, SweeperConfig

QUICK = settings(max_examples=50, deadline=None)
ENGINE = {"name": "vllm", "version": "0.32.0", "device": "cpu"}
HARDWARE = {"name": "cpu", "device_count": 1, "free_memory_gib": 11.0}


@cache
def composed(*overrides: str) -> SweeperConfig:
    return compose(list(overrides))


def identity_of(
    *overrides: str, model: dict[str, Any] | None = None, **hardware: Any
) -> dict[str, Any]:
    return study_identity(
        composed(*overrides),
        model=model or {"name": "m"},
        engine=ENGINE,
        hardware={**HARDWARE, **hardware},
    )


@pytest.mark.parametrize(
    "override",
    [
        "budget.launches=9",
        "sampler=random",
        "sampler.seed=2",
        "study=other",
        "space.seeds=[]",
        "space.name=renamed",
        "load.request_timeout_s=7",
        "select.prefer=latency",
        "export.port=9000",
        "tracking=none",
    ],
)
def test_what_changes_no_number_changes_no_identity(override: str) -> None:
    assert identity_of(override) == identity_of()


@pytest.mark.parametrize(
    "override",
    [
        "space.parameters.block_size=[16,32]",
        "space.fixed.max_num_seqs=8",
        "workload.output_tokens=17",
        "workload.seed=2",
        "load.concurrency=[1,2]",
        "quality.reference_tokens=8",
        "objective=point",
        "engine.args.seed=3",
        "engine.env.A=1",
        "model.dtype=float32",
    ],
)
def test_what_changes_a_number_changes_the_identity(override: str) -> None:
    assert identity_hash(identity_of(override)) != identity_hash(identity_of())


def test_free_memory_is_not_part_of_it() -> None:
    assert identity_of(free_memory_gib=3.0) == identity_of()
    assert identity_of(device_count=2) != identity_of()


def test_cores_and_driver_are_part_of_it() -> None:
    assert identity_of(cpu_cores=2) != identity_of(cpu_cores=4)
    assert identity_of(driver="550.1") != identity_of(driver="560.2")


def test_the_same_files_in_another_folder_are_the_same_model() -> None:
    known = {"name": "m", "digest": "abc"}
    here, there = {**known, "path": "/cache/m"}, {**known, "path": "/other/m"}
    assert identity_of(model=here) == identity_of(model=there)
    assert identity_of(model=here) != identity_of(model={**here, "digest": "abd"})
    assert identity_of(model={**here, "digest": None}) != identity_of(
        model={**there, "digest": None}
    )


def test_the_promise_counts_only_where_it_steers_the_search() -> None:
    slo = "select.slo.ttft_p95_ms=500"
    assert identity_of(slo) == identity_of()
    assert identity_of("objective=slo", slo) != identity_of(
        "objective=slo", "select.slo.ttft_p95_ms=600"
    )


def test_a_difference_names_key_before_and_after() -> None:
    lines = differences(identity_of("space.parameters.block_size=[16,32]"), identity_of())
    assert lines == ['space.parameters.block_size: [16, 32] → ["default", 32, 64]']
    gone = differences(identity_of("space.parameters.flag.x=[1,2]"), identity_of())
    assert gone == ["space.parameters.flag.x: [1, 2] → absent"]
    assert differences({"a": None}, {}) == ["a: null → absent"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(st.text(min_size=1, max_size=4), json_values, max_size=5)


@QUICK
@given(mappings, st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_order(data: dict[str, Any], draw: random.Random) -> None:
    keys = list(data)
    draw.shuffle(keys)
    assert identity_hash(data) == identity_hash({key: data[key] for key in keys})


@QUICK
@given(mappings, mappings)
def test_differences_are_none_exactly_for_equal_identities(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert differences(old, old) == []
    assert bool(differences(old, new)) == (identity_hash(old) != identity_hash(new))


def test_names_of_studies() -> None:
    assert study_name(compose([])) == "smollm2-cpu-vllm"
    assert study_name(compose(["study=x"])) == "x"
    derived = study_name(compose(['model.path="/models/Odd Name (v2)!"']))
    assert derived == "Odd-Name-v2-cpu-vllm"
    assert study_name_fault(derived) is None


def test_yaml_round_trip() -> None:
    import yaml

    cfg = compose(["model=qwen7b", "space=gpu", "select.slo.ttft_p95_ms=500"])
    assert from_plain(yaml.safe_load(to_yaml(cfg))) == cfg
    assert from_plain(to_plain(cfg)) == cfg


def test_recipes_belong_to_a_study_and_their_absence_to_those_before_them() -> None:
    def of(recipes: dict[str, Any] | None) -> dict[str, Any]:
        return study_identity(
            composed(), model={"name": "m"}, engine=ENGINE, hardware=HARDWARE, recipes=recipes
        )

    assert "quantize" not in of(None)
    assert of({}) == of(None) == identity_of()
    one, other = ({"awq": {"tool": "autoawq", "group_size": size}} for size in (64, 128))
    assert identity_hash(of(one)) != identity_hash(of(None))
    assert differences(of(one), of(other)) == ["quantize.awq.group_size: 64 → 128"]


def test_a_study_of_an_earlier_version_judges_quality_by_the_same_identity() -> None:
    """What was added since enters only where it is made use of."""

    def judged(**quality: Any) -> Any:
        cfg = SweeperConfig(quality=QualityConfig(**quality))
        return study_identity(cfg, model={}, engine={}, hardware={})["quality"]

    earlier = {
        "kind": "agreement",
        "reference_tokens": 64,
        "max_prompts": None,
        "max_loglik_drop_nats": 0.2,
    }
    assert judged() == judged(written_tokens=8, python="p", tasks_timeout_s=9.0) == earlier
    assert judged(max_agreement_drop=0.1) == {**earlier, "max_agreement_drop": 0.1}
    assert judged(kind="perplexity", text_tokens=900)["text_tokens"] == 900


def test_a_limit_that_earlier_versions_did_not_have_counts_where_it_is_set() -> None:
    """A study of theirs goes on: its identity had four limits, set or not."""
    promised = identity_of("objective=slo", "select.slo.ttft_p95_ms=500")["slo"]
    assert set(promised) == {"ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", "min_quality"}
    more = identity_of("objective=slo", "select.slo.ttft_p95_ms=500", "select.slo.ttft_p99_ms=900")
    assert more["slo"]["ttft_p99_ms"] == 900
