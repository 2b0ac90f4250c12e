"""Themes: three that come with the image, and the caller's own palette, fonts and logo from a small file."""

import json
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tinycss2.color5 import parse_color

from render.document import RenderError, Theme
from render.source.code_colours import code_css

BUILT_IN = ("plain", "dark", "brand")
COLOURS = ("text", "muted", "accent", "background", "surface", "border", "code_background", "heading")
THEME_FILE_BYTES_MAX = 200_000
SERIES_MAX = 12

_FOLDER = Path(__file__).parent / "themes"
_FAMILY = re.compile(r"[A-Za-z0-9][\w .+-]{0,60}")


def load_theme(name_or_path: str, root: str) -> Theme:
    """Reads a theme.

    A theme file is JSON or TOML: ``name``, ``extends`` (a built-in theme, default ``brand``), ``colours`` (or
    ``palette``) with any of the names of `COLOURS`, ``series`` (colours of charts), ``fonts`` with ``body``,
    ``heading``, ``mono``, and ``logo``, an OUT_DIR-relative path. The rest is as in the theme that it extends.

    Raises:
        RenderError: ``unknown_theme``: no theme of that name, or a file that cannot be read as one.
    """
    name = (name_or_path or "plain").strip()
    if name in BUILT_IN:
        return _theme(_built_in(name))
    values = _read(name, root)
    extended = str(values.get("extends", "brand"))
    return _theme(_merged(_built_in(extended if extended in BUILT_IN else "brand"), values, Path(name).stem))


def document_css() -> str:
    """The typography of pages, for documents that bring no style sheet of their own."""
    return _css("document.css")


@cache
def _css(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _built_in(name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return values


def _read(path: str, root: str) -> dict[str, Any]:
    base = os.path.realpath(root)
    full = Path(os.path.realpath(Path(base, path.replace("\0", "").lstrip("/"))))
    known = (
        f"The built-in themes are {', '.join(BUILT_IN)}; another one is a .json or .toml file in the output folder."
    )
    if (
        full.suffix.lower() not in {".json", ".toml"}
        or not str(full).startswith(base + os.sep)
        or not full.is_file()
    ):
        raise RenderError("unknown_theme", f"There is no theme {path[:100]}. {known}")
    if full.stat().st_size > THEME_FILE_BYTES_MAX:
        raise RenderError("unknown_theme", f"The theme {path[:100]} has more than {THEME_FILE_BYTES_MAX:,} bytes.")
    try:
        text = full.read_text(encoding="utf-8")
        values = tomllib.loads(text) if full.suffix.lower() == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as exc:
        raise RenderError("unknown_theme", f"The theme {path[:100]} cannot be read: {str(exc)[:200]}") from exc
    if not isinstance(values, dict):
        raise RenderError("unknown_theme", f"The theme {path[:100]} is not an object.")
    return values


def _merged(start: dict[str, Any], values: dict[str, Any], name: str) -> dict[str, Any]:
    """The values of a file over those of a built-in theme; what makes no sense is as it was."""
    colours, fonts = dict(start["colours"]), dict(start["fonts"])
    given = values.get("colours") or values.get("colors") or values.get("palette")
    for key, value in given.items() if isinstance(given, dict) else ():
        if key in COLOURS and (colour := hex_colour(value)):
            colours[key] = colour
    if isinstance(given, dict) and "heading" not in given and "text" in given:
        colours["heading"] = colours["text"]
    for key, value in values["fonts"].items() if isinstance(values.get("fonts"), dict) else ():
        if key in fonts and isinstance(value, str) and _FAMILY.fullmatch(value.strip()):
            fonts[key] = value.strip()
    own = [colour for colour in map(hex_colour, _list(values.get("series"))) if colour]
    accent = [colours["accent"]] if colours["accent"] != start["colours"]["accent"] else []
    series = own or accent + [colour for colour in start["series"] if colour not in accent][: SERIES_MAX - 1]
    logo = values.get("logo") if isinstance(values.get("logo"), str) else None
    shown = str(values.get("name") or name)[:80]
    return {"name": shown, "colours": colours, "fonts": fonts, "series": series[:SERIES_MAX], "logo": logo}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def hex_colour(value: Any) -> str | None:
    """A CSS colour as ``#rrggbb``, or None."""
    if not isinstance(value, str) or len(value) > 100:  # noqa: PLR2004
        return None
    try:
        colour = parse_color(value.strip())
        if colour is None or isinstance(colour, str):
            return None
        red, green, blue = colour.to("srgb").coordinates
        return "#" + "".join(f"{round(max(0.0, min(1.0, part or 0.0)) * 255):02x}" for part in (red, green, blue))
    except (ValueError, NotImplementedError, TypeError, AttributeError):
        return None


def _theme(values: dict[str, Any]) -> Theme:
    colours: dict[str, str] = dict(values["colours"])
    fonts = values["fonts"]
    variables = [f"--pb-{key.replace('_', '-')}: {colour};" for key, colour in colours.items()]
    variables += [
        f'--pb-{key}: "{fonts[font]}";'
        for key, font in (("body", "body"), ("headings", "heading"), ("mono", "mono"))
    ]
    colours.update({f"series_{number}": colour for number, colour in enumerate(values["series"], 1)})
    css = f":root {{ {' '.join(variables)} }}\n{_css('marks.css')}{code_css(colours['code_background'])}"
    return Theme(values["name"], css, colours, fonts["body"], fonts["heading"], fonts["mono"], values.get("logo"))
