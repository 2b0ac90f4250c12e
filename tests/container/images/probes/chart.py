"""Draws a chart with a title in several scripts and prints what matplotlib did about fonts."""
# ruff: noqa: T201 -- what a probe prints is its answer

import hashlib
import json
import logging
from pathlib import Path
from typing import ClassVar

import numpy as np


def font_lists(home: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (home / ".cache/matplotlib").iterdir()
    }


class Kept(logging.Handler):
    """Keeps warnings and all about the list of fonts: that it is built is told on the level of information."""

    lines: ClassVar[list[str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING or record.name.endswith("font_manager"):
            self.lines.append(record.getMessage())


logging.getLogger("matplotlib").setLevel(logging.INFO)
logging.getLogger("matplotlib").addHandler(Kept())
import matplotlib as mpl  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import font_manager  # noqa: E402

NAMES = (
    "Arial",
    "Times New Roman",
    "Calibri",
    "SimHei",
    "Microsoft YaHei",
    "Noto Sans CJK SC",
    "Malgun Gothic",
    "Mangal",
)
figure, axes = plt.subplots()
axes.plot([3, 1, 2])
axes.set_title("Übersicht 销售额 売上 매출 हिन्दी ไทย العربية")
axes.set_ylabel("$\\alpha^2$ €")
axes.set_xlabel("温度 ($^\\circ$C) $매_{출}$ ไทย", weight="bold")
figure.savefig("/out/chart.png")
print(
    json.dumps(
        {
            "font_list_unchanged": font_lists(Path.home()) == font_lists(Path("/opt/proofbox/skel")),
            "log": Kept.lines,
            "pixels_drawn": bool(np.ptp(plt.imread("/out/chart.png")) > 0),
            "backend": mpl.get_backend(),
            "not_listed": [name for name in NAMES if name not in font_manager.get_font_names()],
            "not_found": [name for name in NAMES if not font_manager.findfont(name, fallback_to_default=False)],
        }
    )
)
