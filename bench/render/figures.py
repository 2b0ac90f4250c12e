"""The benchmark's table as data: one row a bar, one figure a renderer."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

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
    """Writes rows as JSON, and how busy the machine was in the last five minutes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"load_average": round(os.getloadavg()[1], 1), "rows": [asdict(row) for row in rows]}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_rows(path: Path) -> tuple[list[Row], float]:
    """Rows from their file, and the load average that the machine had; no rows if there is no such file."""
    if not path.exists():
        return [], 0.0
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        Row(**{**row, "figures": tuple(Figure(**figure) for figure in row["figures"])}) for row in content["rows"]
    ]
    return rows, content["load_average"]
