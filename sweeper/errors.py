"""What can go wrong, as one tree; every error carries a remedy.

SweeperError                 anything this project raises on purpose
├── UserError                bad input: exit code 2, one message, never a traceback
│   ├── ConfigError          a key, type or value in the configuration
│   ├── ModelError           a model that cannot be found, read or run here
│   └── IdentityError        resuming a study that is another study
├── StudyError               a study that cannot go on: exit code 1
│   ├── NoFeasibleTrialError nothing that was tried can be recommended
│   └── JournalError         the study's own record cannot be read or written
└── EngineError              an engine that cannot be asked or started at all

Expected ends of a trial (out of memory, a crash under load) are values, not exceptions:
see `sweeper.verdicts`.
"""

from __future__ import annotations


class SweeperError(Exception):
    """An error with a way out.

    Args:
        message: what is wrong and where, one line where possible.
        remedy: what the user can do about it.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  remedy: {self.remedy}"


class UserError(SweeperError):
    """Bad input. Reported in one message, without a traceback."""

    exit_code = 2


class ConfigError(UserError):
    """A configuration key, type or value that is wrong."""


class ModelError(UserError):
    """A model that cannot be found, read, or run on this machine."""


class IdentityError(UserError):
    """A study was asked to go on as something other than what it is."""


class StudyError(SweeperError):
    """A study that cannot go on."""


class NoFeasibleTrialError(StudyError):
    """Nothing that was tried can be recommended."""


class JournalError(StudyError):
    """The study's own record cannot be read or written."""


class EngineError(SweeperError):
    """An engine that cannot be asked or started at all (not installed, say)."""
