"""Colours of code: two palettes of ours, for light and for dark grounds, by pygments' short classes."""

_CLASSES = {
    "keyword": ("k", "kc", "kd", "kn", "kp", "kr", "kt", "ow"),
    "string": ("s", "s1", "s2", "sa", "sb", "sc", "sd", "dl", "se", "sh", "si", "sr", "ss", "sx"),
    "number": ("m", "mb", "mf", "mh", "mi", "mo", "il", "bp"),
    "comment": ("c", "c1", "ch", "cm", "cp", "cpf", "cs"),
    "name": ("nf", "fm", "nc", "nd", "ne", "nt", "nb"),
    "attribute": ("na", "nl", "nv", "vc", "vg", "vi", "py"),
    "deleted": ("gd", "gr", "err"),
    "inserted": ("gi",),
}
_LIGHT = {
    "keyword": "#8a2d9a", "string": "#24723b", "number": "#a4501c", "comment": "#66727f",
    "name": "#1b5dab", "attribute": "#7a5a00", "deleted": "#b02a37", "inserted": "#24723b",
}  # fmt: skip
_DARK = {
    "keyword": "#d9a4f5", "string": "#94dba6", "number": "#f6b98a", "comment": "#8d9bb0",
    "name": "#85c1ff", "attribute": "#ecd28a", "deleted": "#ff9aa5", "inserted": "#94dba6",
}  # fmt: skip
_DARK_BELOW = 110
"""Brightness, 0 to 255, below which a ground is dark."""


def is_dark(colour: str) -> bool:
    """Whether a ``#rrggbb`` is a dark ground."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return (red * 299 + green * 587 + blue * 114) / 1000 < _DARK_BELOW


def code_colours(background: str) -> dict[str, str]:
    """Colour by pygments' short class, for code on a ground."""
    palette = _DARK if is_dark(background) else _LIGHT
    return {name: palette[group] for group, names in _CLASSES.items() for name in names}


def code_css(background: str) -> str:
    """The same as a style sheet."""
    palette = _DARK if is_dark(background) else _LIGHT
    rows = []
    for group, names in _CLASSES.items():
        style = "; font-style: italic" if group == "comment" else ""
        rows.append(f"{', '.join(f'.pb-code .{name}' for name in names)} {{ color: {palette[group]}{style} }}")
    return "\n".join(rows) + "\n"
