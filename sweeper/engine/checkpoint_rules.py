"""What may be wrong with a checkpoint, wherever it comes from: hub, files, tokenizer, code. Pure.

None of these is a fault of the machine: with a draft model it strikes some deployments only.
"""

from __future__ import annotations

from sweeper.engine.rules import Rule, rule
from sweeper.verdicts import Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG
INFRA = Verdict.INFRA

_TRUST = "read the model's code, then allow it with model.trust_remote_code=true"

HUB: tuple[Rule, ...] = (
    rule(
        "hub_unreachable",
        r"LocalEntryNotFoundError|couldn't connect to 'https://huggingface\.co'"
        r"|OfflineModeIsEnabled|HTTPSConnectionPool\(host='huggingface\.co'"
        r"|offline mode is enabled|cannot find the requested files in the (?:disk|local) cache",
        INFRA,
        "the model is not in the local cache and its hub cannot be reached: download it first, or "
        "give a local folder",
    ),
    rule(
        "hub_busy",
        r"(?P<http_status>429|50[0234]) (?:Client|Server) Error",
        INFRA,
        "the hub refuses for the moment: try again later, or give a local folder",
        http_status=int,
    ),
    rule(
        "model_missing",
        r"RepositoryNotFoundError|Repository Not Found for url|RevisionNotFoundError"
        r"|(?<!Local)EntryNotFoundError|404 Client Error|HFValidationError"
        r"|is not a (?:local folder and is not a )?valid model identifier"
        r"|Invalid repository ID or local directory specified",
        INFEASIBLE,
        "there is no such model, revision or file: check the name, or give a local folder that has "
        "config.json",
    ),
    rule(
        "model_gated",
        r"GatedRepoError|access a gated repo|Cannot access gated repo|is gated\. You must"
        r"|(?P<http_status>401|403) Client Error",
        INFRA,
        "the hub wants a login for this model: accept its terms there and set HF_TOKEN, or give a "
        "local folder",
        http_status=int,
    ),
)
"""Where a checkpoint comes from."""

FILES: tuple[Rule, ...] = (
    rule(
        "weights_damaged",
        r"[Hh]eader[ _]?[Tt]oo[ _]?(?:[Ll]arge|[Ss]mall)|InvalidHeader|MetadataIncompleteBuffer"
        r"|incomplete metadata|SafetensorError|PytorchStreamReader failed|invalid magic number"
        r"|UnpicklingError|Weight files referenced in index but missing|file not fully covered",
        INFRA,
        "a weight file is damaged or incomplete (a pointer of git-lfs? an interrupted download?): "
        "delete it and fetch it again",
        "0.32",
    ),
    rule(
        "weights_missing",
        r"Cannot find any model weights with"
        r"|[Nn]o file named .{0,200}(?:safetensors|pytorch_model)",
        INFEASIBLE,
        "the folder has a configuration and no weights: complete it",
        "0.32",
    ),
    rule(
        "tokenizer_missing",
        r"Can't load tokenizer for|Couldn't instantiate the backend tokenizer"
        r"|Tokenizer class \S{1,100} does not exist|Unable to load vocabulary from file",
        INFEASIBLE,
        "the folder has no tokenizer that the installed version can read: add its files, or name "
        "one with engine.args.tokenizer",
    ),
    rule(
        "remote_code",
        r"contains custom code which must be executed"
        r"|requires you to execute (?:the \w{1,40} file|custom code)"
        r"|set the option [`']trust_remote_code=True|setting [`']trust_remote_code=True"
        r"|pass(?:ing)? the argument [`']trust_remote_code=True",
        INFEASIBLE,
        _TRUST,
        "0.32",
    ),
)
"""What a folder holds."""

ARCHITECTURE: tuple[Rule, ...] = (
    rule(
        "architecture_unknown",
        r"model type `(?P<model_type>[\w.-]{1,100})` but Transformers does not recognize"
        r"|Transformers does not recognize this architecture"
        r"|Model architectures? (?P<architectures>.{1,200}?) (?:are|is) not supported"
        r"|Model architecture (?P<removed>\S{1,100}) was supported in vLLM until"
        r"|Unrecognized configuration class|Unrecognized model in"
        r"|No model architectures are specified|Cannot find model module"
        r"|is not compatible with vLLM",
        INFEASIBLE,
        "the installed version does not know this model: use a version that does, or one with "
        "code of its own and model.trust_remote_code=true",
        "0.32",
        model_type=str,
        architectures=str,
        removed=str,
    ),
    rule(
        "architecture_not_inspected",
        r"Model architectures .{1,200} failed to be inspected",
        INFEASIBLE,
        "the model's class could not be loaded: see what the log says before this line",
        "0.32",
        follows=True,
    ),
    rule(
        "checkpoint_layout",
        r"KeyError: '(?P<parameter>(?:\w{1,60}\.){0,6}layers\.\d{1,4}\.[\w.]{1,200})'"
        r"|There is no module or parameter named '(?P<module>[\w.]{1,200})'"
        r"|weights were not initialized from checkpoint"
        r"|Tried to load weights of size .{1,100} to a parameter of size"
        r"|Attempted to load weight \(.{1,100}\) into parameter",
        INFEASIBLE,
        "the tensors of this checkpoint are not those that the engine expects (another "
        "quantization, or a version that does not know this layout): choose another checkpoint",
        "0.32",
        parameter=str,
        module=str,
    ),
)
"""What the weights are for."""

CHECKPOINT: tuple[Rule, ...] = (*HUB, *FILES, *ARCHITECTURE)
