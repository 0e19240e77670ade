from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.report.comparison.checklist import checklist
from sweeper.report.comparison.conditions import Row, Status, Weight
from sweeper.report.comparison.side import Side
from tests.report.comparison.sides import foreign, manifest, point, trial
from tests.report.traded import made

COMMON = ["concurrency 8"]


def rows(a: Side, b: Side, common: list[str] | None = None) -> dict[str, Row]:
    return {row.condition.key: row for row in checklist(a, b, COMMON if common is None else common)}


def test_the_same_trial_differs_in_nothing() -> None:
    assert not [r for r in rows(trial(), trial()).values() if r.status is Status.DIFFERS]


def test_the_order_of_the_checklist() -> None:
    keys = list(rows(trial(), trial()))
    order = [
        "numbers", "model", "revision", "digest", "tokenizer", "input_tokens_asked",
        "input_tokens", "workload", "workload_hash", "levels", "achieved_concurrency", "engine",
        "engine_version", "arguments", "gpu", "gpu_count", "driver", "memory_gib", "precision",
        "quantization", "decoding", "warm_up", "repeats", "requests", "client", "time",
    ]  # fmt: skip
    assert [key for key in keys if key in order] == order


@pytest.mark.parametrize(
    ("changes", "key", "weight"),
    [
        ({"engine": {"predicted": True}}, "numbers", Weight.BREAKS),
        ({"model": {"name": "x", "path": "/x", "digest": "e" * 64}}, "model", Weight.BREAKS),
        ({"hardware": {"name": "NVIDIA H100"}}, "gpu", Weight.BREAKS),
        ({"hardware": {"memory_gib": 80.0}}, "memory_gib", Weight.BREAKS),
        ({"hardware": {"driver": "580"}}, "driver", Weight.BREAKS),
        ({"engine": {"version": "0.32.0"}}, "engine_version", Weight.BREAKS),
        ({"workload": {"kind": "standard"}}, "workload", Weight.BREAKS),
        ({"workload": {"sha256": "def"}}, "workload_hash", Weight.BREAKS),
        ({"workload": {"input_tokens": 512}}, "input_tokens_asked", Weight.BREAKS),
        ({"decoding": {"temperature": 0.7}}, "decoding", Weight.BREAKS),
        ({"load": {"warm_up": {"requests_per_stream": 4}}}, "warm_up", Weight.BREAKS),
        ({"load": {"repeats": 3}}, "repeats", Weight.NOTED),
        ({"client": {"version": "0.2.0"}}, "client_version", Weight.NOTED),
        ({"devices": 2}, "devices_used", Weight.MEANT),
        ({"engine": {"name": "transformers"}}, "engine", Weight.MEANT),
    ],
)
def test_what_a_difference_means(changes: dict[str, Any], key: str, weight: Weight) -> None:
    row = rows(trial(), trial(told=manifest(**changes)))[key]
    assert row.status is Status.DIFFERS
    assert row.condition.weight is weight


def test_of_a_mapping_only_what_differs_is_shown() -> None:
    row = rows(trial(), trial(told=manifest(decoding={"temperature": 0.7})))["decoding"]
    assert (row.a, row.b) == ({"temperature": 0.0}, {"temperature": 0.7})


def test_what_a_side_does_not_tell_is_unknown_and_not_different() -> None:
    found = rows(trial(), trial(told=manifest(engine=None)))
    assert found["engine_version"].status is Status.UNKNOWN_B
    assert found["tokenizer"].status is Status.UNKNOWN
    assert rows(foreign(), trial())["gpu"].status is Status.UNKNOWN_A


def test_a_model_of_another_name_and_the_same_digest_is_the_same() -> None:
    told = manifest(model={"name": "mine", "path": "/other/place"})
    assert rows(trial(), trial(told=told))["model"].status is Status.SAME


def test_a_model_is_found_again_by_the_end_of_its_path() -> None:
    assert rows(trial(), foreign(model="smollm2-v1"))["model"].status is Status.SAME
    assert rows(trial(), foreign(model="org/SmolLM2"))["model"].status is Status.SAME
    assert rows(trial(), foreign(model="org/other"))["model"].status is Status.DIFFERS


def test_the_versions_of_two_engines_are_not_compared() -> None:
    told = manifest(engine={"name": "transformers", "version": "5.19.0"})
    row = rows(trial(), trial(told=told))["engine_version"]
    assert row.condition.weight is Weight.MEANT


def test_other_clients_name_devices_by_one_word() -> None:
    assert rows(trial(), foreign(gpu="h200"))["gpu"].status is Status.SAME
    assert rows(trial(), foreign(gpu="h100"))["gpu"].status is Status.DIFFERS
    own = trial(told=manifest(hardware={"name": "H200"}))
    assert rows(trial(), own)["gpu"].status is Status.DIFFERS


def test_parameters_and_arguments_that_differ_have_rows_of_their_own() -> None:
    a = trial(deployment={"max_num_seqs": 64})
    b = trial(told=manifest(effective_args={"max_num_seqs": 8, "dtype": "float16"}))
    found = rows(a, b)
    assert (found["deployment:max_num_seqs"].a, found["deployment:max_num_seqs"].b) == (
        64,
        "default",
    )
    assert found["argument:dtype"].condition.weight is Weight.MEANT
    assert "argument:max_num_seqs" not in found  # the deployment says it already
    assert "deployment" not in found


def test_what_the_server_measured_of_itself_is_no_argument() -> None:
    found = rows(trial(), trial(told=manifest(effective_args={"num_kv_blocks": 7})))
    assert "argument:num_kv_blocks" not in found
    assert found["arguments"].status is Status.SAME


def test_lengths_achieved_are_the_same_within_a_token() -> None:
    near = trial(points=[point(input_tokens_mean=25.0)])
    far = trial(points=[point(input_tokens_mean=27.0)])
    assert rows(trial(), near)["input_tokens"].status is Status.SAME
    assert rows(trial(), far)["input_tokens"].status is Status.DIFFERS


def test_a_level_that_was_not_kept_differs() -> None:
    row = rows(trial(), trial(points=[point(achieved_concurrency=5.0)]))["achieved_concurrency"]
    assert row.status is Status.DIFFERS
    assert row.condition.weight is Weight.BREAKS


def test_a_rate_that_was_not_reached_differs() -> None:
    load = {"kind": "open", "rate_per_s": 4.0, "arrivals": "poisson"}
    a, b = [trial(points=[replace(point(requests_per_s=r), load=load)]) for r in (4.0, 3.0)]
    found = rows(a, b, ["4 requests/s (poisson)"])
    assert found["achieved_rate"].status is Status.DIFFERS
    assert "achieved_concurrency" not in found
    assert "achieved_rate" not in rows(trial(), trial())


def test_without_a_common_level_lengths_are_still_seen() -> None:
    found = rows(trial(), trial(points=[point(4)]), [])
    assert found["input_tokens"].status is Status.SAME
    assert found["levels"].status is Status.DIFFERS
    assert "achieved_concurrency" not in found


def test_a_trial_without_points_has_no_levels() -> None:
    assert rows(trial(), trial(points=[]), [])["levels"].status is Status.UNKNOWN_B


def served(name: str | None = None, *, at: str = "/cache/a", **fields: Any) -> Side:
    """A trial with a checkpoint of ours, or with the model as it is."""
    told = manifest(checkpoint=at)
    if name is not None:
        told["made"] = {**made(name, "llmcompressor"), **fields}
    return trial(told=told)


def test_two_recipes_differ_by_deployment_and_show_what_differs() -> None:
    other = {**made("w8a8", "llmcompressor", bits=8, group_size=-1), "digest": "e" * 64}
    found = rows(served("w4a16"), served("w8a8", at="/cache/b", **other))
    recipe = found["recipe"]
    assert recipe.condition.weight is Weight.MEANT
    assert recipe.a == {"name": "w4a16", "bits": 4, "group_size": 64}
    assert recipe.b == {"name": "w8a8", "bits": 8, "group_size": -1}
    assert found["checkpoint_digest"].status is Status.DIFFERS
    assert found["calibration"].status is found["tool_versions"].status is Status.SAME


def test_the_texts_and_the_tools_of_one_recipe_are_conditions_of_their_own() -> None:
    texts = {**made("w4a16", "llmcompressor")["recipe"], "calibration": "mine.txt"}
    ours = served("w4a16")
    theirs = served("w4a16", recipe=texts, versions={"llmcompressor": "2", "torch": "2.13.0"})
    found = rows(ours, theirs)
    assert found["recipe"].status is Status.SAME
    assert found["calibration"].b == {"calibration": "mine.txt"}
    assert found["tool_versions"].condition.weight is Weight.NOTED
    assert found["tool_versions"].b == {"llmcompressor": "2"}


def test_one_content_in_two_caches_is_one_checkpoint() -> None:
    found = rows(served("w4a16"), served("w4a16", at="/another/cache/a"))
    assert found["checkpoint"].status is Status.SAME


def test_a_model_as_it_is_was_not_made_here_which_is_known() -> None:
    found = rows(served(), served("w4a16", at="/cache/b"))
    assert found["recipe"].a == "not made here"
    assert found["recipe"].status is Status.DIFFERS
    assert not {"recipe", "tool_versions"} & set(rows(served(), served()))
    assert rows(foreign(), served("w4a16"))["recipe"].status is Status.UNKNOWN_A


def test_a_recipe_without_texts_has_none() -> None:
    without = {"name": "fp8_dynamic", "tool": "llmcompressor", "bits": 8}
    found = rows(served("w4a16"), served("w8a8", recipe=without))
    assert found["calibration"].b == "none"
