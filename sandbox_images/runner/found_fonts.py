"""What matplotlib found out about fonts, kept: it looks for them again for each text, a tenth of a chart's time."""

import functools
import os
from collections.abc import Callable
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
_KEPT_MAX = 1_000


def keep_found_fonts() -> None:
    """Has matplotlib's own list of fonts answer a question that was asked before from memory.

    It is asked anew when properties or settings are others, and when the cache of `findfont` was emptied, as
    `addfont` does. What lacks a family is not kept, as it warns of that each time.
    """
    manager, settings = font_manager.fontManager, cast("dict[str, Any]", rcParams)
    owner: Any = font_manager.FontManager
    find = owner._find_fonts_by_props  # noqa: SLF001 - this module's purpose
    cache = owner._findfont_cached  # noqa: SLF001 - as above
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    @functools.wraps(find)
    def find_once(self: Any, prop: Any, *others: Any, **named: Any) -> list[Any]:
        if self is not manager or others or named or not isinstance(prop, font_manager.FontProperties):
            fonts: list[Any] = find(self, prop, *others, **named)
            return fonts
        question = (
            hash(prop),  # by which it tells properties apart itself
            os.environ.get("MPL_IGNORE_SYSTEM_FONTS"),
            *(tuple(value) if isinstance(value := settings[name], list) else value for name in _SETTINGS),
        )
        known = found.get(question)
        if known is None:
            known = tuple(find(self, prop))
            # Of a family that is the only one it may have taken the default one, with a warning.
            if 1 < len(known) == len(prop.get_family()):
                if len(found) >= _KEPT_MAX:
                    found.clear()
                found[question] = known
        return list(known)

    def clear_both(clear: Callable[[], None] = cache.cache_clear) -> None:
        found.clear()
        clear()

    owner._find_fonts_by_props = find_once  # noqa: SLF001
    cache.cache_clear = clear_both
