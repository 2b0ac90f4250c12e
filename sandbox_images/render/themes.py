"""Themes: those that come with the image, and the caller's own palette, fonts and logo from a small file."""

import json
import os
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from render.font_families import text_size_pt
from render.frontend.figures.code_palette import code_css
from render.model import RenderError, Theme
from tinycss2.color5 import parse_color

BUILT_IN = ("plain", "dark", "brand", "paper")
KINDS = ("note", "tip", "important", "warning", "caution")
COLOURS = ("text", "muted", "accent", "background", "surface", "border", "code_background", "heading", *KINDS)
FONTS = ("body", "heading", "mono")
FIELDS = ("name", "extends", "colours", "series", "fonts", "logo")
THEME_FILE_BYTES_MAX = 200_000
SERIES_MAX = 12
LOGO_CHARACTERS_MAX = 150_000

_FOLDER = Path(__file__).parent / "themes"
_FAMILY = re.compile(r"[A-Za-z0-9][\w .+-]{0,60}")
_SPELLINGS = {"colors": "colours", "palette": "colours"}
_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads, ".toml": tomllib.loads, ".yaml": yaml.safe_load, ".yml": yaml.safe_load,
}  # fmt: skip


def load_theme(name_or_path: str, root: str, folder: str = "") -> Theme:
    """Reads a theme: a built-in one, or a file below ``root``, by its path from there or from ``folder``.

    A theme file is YAML, JSON or TOML with any of the `FIELDS`: ``name``, ``extends`` (a built-in theme, ``brand`` if
    there is none), ``colours`` with any of the names of `COLOURS`, ``series`` (colours of charts), ``fonts`` with any
    of `FONTS`, and ``logo``, the path of a picture or a data URI. The rest is as in the theme that it extends.

    Raises:
        RenderError: ``unknown_theme``: no theme of that name, or a file that cannot be read as one;
            ``invalid_theme``: a field of the file is not what it should be, in words that name it.
    """
    name = (name_or_path or "plain").strip()
    if name in BUILT_IN:
        return _theme(_built_in(name))
    values = {_SPELLINGS.get(str(key), str(key)): value for key, value in _read(name, root, folder).items()}
    _refuse_unknown("field", values, FIELDS)
    extended = values.get("extends", "brand")
    if extended not in BUILT_IN:
        raise _invalid("extends", extended, f"one of {', '.join(BUILT_IN)}")
    merged = _merged(_built_in(extended), values, Path(name).stem)
    return _theme({**merged, "logo": _beside(merged["logo"], _place(name, root, folder), root)})


def _beside(logo: str | None, file: Path, root: str) -> str | None:
    """A logo's path from the output folder, if it is named as a file beside the theme's."""
    if logo is None or logo[:5].lower() == "data:" or "\0" in logo:
        return logo
    base = os.path.realpath(root)
    full = os.path.realpath(file.parent / logo)
    return full[len(base) + 1 :] if full.startswith(base + os.sep) and Path(full).is_file() else logo


def document_css(theme: Theme) -> str:
    """The typography of pages, for documents that bring no style sheet of their own."""
    return _css("document.css") + theme.page_css


@cache
def _css(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _built_in(name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return values


def _place(path: str, root: str, folder: str) -> Path:
    base = os.path.realpath(root)
    plain = path.replace("\0", "").lstrip("/")
    places = [Path(os.path.realpath(Path(base, *parts, plain))) for parts in ((), (folder,))]
    return next((place for place in places if place.is_file()), places[0])


def _read(path: str, root: str, folder: str) -> dict[Any, Any]:
    base = os.path.realpath(root)
    full = _place(path, root, folder)
    suffix = full.suffix.lower()
    if suffix not in _READERS or not str(full).startswith(base + os.sep) or not full.is_file():
        raise RenderError(
            "unknown_theme",
            f"There is no theme {path[:100]}. The built-in themes are {', '.join(BUILT_IN)}; another one is a "
            f"{', '.join(_READERS)} file in the output folder.",
        )
    if full.stat().st_size > THEME_FILE_BYTES_MAX:
        raise RenderError("unknown_theme", f"The theme {path[:100]} has more than {THEME_FILE_BYTES_MAX:,} bytes.")
    try:
        values = _READERS[suffix](full.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, TypeError, yaml.YAMLError) as exc:
        raise RenderError("unknown_theme", f"The theme {path[:100]} cannot be read: {str(exc)[:200]}") from exc
    if not isinstance(values, dict):
        raise RenderError("unknown_theme", f"The theme {path[:100]} is not an object.")
    return values


def _invalid(field: str, value: Any, wanted: str) -> RenderError:
    shown = repr(value)[:60] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return RenderError("invalid_theme", f"{field} of the theme is {shown}; it has to be {wanted}.")


def _refuse_unknown(what: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        raise RenderError(
            "invalid_theme", f"A theme has no {what} {unknown[0][:60]!r}; there are {', '.join(known)}."
        )


def _merged(start: dict[str, Any], values: dict[str, Any], name: str) -> dict[str, Any]:
    """The values of a file over those of a built-in theme."""
    given = {key: _colour(f"colours.{key}", value) for key, value in _mapping("colours", values, COLOURS).items()}
    colours = {**start["colours"], **given}
    if "text" in given and "heading" not in given:
        colours["heading"] = colours["text"]
    fonts = {**start["fonts"], **_mapping("fonts", values, FONTS)}
    for key, family in fonts.items():
        if not isinstance(family, str) or not _FAMILY.fullmatch(family.strip()):
            raise _invalid(f"fonts.{key}", family, "the name of a font family, such as Carlito")
        fonts[key] = family.strip()
    own = values.get("series")
    if own is not None and (not isinstance(own, list) or not 1 <= len(own) <= SERIES_MAX):
        raise _invalid("series", own, f"a list of 1 to {SERIES_MAX} colours")
    accent = [colours["accent"]] if "accent" in given else []
    series = [_colour(f"series[{index}]", value) for index, value in enumerate(own or ())] or [
        *accent,
        *(colour for colour in start["series"] if colour not in accent),
    ][:SERIES_MAX]
    logo = values.get("logo")
    if logo is not None and not (isinstance(logo, str) and 0 < len(logo.strip()) <= LOGO_CHARACTERS_MAX):
        raise _invalid("logo", logo, "the path of a picture, or a data URI")
    shown = values.get("name", name)
    if not isinstance(shown, str | int | float):
        raise _invalid("name", shown, "a text")
    rest = {"colours": colours, "fonts": fonts, "series": series, "logo": logo}
    return {**start, **rest, "name": str(shown)[:80]}


def _mapping(field: str, values: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    given = values.get(field)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _invalid(field, given, f"an object with any of {', '.join(known)}")
    rows = {str(key): value for key, value in given.items()}
    _refuse_unknown(field.removesuffix("s"), rows, known)
    return rows


def _colour(field: str, value: Any) -> str:
    colour = hex_colour(value)
    if colour is None:
        raise _invalid(field, value, "a CSS colour in quotes, such as '#0b7a75'")
    return colour


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
    variables += [f"--pb-{kind}-tint: {colours[kind]}1a;" for kind in KINDS]
    variables.append(f"--pb-size: {text_size_pt(fonts['body'])}pt;")
    colours.update({f"series_{number}": colour for number, colour in enumerate(values["series"], 1)})
    css = f":root {{ {' '.join(variables)} }}\n{_css('marks.css')}{code_css(colours['code_background'])}"
    page_css = _css(values["page_css"]) if "page_css" in values else ""
    families = fonts["body"], fonts["heading"], fonts["mono"]
    return Theme(values["name"], css, colours, *families, values.get("logo"), page_css)
