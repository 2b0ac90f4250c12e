"""What each fault did in each phase, for the table that is printed at the end."""

from dataclasses import astuple, dataclass, fields


@dataclass(frozen=True)
class Outcome:
    """What became of one call.

    Attributes:
        fault: what struck.
        phase: where the call was then.
        first: what its client got.
        later: what everybody got who asked under the same id once all was well again.
        runs: how often its program was handed to a sandbox.
    """

    fault: str
    phase: str
    first: str
    later: str
    runs: int


ledger: list[Outcome] = []


def table() -> list[str]:
    """The rows, in columns."""
    if not ledger:
        return []
    rows = [tuple(field.name for field in fields(Outcome))]
    rows += [tuple(str(value) for value in astuple(outcome)) for outcome in ledger]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*lines, f"{len(ledger)} cases"]
