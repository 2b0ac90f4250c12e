"""What no document may reach, laid out once: the same secret as text, picture, drawing, style sheet and theme."""

import os

import pytest
from attack import CANARY, CANARY_RGB, ELSEWHERE
from confined_run import SCRATCH, fresh
from PIL import Image

# As after a first rendering: each child would load them anew.
import docx  # noqa: F401
import render.docx.writer  # noqa: F401
import render.paged.png_writer  # noqa: F401
import render.pptx.writer  # noqa: F401


@pytest.fixture(scope="session", autouse=True)
def elsewhere():
    folder = fresh(ELSEWHERE)
    for name, text in {
        "canary.txt": CANARY,
        "canary.svg": f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40"><text y="20">{CANARY}</text></svg>',
        "canary.css": f'body::before {{ content: "{CANARY}" }}',
        "canary.html": f"<p>{CANARY}</p>",
        "canary.json": f'{{"name": "{CANARY}", "colours": {{"background": "#fe01dc"}}}}',
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    Image.new("RGB", (60, 60), CANARY_RGB).save(folder / "canary.png")
    fresh(SCRATCH)
    os.environ["TMPDIR"] = str(SCRATCH)
    return folder
