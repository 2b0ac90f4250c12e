"""How all charts of the benchmarks look, on a light and on a dark page."""

from typing import Any


def inks(*, is_dark: bool) -> tuple[str, str]:
    """The colours of texts and of lines in the background."""
    return ("#e6edf3", "#3d444d") if is_dark else ("#1f2328", "#d1d9e0")


def style(*, is_dark: bool) -> Any:
    """Matplotlib's settings, whose type differs between its releases; the same figures give the same bytes."""
    ink, grid = inks(is_dark=is_dark)
    return {
        "svg.fonttype": "path",
        "svg.hashsalt": "proofbox",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "text.color": ink,
        "axes.labelcolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.edgecolor": grid,
        "grid.color": grid,
    }
