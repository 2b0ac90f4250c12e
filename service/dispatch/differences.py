"""Releases and settings, which the processes of one service have to have in common."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """The facts that a process reports of itself.

    Attributes:
        release: the release that it runs.
        settings: a short digest of each setting that has to be equal, by its name.
    """

    release: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    """A process whose lease has not expired.

    Attributes:
        boot_id: its id.
        role: what it does.
        facts: what it reports.
    """

    boot_id: str
    role: str
    facts: ProcessFacts

    def __str__(self) -> str:
        return f"{self.role} {self.boot_id}"


def find_differences(members: Sequence[Member]) -> list[str]:
    """Return the differences between processes, a line each: who differs from most of them, or from the first.

    Settings that only one of two releases has are no difference, nor is a process that has described nothing yet.
    """
    found, members = [], [member for member in members if member.facts.settings]
    if len(releases := sorted({member.facts.release for member in members})) > 1:
        found.append(f"releases: {', '.join(map(repr, releases))} run side by side; replace the older processes")
    digests: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for member in members:
        for name, digest in member.facts.settings.items():
            digests[name].append((digest, str(member)))
    for name, of_members in sorted(digests.items()):
        (usual, _), *others = Counter(digest for digest, _ in of_members).most_common()
        if others:
            odd = ", ".join(member for digest, member in of_members if digest != usual)
            found.append(
                f"PROOFBOX_{name.upper()}: differs at {odd}; give all processes the same value, and restart them"
            )
    return found
