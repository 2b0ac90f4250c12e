"""Lets ``show()`` of matplotlib save figures: a sandbox has no screen."""

import itertools
import os
import weakref
from typing import Any


def save_shown_plots(folder: str) -> None:
    """Have ``plt.show()`` and ``Figure.show()`` save each figure that the program has not saved itself.

    Args:
        folder: where the files are written.
    """
    import matplotlib.pyplot as plt  # noqa: PLC0415 - the library takes a third of a second
    from matplotlib import figure as figures  # noqa: PLC0415

    shown_class: Any = figures.Figure
    numbers = itertools.count(1)
    saved: weakref.WeakSet[Any] = weakref.WeakSet()
    save = shown_class.savefig

    def save_and_note(figure: Any, *args: Any, **options: Any) -> Any:
        result = save(figure, *args, **options)
        saved.add(figure)
        return result

    def show_figure(figure: Any, *_args: Any, **_options: Any) -> None:
        if figure in saved:
            return
        names = (f"{folder}/plot_{number}.png" for number in numbers)
        name = next(name for name in names if not os.path.lexists(name))
        save_and_note(figure, name, bbox_inches="tight")
        print(f"The plot was saved as {name}")

    def show_all(*_args: Any, **_options: Any) -> None:
        for number in plt.get_fignums():
            show_figure(plt.figure(number))
        plt.close("all")

    shown_class.savefig, shown_class.show = save_and_note, show_figure
    plt.show = show_all
