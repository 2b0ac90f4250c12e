"""What an import reports about one part of a configuration while it converts it."""

from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.gateway.imports import ImportedPart, ImportStatus

MESSAGE_CHARACTERS_MAX = 2_000
NOTES_MAX = 50
"""Changes of one part, and doubts; a document of 1 MiB can cause 100,000."""
_MORE = "and more"


@dataclass(slots=True)
class PartNotes:
    """The notes on one part.

    Attributes:
        tool: the tool's name; None for another part.
        origin: what it was.
        result: what it is now; None: nothing.
        changes: what changed, a sentence each.
        doubts: why somebody has to look at it, a sentence each.
    """

    tool: str | None
    origin: str
    result: str | None = None
    changes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def change(self, text: str) -> None:
        """Add what changed, once; those beyond `NOTES_MAX` are not listed."""
        _add(self.changes, text)

    def doubt(self, text: str) -> None:
        """Add a reason to review it, once; those beyond `NOTES_MAX` are not listed."""
        _add(self.doubts, text)

    def take_over(self, other: "PartNotes", name: str) -> None:
        """Add the notes on something within it.

        Args:
            other: the notes.
            name: what they are on.
        """
        for text in other.changes:
            self.change(f"{name}: {text}")
        for text in other.doubts:
            self.doubt(f"{name}: {text}")

    @property
    def needs_review(self) -> bool:
        """Whether it is left out of what is saved."""
        return bool(self.doubts)

    def report(self) -> ImportedPart:
        """The entry of the report."""
        status: ImportStatus = "dropped" if self.result is None else "converted"
        if self.doubts:
            status = "needs_review"
        message = "; ".join([*self.doubts, *self.changes])
        if len(message) > MESSAGE_CHARACTERS_MAX:
            message = f"{message[: MESSAGE_CHARACTERS_MAX - 1]}…"
        return ImportedPart(tool=self.tool, from_=self.origin, to=self.result, status=status, message=message)


def _add(texts: list[str], text: str) -> None:
    if len(texts) <= NOTES_MAX and text not in texts:
        texts.append(text if len(texts) < NOTES_MAX else _MORE)


def drop_keys(given: dict[str, Any], known: frozenset[str], dropped: dict[str, str], notes: PartNotes) -> None:
    """Note the keys that are not taken over: those with a known reason are dropped, the others need review.

    Args:
        given: an object of version 1.
        known: its keys that are taken over.
        dropped: its keys that have no meaning any more, with the reason.
        notes: the notes on it.
    """
    for key in sorted(given.keys() - known):
        if key in dropped:
            notes.change(f"{key} is dropped: {dropped[key]}")
        else:
            notes.doubt(f"version 2 has no key {key[:64]!r} here; it is left out")
