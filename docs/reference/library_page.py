"""The page of the Python packages in the sandbox image."""

import re
import textwrap
from pathlib import Path

IMAGES = Path(__file__).parents[2] / "sandbox_images"
LINE_LENGTH = 140


def libraries_page() -> str:
    """The page of all Python packages in the sandbox image, with their pinned versions."""
    pinned, asked_for = ((IMAGES / f"requirements.{kind}").read_text(encoding="utf-8") for kind in ("txt", "in"))
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)", pinned, re.MULTILINE)
    named = set(re.findall(r"^[a-z0-9-]+", asked_for, re.MULTILINE))
    text = (
        "# Python packages in the sandbox image\n\n"
        "Made by `docs/generate.py`. Programs can import all of them; [image.md](image.md) lists the commands, "
        "and\n[requirements.txt](../sandbox_images/requirements.txt) also the dependencies of these packages.\n\n"
    )
    listed = ", ".join(f"{name} {version}" for name, version in pins if name in named)
    return text + textwrap.fill(listed, LINE_LENGTH, break_on_hyphens=False) + ".\n"
