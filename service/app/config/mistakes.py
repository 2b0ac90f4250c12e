"""Mistakes in a configuration, as an operator reads them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from proofbox.service.app.config.values import describe_error
from proofbox.service.errors import ServiceError

_FIELD = re.compile(r'field "(\w+)"')


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something in the configuration that is wrong.

    Attributes:
        where: ``environment``, the file with its line, or empty for several places.
        setting: as it is written there; empty if the whole file is meant.
        problem: what is wrong, with the limit and the given value, unless that is a secret.
        remedy: what to do; empty if the problem has it.
    """

    where: str
    setting: str
    problem: str
    remedy: str

    @property
    def sentence(self) -> str:
        """The mistake on one line."""
        text = "; ".join(part for part in (self.problem, self.remedy) if part)
        return f"{self.place}: {text}".removeprefix(": ")

    @property
    def place(self) -> str:
        """Where it is: file, line and setting; empty if that is unknown."""
        return ": ".join(part for part in (self.where, self.setting) if part)

    def as_json(self) -> dict[str, Any]:
        """The mistake as JSON."""
        return {
            "where": self.where or None,
            "setting": self.setting or None,
            "problem": self.problem,
            "remedy": self.remedy,
        }


class ConfigurationError(ServiceError):
    """The configuration has mistakes.

    Attributes:
        mistakes: all of them.
    """

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(self.mistakes[0].sentence)
            return
        lines = "".join(f"\n  {mistake.sentence}" for mistake in self.mistakes)
        super().__init__(f"{len(self.mistakes)} mistakes in the configuration:{lines}")


def list_mistakes(exc: Exception) -> list[Mistake]:
    """The mistakes of settings that were refused; empty if the exception is about something else.

    No value is shown: the settings do not reveal whether it is a secret.

    Args:
        exc: what reading the settings raised.
    """
    if isinstance(exc, ValidationError):
        return [_of_error(error) for error in exc.errors(include_url=False)]
    if isinstance(exc, SettingsError) and (found := _FIELD.search(str(exc))) is not None:
        where = f" ({exc.__cause__})" if isinstance(exc.__cause__, ValueError) else ""
        return [Mistake("", _variable(found[1]), f"is not JSON{where}", "docs/settings.md shows what it takes")]
    return []


def _of_error(error: Any) -> Mistake:
    setting, inner = error["loc"][:1], error["loc"][1:]
    if not setting:  # combinations: each has problem and remedy
        return Mistake("", "", error["msg"].removeprefix("Value error, "), "")
    problem, remedy = describe_error({**error, "loc": inner}, error["input"], is_text=True)
    return Mistake("", _variable(str(setting[0])), problem, remedy)


def _variable(setting: str) -> str:
    return f"PROOFBOX_{setting.upper()}"
