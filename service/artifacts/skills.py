"""The port of skills: instructions that an operator offers to agents by ``sk:<skill_id>``."""

from dataclasses import dataclass
from typing import Protocol

SKILL_BYTES_MAX = 64 * 1024
"""How much of a skill is read; a larger one is cut, and its end has a mark."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.

    Attributes:
        skill_id: its id.
        name: what it is called.
        description: when it helps; may be empty.
        text: its instructions.
    """

    skill_id: str
    name: str
    description: str
    text: str

    @property
    def active_text(self) -> str:
        """What an agent reads once the skill is active."""
        about = f": {self.description}" if self.description else ""
        return f"[ACTIVE SKILL sk:{self.skill_id}] {self.name}{about}\n\n{self.text}"


class Skills(Protocol):
    """Where skills come from."""

    async def read(self, skill_id: str) -> Skill | None:
        """A skill by its id, which is a safe relative path; None if there is none.

        Raises:
            StoreFailedError: it is there and cannot be read.
        """
