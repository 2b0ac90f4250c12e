"""Fonts that matplotlib has opened in a zygote: its forks use them, and read them from memory.

matplotlib reads a font through a Python file, some fourteen times for each glyph, and every process that is
forked opens its fonts anew: files that processes share have one position for all of them. The image's own addition
to matplotlib maps fonts into memory, which has no position that is shared.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from matplotlib import font_manager, ft2font

_NEW_POINTS, _NEW_DPI = 12, 72
_UPRIGHT, _IN_PLACE = ((0x10000, 0), (0, 0x10000)), (0, 0)


def share_open_fonts(draw: Callable[[], object]) -> None:
    """Has matplotlib give fonts that it opens while ``draw`` works to whoever asks for them in the same way later.

    All others are opened as ever. No other thread may run meanwhile.
    """
    owner: Any = font_manager
    open_as_ever = owner._get_font  # noqa: SLF001 - this module's purpose
    shared: dict[tuple[Any, ...], Any] = {}

    def question_of(paths: tuple[Any, ...], settings: dict[str, Any]) -> tuple[Any, ...]:
        # The thread is one of the settings: a font is for the one that it was opened in.
        return (*paths, *settings.items())

    def open_and_keep(*paths: Any, **settings: Any) -> Any:
        question = question_of(paths, settings)
        if question not in shared:
            shared[question] = open_as_ever.__wrapped__(*paths, **settings)
        return shared[question]

    @functools.wraps(open_as_ever)
    def get_font(*paths: Any, **settings: Any) -> Any:
        font = shared.get(question_of(paths, settings))
        return open_as_ever(*paths, **settings) if font is None else font

    owner._get_font = open_and_keep  # noqa: SLF001
    try:
        draw()
    finally:
        owner._get_font = get_font  # noqa: SLF001
    for name in ("cache_clear", "cache_info", "cache_parameters"):
        setattr(get_font, name, getattr(open_as_ever, name))
    for font in shared.values():
        font.clear()
        font.set_size(_NEW_POINTS, _NEW_DPI)
    _read_tables_once(shared.values())
    _set_sizes_once(shared.values())


def _read_tables_once(fonts: Iterable[Any]) -> None:
    """Has them give the same tables again: matplotlib asks for two with each text, a twentieth of a chart."""
    owner: Any = ft2font.FT2Font
    read = owner.get_sfnt_table
    tables: dict[int, dict[str, dict[str, Any] | None]] = {id(font): {} for font in fonts}  # none ever goes

    @functools.wraps(read)
    def get_sfnt_table(self: Any, name: str) -> dict[str, Any] | None:
        known = tables.get(id(self))
        if known is None:
            table: dict[str, Any] | None = read(self, name)
            return table
        if name not in known:
            known[name] = read(self, name)
        return None if (table := known[name]) is None else dict(table)

    owner.get_sfnt_table = get_sfnt_table


def _set_sizes_once(fonts: Iterable[Any]) -> None:
    """Has them stay as they are when they get the size that they have.

    matplotlib sets it for each glyph that it draws, and after that FreeType runs a font's program for that size
    again: more than half of what drawing the glyph takes.
    """
    owner: Any = ft2font.FT2Font
    resize, transform = owner.set_size, getattr(owner, "_set_transform", None)  # matplotlib 3.10 turns no font
    sizes: dict[int, tuple[Any, Any] | None] = {id(font): None for font in fonts}  # none ever goes

    @functools.wraps(resize)
    def set_size(self: Any, ptsize: Any, dpi: Any) -> None:
        size, font = (ptsize, dpi), id(self)
        if sizes.get(font) == size:
            if transform is not None:
                transform(self, _UPRIGHT, _IN_PLACE)  # as a new size does
            return
        # A font sets those that it falls back on too, so another may be such a one, and is not what its font knows.
        known = font in sizes
        for changed in (font,) if known else sizes:
            sizes[changed] = None
        resize(self, ptsize, dpi)
        if known:
            sizes[font] = size

    owner.set_size = set_size
