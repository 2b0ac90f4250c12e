"""The benchmark's table as data: one row a bar, one figure a renderer."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Unit = Literal["s", "MB", "%", "F1", "of 100", "count"]
OURS = "Proofbox"


@dataclass(frozen=True, slots=True)
class Figure:
    """What one renderer reached.

    Attributes:
        renderer: its name.
        value: in the row's unit, or None if it has none.
        note: what a reader has to know: why there is no value, how much it was tested on, that it is an estimate.
    """

    renderer: str
    value: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A bar, and who reaches it.

    Attributes:
        number: of the bar; several rows can share it.
        what: what is measured.
        unit: of all values.
        bar: what has to be reached: at least, or at most if lower is better; None where a row only tells.
        is_lower_better: whether it is.
        figures: ours first, then the peers.
    """

    number: int
    what: str
    unit: Unit
    bar: float | None
    is_lower_better: bool
    figures: tuple[Figure, ...]

    @property
    def ours(self) -> Figure:
        """Our figure."""
        return self.figures[0]

    @property
    def best_peer(self) -> Figure | None:
        """The peer with the best value, or None if none has one."""
        peers = [figure for figure in self.figures[1:] if figure.value is not None]
        sign = 1 if self.is_lower_better else -1
        return min(peers, key=lambda figure: sign * (figure.value or 0.0), default=None)

    @property
    def is_met(self) -> bool | None:
        """Whether ours reaches the bar; None where there is none."""
        if self.bar is None:
            return None
        if self.ours.value is None:
            return False
        return self.ours.value <= self.bar if self.is_lower_better else self.ours.value >= self.bar

    @property
    def is_ahead(self) -> bool | None:
        """Whether ours is at least as good as the best peer; None where no peer has a value."""
        best = self.best_peer
        if best is None or best.value is None:
            return None
        if self.ours.value is None:
            return False
        return self.ours.value <= best.value if self.is_lower_better else self.ours.value >= best.value


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Writes rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Reads what `write_rows` wrote; no rows if there is no such file."""
    if not path.exists():
        return []
    values: Sequence[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))
    return [Row(**{**value, "figures": tuple(Figure(**figure) for figure in value["figures"])}) for value in values]  # type: ignore[arg-type,attr-defined]
