"""A cache of matplotlib's font lookups: it looks its fonts up again for each text, a tenth of a chart's time."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from matplotlib import font_manager, rcParams

_SETTINGS = tuple(
    f"font.{name}"
    for name in (
        *("family", "style", "variant", "weight", "stretch", "size"),
        *("serif", "sans-serif", "cursive", "fantasy", "monospace"),
    )
)
"""What `findfont` depends on beside its arguments."""
_CACHED_MAX = 1_000


@dataclass(frozen=True)
class _Found:
    """What was found with these settings: of each question the fonts."""

    settings: list[Any]
    fonts: dict[tuple[int, str | None], tuple[Any, ...]] = field(default_factory=dict)


def cache_font_lookups() -> None:
    """Has matplotlib's own list of fonts answer a question that was asked before from memory.

    It is asked anew when properties or settings are others, and when the cache of `findfont` was emptied, as
    `addfont` does. The image's own addition to the list warns of a family that is not there at its first use only.
    """
    manager, settings = font_manager.fontManager, cast("dict[str, Any]", rcParams)
    owner: Any = font_manager.FontManager
    find = owner._find_fonts_by_props  # noqa: SLF001 - this module's purpose
    cache = owner._findfont_cached  # noqa: SLF001 - as above
    latest = _Found([])

    @functools.wraps(find)
    def find_once(self: Any, prop: Any, *others: Any, **named: Any) -> list[Any]:
        if self is not manager or others or named or not isinstance(prop, font_manager.FontProperties):
            fonts: list[Any] = find(self, prop, *others, **named)
            return fonts
        nonlocal latest
        now, found = [dict.__getitem__(settings, name) for name in _SETTINGS], latest
        if now != found.settings or len(found.fonts) >= _CACHED_MAX:
            latest = found = _Found([value.copy() if isinstance(value, list) else value for value in now])
        # The hash is that by which it distinguishes properties itself.
        question = (hash(prop), os.environ.get("MPL_IGNORE_SYSTEM_FONTS"))
        known = found.fonts.get(question)
        if known is None:
            known = tuple(find(self, prop))
            found.fonts[question] = known
        return list(known)

    def clear_both(clear: Callable[[], None] = cache.cache_clear) -> None:
        nonlocal latest
        latest = _Found([])
        clear()

    owner._find_fonts_by_props = find_once  # noqa: SLF001
    cache.cache_clear = clear_both
