"""Every wrong override is answered with the key, the nearest valid one and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.errors import ConfigError

WRONG = [
    ("model=qwen7", "qwen7", "qwen7b"),
    ("model=some-org/name", "some-org/name", "model.path=some-org/name"),
    ("model=", "model", "smollm2"),
    ("model=null", "model", "smollm2"),
    ("model=qwen7b,smollm2", "qwen7b,smollm2", "model=qwen7b"),
    ("sampler=tpee", "tpee", "tpe"),
    ("space=nothing.yaml", "nothing.yaml", "YAML"),
    ("modle=qwen7b", "modle", "model"),
    ("budget.launchs=3", "budget.launchs", "budget.launches"),
    ("budgt.launches=3", "budgt.launches", "budget.launches"),
    ("launches=3", "launches", "budget.launches"),
    ("ttft_p95_ms=500", "ttft_p95_ms", "select.slo.ttft_p95_ms"),
    ("select.slo.ttft_p95=500", "select.slo.ttft_p95", "select.slo.ttft_p95_ms"),
    ("select.slo=500", "select.slo", "select.slo.ttft_p95_ms"),
    ("foo.bar=1", "foo.bar", "budget"),
    ("+foo=1", "foo", "budget"),
    ("++budget.foo=1", "budget.foo", "launches"),
    ("hydra.verbose=true", "hydra.verbose", "keys"),
    ("budget.launches=abc", "budget.launches", "whole number"),
    ("budget.launches=1.5", "budget.launches", "whole number"),
    ("budget.launches=true", "budget.launches", "whole number"),
    ("budget.minutes=soon", "budget.minutes", "number"),
    ("tracking.enabled=maybe", "tracking.enabled", "true or false"),
    ("study=[1]", "study", "text"),
    ("load.concurrency=5", "load.concurrency", "[1, 4, 8]"),
    ("load.concurrency=[1,a]", "load.concurrency", "[1, 4, 8]"),
    ("load.concurrency=1,4", "load.concurrency=1,4", "[1,4]"),
    ("load.concurrency=[1,2", "']' is missing", "[a,b]"),
    ("load.concurrency.0=3", "load.concurrency", "whole value"),
    ('study="a', "not closed", "quote"),
    ("study=a=b", "study=a=b", "letters, digits"),
    ("tracking.uri=a=b", "tracking.uri=a=b", "quote"),
    ("engine.args=5", "engine.args", "mapping"),
    ("engine.env.X={a:1}", "engine.env.X", "text"),
    ("engine.env.X.y=1", "engine.env.X", "whole value"),
    ("budget={launches:3}", "budget", "budget.KEY=VALUE"),
    ("budget", "'='", "budget=OPTION"),
    ("budget.launches", "'='", "budget.launches=VALUE"),
    ("--budget.launches=3", "dashes", "budget.launches=VALUE"),
    ("=x", "no key", "key=value"),
    ("a b=c", "a b", "key=value"),
    ("~space", "~space", "space=OPTION"),
    ("~budget.launches", "~budget.launches", "budget.launches=null"),
    ("~nothing", "nothing", "keys begin with"),
    ("model@other=qwen7b", "@", "model=OPTION"),
    ("budget.launches=${nope}", "budget.launches", "override"),
    ("~space.parameters.blok_size", "blok_size", "block_size"),
]


@pytest.mark.parametrize(("override", "named", "way_out"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_override_is_explained(override: str, named: str, way_out: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose([override])
    assert named in caught.value.message
    assert way_out in caught.value.remedy
    assert "\n" not in caught.value.message
    for jargon in ("struct", "token", "ConfigAttribute", "NoneType", "omegaconf", "Traceback"):
        assert jargon not in str(caught.value)


def test_the_last_option_and_the_last_value_count(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("launches: 7\n")
    own = f"budget={tmp_path / 'own.yaml'}"
    assert compose(["model=qwen7b", "model=smollm2"]).model.name == "smollm2"
    assert compose([own, "budget=quick"]).budget.launches == 3
    assert compose(["budget=quick", own]).budget.launches == 7
    assert compose(["budget.launches=1", "budget.launches=2"]).budget.launches == 2


@pytest.mark.parametrize("override", ["study='my-study'", 'study="my-study"', " study=my-study "])
def test_quotes_and_spaces_around_a_value_do_no_harm(override: str) -> None:
    assert compose([override]).study == "my-study"


def test_null_lifts_a_limit() -> None:
    cfg = compose(["budget.launches=null", "budget.minutes=5"])
    assert cfg.budget.launches is None
    assert cfg.budget.minutes == 5.0


def test_a_section_takes_a_mapping() -> None:
    assert compose(["select.slo={ttft_p95_ms:5}"]).select.slo.ttft_p95_ms == 5.0
    with pytest.raises(ConfigError, match=r"select\.slo\.ttft"):
        compose(["select.slo={ttft:5}"])


@pytest.mark.parametrize(
    ("whole", "single"),
    [
        (
            "engine.args={gpu_memory_utilization: 0.5, seed: 3}",
            ["engine.args.gpu_memory_utilization=0.5", "engine.args.seed=3"],
        ),
        ("engine.env={A: 1}", ["engine.env.A=1"]),
        ("engine.options={server_info: true}", ["engine.options.server_info=true"]),
        (
            "space.fixed={max_num_seqs: 3, env.A: 1}",
            ["space.fixed.max_num_seqs=3", "space.fixed.env.A=1"],
        ),
        (
            "space.parameters={block_size: [16, 32], flag.x: [1, 2]}",
            ["space.parameters.block_size=[16,32]", "space.parameters.flag.x=[1,2]"],
        ),
        ("model.facts={some_field: 7}", ["model.facts.some_field=7"]),
        ("model.checkpoints={awq: org/x}", ["model.checkpoints.awq=org/x"]),
    ],
)
def test_a_mapping_is_the_same_as_its_keys_one_by_one(whole: str, single: list[str]) -> None:
    assert compose([whole]) == compose(single) != compose([])


def test_a_mapping_adds_to_what_is_there() -> None:
    assert compose(["engine.args={seed: 3}", "engine.args={max_num_seqs: 4}"]).engine.args == {
        **compose([]).engine.args,
        "seed": 3,
        "max_num_seqs": 4,
    }
