"""What ``show()`` of matplotlib does in a sandbox, and which figures a program leaves open without saving them.

As on a screen, a figure that was shown is done with: what is drawn next goes into a new one. But until then it
stays the current one, so that ``plt.savefig`` after ``plt.show`` saves it.
"""

import functools
import io
import sys
import weakref
from typing import Any

_PIXELS_MAX = 16_000_000
_STARTS = ("gca", "axes", "subplot", "subplot2grid", "suptitle")  # functions that draw into the current figure


class Figures:
    """The figures of a program.

    Args:
        shown: stores files.
    """

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._saved: weakref.WeakSet[Any] = weakref.WeakSet()
        self._presented: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_ours = False

    def change(self, pyplot: Any) -> None:
        """Changes pyplot, once it is imported."""
        bases = sys.modules["matplotlib.backend_bases"]
        self._note_saving(bases.FigureCanvasBase)
        figure_class: Any = sys.modules["matplotlib.figure"].Figure
        figure_class.show = lambda figure, *_args, **_options: self.present(figure)

        def show(*_args: Any, **_options: Any) -> None:
            for manager in _managers():
                self.present(manager.canvas.figure)

        pyplot.show = show
        make = pyplot.figure

        @functools.wraps(make)
        def figure(num: Any = None, *args: Any, **options: Any) -> Any:
            if num is None or not (isinstance(num, figure_class) or pyplot.fignum_exists(num)):
                self._close_presented()
            return make(num, *args, **options)

        pyplot.figure = figure
        for name in _STARTS:
            setattr(pyplot, name, self._fresh(getattr(pyplot, name), pyplot))

    def _note_saving(self, canvas_class: Any) -> None:
        save = canvas_class.print_figure

        @functools.wraps(save)
        def print_figure(canvas: Any, filename: Any, *args: Any, **options: Any) -> Any:
            result = save(canvas, filename, *args, **options)
            if not self._is_ours:
                self._saved.add(canvas.figure)
                canvas.figure.stale = False  # what changes from here on is not in the file
            return result

        canvas_class.print_figure = print_figure

    def _fresh(self, function: Any, pyplot: Any) -> Any:
        @functools.wraps(function)
        def draw(*args: Any, **options: Any) -> Any:
            active = _helpers().Gcf.get_active()
            if active is not None and active.canvas.figure in self._presented:
                pyplot.figure()
            return function(*args, **options)

        return draw

    def _close_presented(self) -> None:
        for manager in _managers():
            if manager.canvas.figure in self._presented:
                _helpers().Gcf.destroy(manager)

    def present(self, figure: Any) -> None:
        """Shows a figure, unless a file or what was shown before has all of it."""
        is_known = figure in self._saved or figure in self._presented
        self._presented.add(figure)
        if not (is_known and not figure.stale) and not _is_empty(figure):
            self._shown.attempt("a figure", self.store, figure)

    def show_left_open(self) -> None:
        """Shows the figures that the program has drawn, and neither saved, nor shown, nor closed."""
        for manager in _managers():
            figure = manager.canvas.figure
            if figure not in self._saved and figure not in self._presented and _has_content(figure):
                self.present(figure)

    def store(self, figure: Any) -> str | None:
        """Stores the picture of a figure, as a notebook makes it."""
        width, height = figure.get_size_inches()
        dpi = min(figure.dpi, (_PIXELS_MAX / max(width * height, 1e-9)) ** 0.5)
        buffer = io.BytesIO()
        self._is_ours = True
        try:
            figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight")
        finally:
            self._is_ours = False
        figure.stale = False
        self._presented.add(figure)
        name: str | None = self._shown.store(buffer.getvalue(), ".png")
        return name


def _helpers() -> Any:
    return sys.modules["matplotlib._pylab_helpers"]


def _managers() -> list[Any]:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return [] if helpers is None else list(helpers.Gcf.get_all_fig_managers())


def _is_empty(figure: Any) -> bool:
    drawn = (figure.axes, figure.texts, figure.images, figure.lines, figure.patches, figure.artists, figure.subfigs)
    return not any(drawn)


def _has_content(figure: Any) -> bool:
    """Whether there is more in a figure than empty axes."""
    if figure.axes:
        return any(axes.has_data() or axes.texts or axes.tables or axes.artists for axes in figure.axes)
    return not _is_empty(figure)
