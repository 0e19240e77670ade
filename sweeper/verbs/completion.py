"""Print a script with which a shell completes the command `sweeper` when Tab is pressed.

usage: sweeper completion bash|zsh|fish

It completes verbs, groups (model=) and their options, keys of the configuration a level at a time,
names of studies, numbers of trials, formats and other fixed words; the shell completes files.
To keep it, put one of the lines below into ~/.bashrc, ~/.zshrc (after compinit) or
~/.config/fish/config.fish. It is for the command `sweeper`, which lies beside the interpreter that
sweeper is installed in (.venv/bin/sweeper); `python -m sweeper` is completed by nobody.

examples:
  source <(sweeper completion bash)
  source <(sweeper completion zsh)
  sweeper completion fish | source
  python -m sweeper completion bash > ~/.local/share/bash-completion/completions/sweeper

exit codes: 0 printed, 2 bad input
"""

from __future__ import annotations

from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.verbs.completing.candidates import candidates
from sweeper.verbs.completing.scripts import SCRIPTS

ASK = ["words", "--"]
"""How a script asks; the line follows."""


def run(arguments: list[str]) -> int:
    """Print a shell's script, or answer one."""
    if arguments[:2] == ASK:
        from sweeper.verbs import VERBS

        for one in candidates(" ".join(arguments[2:]), list(VERBS)):
            print(one)
        return 0
    if len(arguments) != 1:
        raise ConfigError(
            "which shell? completion takes the name of one",
            f"python -m sweeper completion {'|'.join(SCRIPTS)}",
        )
    if arguments[0] not in SCRIPTS:
        raise ConfigError(
            f"there is no completion for {arguments[0]}",
            did_you_mean(arguments[0], SCRIPTS, what="shells"),
        )
    print(SCRIPTS[arguments[0]], end="")
    return 0
