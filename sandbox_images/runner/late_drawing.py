"""A figure that waits to be drawn is drawn when somebody looks at it, as matplotlib says of `draw_idle`.

`pyplot.savefig` draws a figure into its file, and then asks the canvas to draw it once more when it has time. The
canvas of Agg has no window and no time of its own, so it drew at once, for nobody in most programs: a quarter of a
chart's time.
"""

import functools
from collections.abc import Callable
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation, Text

_WAITS = "_proofbox_waits_to_be_drawn"
_DRAWN_WITH = "renderer"


def draw_late() -> None:
    """Has canvases of Agg do so, but for those of subclasses, and where a program is told of each drawing."""
    canvas: Any = FigureCanvasAgg
    draw, draw_idle = canvas.draw, canvas.draw_idle

    @functools.wraps(draw)
    def draw_now(self: Any) -> None:
        vars(self).pop(_WAITS, None)
        draw(self)

    @functools.wraps(draw_idle)
    def wait(self: Any, *args: Any, **named: Any) -> None:
        is_told = self.callbacks.callbacks.get("draw_event")
        if type(self) is not FigureCanvasAgg or is_told or args or named:
            draw_idle(self, *args, **named)
        else:
            vars(self)[_WAITS] = True

    canvas.draw, canvas.draw_idle = draw_now, wait
    setattr(canvas, _DRAWN_WITH, property(_drawn_with, _draw_with))
    texts: tuple[Any, ...] = (Text, Annotation)
    for text in texts:
        text.get_window_extent = _after_drawing(text.get_window_extent)


def _draw_if_it_waits(canvas: Any) -> None:
    if _WAITS in vars(canvas):
        canvas.draw()


def _drawn_with(canvas: Any) -> Any:
    """What it was drawn with last: every way to the picture goes by this."""
    _draw_if_it_waits(canvas)
    try:
        return vars(canvas)[_DRAWN_WITH]
    except KeyError:
        raise AttributeError(f"{type(canvas).__name__!r} object has no attribute {_DRAWN_WITH!r}") from None


def _draw_with(canvas: Any, renderer: Any) -> None:
    vars(canvas)[_DRAWN_WITH] = renderer


def _after_drawing(measure: Callable[..., Any]) -> Callable[..., Any]:
    """A text remembers what it was drawn with, and is measured with that unless something else is given."""

    @functools.wraps(measure)
    def get_window_extent(self: Any, renderer: Any = None, *args: Any, **named: Any) -> Any:
        if renderer is None and (figure := self.get_figure(root=True)) is not None:
            _draw_if_it_waits(figure.canvas)
        return measure(self, renderer, *args, **named)

    return get_window_extent
