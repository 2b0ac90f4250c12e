"""The warm-up of a zygote: what libraries compute at their first use is done once, and not in each fork."""

import ctypes
import gc
import io
import os
import time

_DRAW = frozenset({"data", "science"})
_SINGLE_WITHIN_S = 5.0
_LOOK_AGAIN_S = 0.01
_MADV_COLLAPSE = 25
_LARGE_PAGE_BYTES = 2 * 1024 * 1024
_TABLE = "day,kind,value\n2026-01-01,a,1\n2026-02-01,b,2.5\n"


def warm(kind: str) -> None:
    """Does it for a kind of zygote; leaves one thread.

    Raises:
        RuntimeError: other threads are left, which no fork would have.
    """
    if kind in _DRAW:
        _warm_up_drawing()
    elif kind == "documents":
        _warm_up_rendering()
    elif kind == "inspector":
        _load_image_formats()
        _load_schema_validator()
    elif kind == "plain_inspector":
        _load_schema_validator()
    gc.collect()
    _end_threads()


def _warm_up_drawing() -> None:
    from zygote.font_lookups import cache_font_lookups  # noqa: PLC0415 - other kinds have no matplotlib
    from zygote.open_fonts import share_open_fonts  # noqa: PLC0415

    cache_font_lookups()
    share_open_fonts(_draw)


def _draw() -> None:
    """A table read, summed up and drawn, in a figure that pyplot does not know of.

    Fonts are found by that, and pandas and pillow load what they load late.
    """
    import pandas as pd  # noqa: PLC0415 - another kind may do without
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    Image.preinit()
    table = pd.read_csv(io.StringIO(_TABLE), parse_dates=["day"])
    sums = table.groupby([table["day"].dt.month, "kind"])["value"].sum().unstack()  # noqa: PD010 - of two columns
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], label="0")
    sums.plot(kind="bar", ax=axes, title="0")
    axes.legend()
    figure.tight_layout()
    figure.savefig(io.BytesIO(), format="png")


def _warm_up_rendering() -> None:
    """Documents: fontconfig reads its files, style sheets of every page are parsed."""
    from render.warm_up import render_ahead  # noqa: PLC0415 - another kind has no renderer

    render_ahead()


def _load_image_formats() -> None:
    """Pillow loads the modules of its formats when it first opens a file."""
    from PIL import Image  # noqa: PLC0415 - another kind may do without

    Image.init()


def _load_schema_validator() -> None:
    """The library makes its validator of schemas when it first looks at one."""
    from parsing.json_schema import schema_check  # noqa: PLC0415 - inspectors alone have it

    schema_check({"type": "object"})


def _end_threads() -> None:
    """Waits for threads of the work above, and ends those that wait for more."""
    # OpenBLAS ends its threads before a fork, and starts them again when they are needed.
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    deadline = time.monotonic() + _SINGLE_WITHIN_S
    while len(os.listdir("/proc/self/task")) > 1:
        if time.monotonic() > deadline:
            raise RuntimeError("an imported library keeps a thread")
        time.sleep(_LOOK_AGAIN_S)


def use_large_pages() -> None:
    """Has the kernel put this process's memory into large pages, as far as it can: forks copy fewer entries then.

    Kernels before 6.1 do nothing.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with open("/proc/self/maps", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    for where, rights, _, _, inode, *_ in lines:
        if "w" in rights and inode == "0":
            begin, end = (int(address, 16) for address in where.split("-"))
            begin += -begin % _LARGE_PAGE_BYTES
            end -= end % _LARGE_PAGE_BYTES
            if begin < end:
                madvise(begin, end - begin, _MADV_COLLAPSE)
