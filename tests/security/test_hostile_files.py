"""Files that want to harm whoever opens them, promised by a real call: each has its verdict, nobody is harmed."""

import os
import string
from itertools import pairwise
from pathlib import Path

import hostile_files
import pytest
from service_process import eventually, serving, verdicts

pytestmark = pytest.mark.docker

PRODUCED, INVALID, SMALL = "produced", "artifact_invalid", "file_unusually_small"
TOO_LONG = "could not be checked within"
ENDED_EARLY = (TOO_LONG, "could not be opened: the checker")
RSS_GROWTH_BYTES_MAX = 150 << 20

NAMES = string.ascii_lowercase[:22]
"""Definitions that refer to the next one twice: four million ways through them."""
CHECKS = {
    "matched.json": {"json_schema": {"properties": {"x": {"pattern": "^(a+)+$"}}}},
    "circular.json": {"json_schema": {"$ref": "#"}},
    "growing.json": {
        "json_schema": {
            "$defs": {
                **{one: {"anyOf": [{"$ref": f"#/$defs/{after}"}] * 2} for one, after in pairwise(NAMES)},
                NAMES[-1]: {"type": "string"},
            },
            "items": {"$ref": "#/$defs/a"},
        }
    },
    **{
        name: {"not_blank": True}
        for name in (
            *("launch.pdf", "flate.pdf", "flates.pdf", "huge.pdf", "two.pdf", "frames.gif", "unpacks.png"),
            *("deep.html", "script.svg", "strings.xlsx", "rows.xlsx", "far.xlsx", "tags.html"),
        )
    },
}
# A judge that runs out of time or memory, on a busy or a small machine, says so in place of its verdict.
EXPECTED: dict[str, tuple[str, str]] = {
    "overlapping.zip": (INVALID, "unpacks to 4,000,000,000 bytes"),
    "overlapping-few.zip": (INVALID, "a ZIP bomb"),
    "zip64.zip": (INVALID, "unpacks to 1,152,921,504,606,846,976 bytes"),
    "linked.zip": (INVALID, "the link 'link' points outside the folder"),
    "up.zip": (INVALID, "would be written outside the folder"),
    "root.zip": (INVALID, "would be written outside the folder"),
    "drive.zip": (INVALID, "would be written outside the folder"),
    "many.zip": (INVALID, "has 10,001 members"),
    "nested.zip": (PRODUCED, ""),
    "devices.tar": (INVALID, "is a device or a pipe"),
    "through.tar": (INVALID, "points outside the folder"),
    "hard.tar": (INVALID, "would be written outside the folder"),
    "up.tar": (INVALID, "would be written outside the folder"),
    "sparse.tar": (INVALID, "unpacks to 35,184,372,088,832 bytes"),
    "pax.tar": (INVALID, "is damaged"),
    "bomb.tar.gz": (INVALID, "unpacks to 1,200,000,000 bytes"),
    "bomb.xz": (INVALID, "unpacks to more than 1,073,741,824 bytes"),
    "large.png": (INVALID, "2,500,000,000 pixels"),
    "text.png": (INVALID, "Decompressed data too large"),
    "profile.png": (INVALID, "Decompressed data too large"),
    "unpacks.png": (INVALID, "is blank"),
    "strips.tif": (INVALID, "3,600,000,000 pixels"),
    "packbits.tiff": (INVALID, "could not be opened as a TIFF image"),
    "frames.gif": (INVALID, "is blank"),
    "large.webp": (INVALID, "281,474,976,710,656 pixels"),
    "laughs.svg": (INVALID, "declares XML entities"),
    "quadratic.svg": (INVALID, "declares XML entities"),
    "outside.svg": (INVALID, "declares XML entities"),
    "script.svg": (PRODUCED, ""),
    "laughs.xml": (INVALID, "declares XML entities"),
    "deep.xml": (INVALID, "is not well-formed XML"),
    "launch.pdf": (PRODUCED, ""),
    "flate.pdf": (PRODUCED, ""),
    "flates.pdf": (INVALID, "is blank"),
    "objects.pdf": (PRODUCED, ""),
    "pages.pdf": (INVALID, "claims 1,000,000 pages"),
    "circle.pdf": (INVALID, "its page tree runs in a circle"),
    "deep.pdf": (PRODUCED, ""),
    "xref.pdf": (SMALL, "is only"),
    "huge.pdf": (SMALL, "is only"),
    "two.pdf": (PRODUCED, ""),
    "two.zip": (PRODUCED, ""),
    "laughs.docx": (INVALID, "has a document type declaration"),
    "outside.docx": (INVALID, "has a document type declaration"),
    "outward.docx": (PRODUCED, ""),
    "media.docx": (INVALID, "a ZIP bomb"),
    "strings.xlsx": (PRODUCED, ""),
    "rows.xlsx": (PRODUCED, ""),
    "far.xlsx": (PRODUCED, ""),
    "laughs.xlsx": (INVALID, "has a document type declaration"),
    "outside.xlsx": (INVALID, "has a document type declaration"),
    "deep.json": (INVALID, "it is nested too deep"),
    "digits.json": (INVALID, "a number of more than 4,300 digits"),
    "keys.json": (PRODUCED, ""),
    "twice.json": (PRODUCED, ""),
    "matched.json": (INVALID, TOO_LONG),
    "circular.json": (INVALID, "it is nested too deep"),
    "growing.json": (INVALID, TOO_LONG),
    "wide.csv": (PRODUCED, ""),
    "field.csv": (INVALID, "a field has more than 1,048,576 characters"),
    "quotes.csv": (INVALID, "a field has more than 1,048,576 characters"),
    "lies.parquet": (INVALID, "could not be opened as a Parquet table"),
    "deep.html": (INVALID, "is blank"),
    "tags.html": (INVALID, "is not an HTML page"),
    "line.txt": (PRODUCED, ""),
    "deep.py": (INVALID, "is not Python"),
    "runs.py": (PRODUCED, ""),
    "laughs.yaml": (PRODUCED, ""),
    "deep.yaml": (INVALID, "YAML"),
    "tag.yml": (PRODUCED, ""),
    "deep.toml": (INVALID, "it is nested too deep"),
    "quotes.jsonc": (INVALID, "is not JSON"),
    "slashes.jsonc": (INVALID, "is not JSON"),
    "pickle.npy": (PRODUCED, ""),
    "lies.npy": (INVALID, "is cut off"),
    "boxes.mp4": (INVALID, "has more than 100,000 boxes"),
    "view.db": (PRODUCED, ""),
    "braces.rtf": (INVALID, "a group of it is not closed"),
    "font.ttf": (INVALID, "is cut off"),
}
BESIDE = "kept.txt"
AT_A_TIME = 17


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.fixture(scope="module")
def judged(tmp_path_factory, engine):
    """What became of every file, by name; and what opening them cost the service's own process."""
    data_dir = tmp_path_factory.mktemp("files") / "data"
    with serving(data_dir, engine, pool_size=1, wall_s=120, inspect_s_per_file=3) as service:
        service.call("open('out.txt', 'w').write('x')")
        before = rss_bytes(service.pid), open_files(service.pid)
        told = {}
        names = list(hostile_files.FILES)
        source = Path(hostile_files.__file__).read_text(encoding="utf-8")
        for at in range(0, len(names), AT_A_TIME):
            part = names[at : at + AT_A_TIME]
            contract = [{"filename": name, "description": "hostile", **CHECKS.get(name, {})} for name in part]
            code = f"{source}\nopen('files/{BESIDE}', 'w').write('kept')\nmake({part!r})\n"
            answer = service.call(code, BESIDE, *contract)
            assert verdicts(answer)[BESIDE] == PRODUCED, answer["report"]
            told |= {a["physical_path"].rpartition("/")[2]: a for a in answer["artifacts"]}
        grown = rss_bytes(service.pid) - before[0]
        fds = eventually(lambda: open_files(service.pid), lambda count: count <= before[1] + 5, 5) - before[1]
        errors = [line for line in service.complaints if " WARNING " not in line]
        yield told, {"grown": grown, "fds": fds, "staged": service.staged(), "log": errors}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_hostile_file_gets_its_verdict(judged, name):
    artifact = judged[0][name]
    verdict, why = EXPECTED[name]
    message = artifact["message"] or ""
    assert message.isprintable()
    if message.startswith(ENDED_EARLY):
        assert artifact["verdict"] == INVALID
        return
    assert (artifact["verdict"], why in message) == (verdict, True), message


def test_every_hostile_file_has_an_expected_verdict():
    assert sorted(hostile_files.FILES) == sorted(EXPECTED)


def test_opening_hostile_files_costs_the_service_itself_neither_memory_nor_descriptors_nor_a_word(judged):
    cost = judged[1]
    assert cost["grown"] < RSS_GROWTH_BYTES_MAX
    assert {name: cost[name] for name in ("staged", "log")} == {"staged": [], "log": []}
    assert cost["fds"] < len(EXPECTED) // 2  # a leak would be one for each file; waiting sandboxes hold a few
