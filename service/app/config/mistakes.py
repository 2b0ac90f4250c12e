"""Mistakes in a configuration, as an operator reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.service.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something in the configuration that is wrong.

    Attributes:
        where: ``environment``, the file with its line, or empty for several places.
        setting: as it is written there; empty if the whole file is meant.
        problem: what is wrong, with the limit and the given value, unless that is a secret.
        remedy: what to do.
    """

    where: str
    setting: str
    problem: str
    remedy: str

    @property
    def sentence(self) -> str:
        """The mistake on one line."""
        return f"{self.place}: {self.problem}; {self.remedy}".removeprefix(": ")

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
