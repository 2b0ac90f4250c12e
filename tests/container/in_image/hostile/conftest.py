"""What no document may reach, laid out once: the same secret as text, picture, drawing, style sheet and theme."""

import importlib
import tempfile

import pytest
from attack import CANARY, CANARY_RGB, ELSEWHERE
from confined_run import SCRATCH, fresh
from PIL import Image

WRITERS = (
    "render.docx.writer", "render.paged.pdf_writer", "render.paged.png_writer", "render.pptx.writer",
    "render.xlsx.writer",
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="which part of the documents, such as 2/2: the second of two")


def pytest_collection_modifyitems(config, items):
    number, _, count = config.getoption("--part").partition("/")
    items[:] = items[int(number) - 1 :: int(count)]


@pytest.fixture(scope="session", autouse=True)
def elsewhere():
    tempfile.tempdir = str(fresh(SCRATCH))
    for name in WRITERS:  # as after a first rendering: each child would load its libraries anew
        importlib.import_module(name)
    folder = fresh(ELSEWHERE)
    for name, text in {
        "canary.txt": CANARY,
        "canary.svg": f'<svg xmlns="http://www.w3.org/2000/svg"><text y="20">{CANARY}</text></svg>',
        "canary.css": f'body::before {{ content: "{CANARY}" }}',
        "canary.html": f"<p>{CANARY}</p>",
        "canary.json": f'{{"name": "{CANARY}", "colours": {{"background": "#fe01dc"}}}}',
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    Image.new("RGB", (60, 60), CANARY_RGB).save(folder / "canary.png")
    return folder
