"""What ``show()`` of matplotlib does in a sandbox, and which figures a program leaves open without saving them.

As on a screen, a figure that was shown is done with: what is drawn next goes into a new one. But until then it
stays the current one, so that ``plt.savefig`` after ``plt.show`` saves it.
"""

import functools
import io
import os
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
        self._saved: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._presented: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_ours = False

    def change(self, pyplot: Any) -> None:
        """Changes pyplot, once it is imported."""
        self._note_saving(sys.modules["matplotlib.backend_bases"].FigureCanvasBase)
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

        pyplot.figure = _as_part_of(pyplot, figure)
        for name in _STARTS:
            setattr(pyplot, name, _as_part_of(pyplot, self._fresh(getattr(pyplot, name), pyplot)))

    def _note_saving(self, canvas_class: Any) -> None:
        """Notes the figures that are saved, by what a canvas sets of itself meanwhile.

        A function around the one that saves would stand in tracebacks, and warnings would name its line.
        """

        def set_saving(canvas: Any, is_saving: bool) -> None:
            if vars(canvas).get("_is_saving") and not is_saving and not self._is_ours and sys.exc_info()[0] is None:
                self._saved[canvas.figure] = _outline(canvas.figure)
            vars(canvas)["_is_saving"] = is_saving

        is_saving = property(lambda canvas: vars(canvas).get("_is_saving", False), set_saving)
        canvas_class._is_saving = is_saving  # noqa: SLF001 - there is no public one

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
        is_done = (figure in self._presented and not figure.stale) or self._saved.get(figure) == _outline(figure)
        self._presented.add(figure)
        if not is_done and not _is_empty(figure):
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


def _outline(figure: Any) -> Any:
    """Something that differs when more was drawn or written in a figure."""
    drawn = ("lines", "patches", "collections", "images", "texts", "tables", "artists")
    return [len(figure.texts)] + [
        [len(getattr(axes, kind)) for kind in drawn] + [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
        for axes in figure.axes
    ]


def _as_part_of(library: Any, function: Any) -> Any:
    """A function whose frames count as the library's: a warning names the line of the program that called."""
    path = os.path.join(os.path.dirname(library.__file__), "_shown.py")
    function.__code__ = function.__code__.replace(co_filename=path)
    return function
