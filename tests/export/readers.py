"""What a platform makes of an exported file, by the platform's own rules and not by ours."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from sweeper.export.bundle import Files


class GoLoader(yaml.CSafeLoader):
    """YAML as Go reads it, which Kubernetes, Helm and Compose are written in: more than PyYAML
    takes for a number or a boolean."""


GoLoader.yaml_implicit_resolvers = {
    first: list(found) for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
GoLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:y|Y|n|N)$"), list("yYnN"))
GoLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)
GoLoader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?0o[0-7]+$"), list("-+0"))


def unwrapped(text: str) -> str:
    """A file with its long comments on one line each, as they were before they were wrapped."""
    return text.replace("\n#   ", " ")


@dataclass(frozen=True)
class Seen:
    """What the server is started with; names are those of the engine that it starts."""

    model: str
    served_name: str | None
    env: Mapping[str, str]
    flags: Mapping[str, Any]


def documents(text: str) -> list[Any]:
    """Documents of a YAML file, the same to both families of readers."""
    by_go = list(yaml.load_all(text, Loader=GoLoader))
    assert by_go == list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    return by_go


def of_config(text: str) -> tuple[str, str, dict[str, Any]]:
    """Model, served name and all else of vLLM's ``--config``, every flag by its name."""
    flags: dict[str, Any] = {}
    for key, value in yaml.load(text, Loader=yaml.CSafeLoader).items():
        name, sign, inline = key.partition("=")
        flags[name] = inline if sign else value
    return flags.pop("model"), flags.pop("served-model-name"), flags


def of_argv(words: list[str]) -> dict[str, Any]:
    """Flags of a command line: ``--name value``, ``--name=value``, or ``--name`` alone."""
    flags: dict[str, Any] = {}
    rest = iter([*words, "--"])
    word = next(rest)
    while word != "--":
        name, sign, inline = word.removeprefix("--").partition("=")
        following = next(rest)
        if sign:
            flags[name] = inline
        elif following.startswith("--"):
            flags[name] = True
        else:
            flags[name] = following
            following = next(rest)
        word = following
    return flags


def kubelet(text: str, variables: Mapping[str, str]) -> str:
    """``$(NAME)`` is a variable, ``$$`` is a dollar, and a dollar before anything else stays."""
    found, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            found, at = found + text[at], at + 1
        elif text[at + 1] == "$":
            found, at = found + "$", at + 2
        elif text[at + 1] == "(" and ")" in text[at:]:
            end = text.index(")", at)
            name = text[at + 2 : end]
            found, at = found + variables.get(name, f"$({name})"), end + 1
        else:
            found, at = found + text[at : at + 2], at + 2
    return found


def of_env(entries: list[dict[str, Any]]) -> dict[str, str]:
    """``env`` of a container without references to secrets."""
    known: dict[str, str] = {}
    for entry in entries:
        if "value" in entry:
            assert isinstance(entry["value"], str)
            known[entry["name"]] = kubelet(entry["value"], known)
    return known


def interpolated(text: str) -> str:
    """Compose: ``$$`` is a dollar, and any other dollar would be a variable."""
    assert "$" not in text.replace("$$", "")
    return text.replace("$$", "$")


def of_script(text: str) -> tuple[dict[str, str], list[str]]:
    """Variables that a shell script exports, and the words of its last command."""
    # A line that goes on ends in a newline of its own to shlex, and in nothing to a shell.
    words = [word for word in shlex.split(text, comments=True) if word != "\n"]
    env = {}
    for at, word in enumerate(words):
        if word == "export":
            name, _, value = words[at + 1].partition("=")
            env[name] = value
    last = len(words) - 1 - words[::-1].index("exec")
    return env, [word for word in words[last + 1 :] if word != "$@"]


def unit_lines(text: str) -> Iterator[tuple[str, str]]:
    """Assignments of a systemd unit; comments, and lines that go on, by systemd.syntax(7)."""
    kept = [line for line in text.split("\n") if line and line[0] not in "#;["]
    for line in "\n".join(kept).replace("\\\n", " ").split("\n"):
        name, sign, value = line.partition("=")
        assert sign, line
        yield name, value


def unit_words(value: str) -> list[str]:
    """Words of a value: quotes and C escapes go, ``%%`` is a per cent sign."""
    escapes = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "s": " "}
    words: list[str] = []
    word, quote, at = "", "", 0
    while at < len(value):
        sign = value[at]
        if sign == "\\":
            if value[at + 1] == "x":
                word, at = word + chr(int(value[at + 2 : at + 4], 16)), at + 4
            else:
                word, at = word + escapes[value[at + 1]], at + 2
        elif sign == quote:
            quote, at = "", at + 1
        elif not quote and sign in "\"'" and not word:
            quote, at = sign, at + 1
        elif not quote and sign in " \t":
            words, word, at = [*words, word], "", at + 1
        else:
            word, at = word + sign, at + 1
    assert not quote
    assert "%" not in re.sub(r"%%|^HOME=%C", "", word)
    return [*words, word.replace("%%", "%")]


def _vllm(files: Files) -> Seen:
    return Seen(*_placed(of_config(files["vllm.yaml"].text), {}))


def _shell(files: Files) -> Seen:
    env, words = of_script(files["start.sh"].text)
    assert words[-2:] == ["--config", "vllm.yaml"]
    return Seen(*_placed(of_config(files["vllm.yaml"].text), env))


def _compose(files: Files) -> Seen:
    (project,) = documents(files["compose.yaml"].text)
    env = project["services"]["vllm"]["environment"]
    plain = {name: interpolated(value) for name, value in env.items() if value is not None}
    return Seen(*_placed(of_config(files["vllm.yaml"].text), plain))


def _k8s(files: Files) -> Seen:
    config, deployment, _ = documents(files["k8s.yaml"].text)
    server = deployment["spec"]["template"]["spec"]["containers"][0]
    return Seen(*_placed(of_config(config["data"]["vllm.yaml"]), of_env(server["env"])))


def _kserve(files: Files) -> Seen:
    config, service = documents(files["kserve.yaml"].text)
    server = service["spec"]["predictor"]["containers"][0]
    return Seen(*_placed(of_config(config["data"]["vllm.yaml"]), of_env(server["env"])))


def _helm(files: Files) -> Seen:
    (values,) = documents(files["helm-values.yaml"].text)
    model = values["servingEngineSpec"]["modelSpec"][0]
    env = of_env(model["env"])
    flags = of_argv([kubelet(word, env) for word in model["vllmConfig"]["extraArgs"]])
    return Seen(kubelet(model["modelURL"], env), flags.pop("served-model-name"), env, flags)


def _systemd(files: Files) -> Seen:
    env = {}
    for name, value in unit_lines(files["vllm.service"].text):
        if name == "Environment":
            (word,) = unit_words(value)
            key, _, text = word.partition("=")
            env[key] = text
    return Seen(*_placed(of_config(files["vllm.yaml"].text), env))


def _sglang(files: Files) -> Seen:
    env, words = of_script(files["sglang.sh"].text)
    flags = of_argv(words[3:])
    return Seen(flags.pop("model-path"), flags.pop("served-model-name"), env, flags)


def _trtllm(files: Files) -> Seen:
    env, words = of_script(files["trtllm.sh"].text)
    assert words[:2] == ["trtllm-serve", "serve"] and words[-2] == "--"
    return Seen(words[-1], None, env, of_argv(words[2:-2]))


def _placed(
    config: tuple[str, str, dict[str, Any]], env: dict[str, str]
) -> tuple[str, str, dict[str, str], dict[str, Any]]:
    model, served_name, flags = config
    return model, served_name, env, flags


READERS: dict[str, Callable[[Files], Seen]] = {
    "vllm": _vllm,
    "shell": _shell,
    "compose": _compose,
    "k8s": _k8s,
    "kserve": _kserve,
    "helm": _helm,
    "systemd": _systemd,
    "sglang": _sglang,
    "trtllm": _trtllm,
}
"""Target → reader; a target without one fails the suite."""
