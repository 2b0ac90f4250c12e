"""The page of the themes that come with the image, from their files."""

import json
from pathlib import Path

THEMES = Path(__file__).parents[2] / "sandbox_images" / "render" / "themes"


def themes_page() -> str:
    """The page of all themes: colours, chart colours and fonts."""
    themes = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(THEMES.glob("*.json"))}
    order = sorted(themes, key=lambda name: (name != "plain", name))
    text = (
        "# Themes\n\n"
        "Made by `docs/generate.py` from `sandbox_images/render/themes`. "
        "[Rendering](rendering.md#themes) describes theme files, which\nchange any of these values.\n\n"
        "![The same report in the themes plain, dark, brand and paper](gallery/themes.png)\n\n## Colours\n\n"
        f"| | {' | '.join(order)} |\n|---|{'---|' * len(order)}\n"
    )
    for colour in themes["plain"]["colours"]:
        text += f"| `{colour}` | {' | '.join(_colour(themes[name]['colours'].get(colour)) for name in order)} |\n"
    text += "\n## Colours of charts\n\nIn this order.\n\n"
    text += "".join(f"- `{name}`: {', '.join(map(_colour, themes[name]['series']))}\n" for name in order)
    text += f"\n## Fonts\n\n| | {' | '.join(order)} |\n|---|{'---|' * len(order)}\n"
    for use in themes["plain"]["fonts"]:
        text += f"| `{use}` | {' | '.join(themes[name]['fonts'].get(use, 'as plain') for name in order)} |\n"
    return text


def _colour(value: str | None) -> str:
    return f"`{value}`" if value else "as `text`"
