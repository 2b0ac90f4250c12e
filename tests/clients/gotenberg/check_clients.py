"""Gotenberg's clients against the running service: what they make is opened here, with other libraries.

`make test-gotenberg` runs it; it needs the clients, which `setup.sh` installs.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pypdfium2
import pytest
from PIL import Image
from pypdf import PdfReader

HERE = Path(__file__).parent
CLIENTS = Path(os.environ.get("GOTENBERG_CLIENTS", ".gotenberg-clients")).resolve()
READY_S = 120


@dataclass(frozen=True)
class Running:
    url: str
    key: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service on a port of its own, with keys required."""
    data = tmp_path_factory.mktemp("data")
    address = data / "address"
    environment = {
        **os.environ, "PROOFBOX_DATA_DIR": str(data), "PROOFBOX_GOTENBERG": "true", "PROOFBOX_AUTH": "required",
        "PROOFBOX_POOL_SIZE": "2", "PROOFBOX_PORT": "0", "PROOFBOX_ADDRESS_FILE": str(address),
    }  # fmt: skip
    program = [sys.executable, "-m", "proofbox.cli"]
    made = subprocess.run(
        [*program, "keys", "create", "--name", "print", "--json"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    with (data / "log").open("wb") as log:
        service = subprocess.Popen([*program, "serve"], env=environment, stderr=log, stdout=log)
        try:
            yield Running(wait_until_up(address, service, data / "log"), json.loads(made.stdout)["secret"])
        finally:
            service.terminate()
            service.wait(60)


def wait_until_up(address: Path, service: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and service.poll() is None:
        with contextlib.suppress(FileNotFoundError, httpx.TransportError):
            url = f"{address.read_text().strip()}/gotenberg"
            if httpx.get(f"{url}/health").status_code == 200:
                return url
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def run_client(command: list[str], running: Running, out: Path, **environment: str) -> dict[str, Any]:
    arguments = [*command, running.url, running.key, str(out)]
    done = subprocess.run(arguments, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.fixture(scope="module")
def python(running: Running, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("python")
    return run_client([str(CLIENTS / "venv/bin/python"), str(HERE / "python_client.py")], running, out), out


@pytest.fixture(scope="module")
def node(running: Running, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("node")
    return run_client(["node", str(HERE / "node_client.mjs")], running, out, CLIENT_MODULES=str(CLIENTS)), out


def pages_of(path: Path) -> list[str]:
    return [page.extract_text() for page in PdfReader(path).pages]


def colours_of(path: Path) -> set[tuple[int, ...]]:
    picture = pypdfium2.PdfDocument(path)[0].render(scale=1).to_pil().convert("RGB")
    return {colour for _, colour in picture.getcolors(1 << 20)}


def test_python_reads_health_and_version(python: tuple[dict[str, Any], Path]) -> None:
    facts, _ = python
    assert (facts["up"], facts["chromium"], facts["version"]) == ("up", "up", "8.36.0")


def test_python_converts_html(python: tuple[dict[str, Any], Path]) -> None:
    facts, out = python
    [text] = pages_of(out / "hello.pdf")
    assert "Hello" in text
    assert "Page 1 of 1" in text
    box = PdfReader(out / "hello.pdf").pages[0].mediabox
    assert (round(box.width), round(box.height)) == (842, 595)
    assert (255, 0, 0) in colours_of(out / "hello.pdf")
    assert facts["trace"] == "trace-of-python"
    assert 'filename="hello.pdf"' in facts["disposition"]
    shown = facts["metadata"]["hello.pdf"]
    assert (shown["Title"], shown["Author"], shown["PageCount"]) == ("Given title", "Ann", 1)


def test_python_makes_an_archive(python: tuple[dict[str, Any], Path]) -> None:
    xmp = PdfReader(python[1] / "archive.pdf").xmp_metadata
    assert xmp is not None
    assert (str(xmp.pdfaid_part), str(xmp.pdfaid_conformance).lower()) == ("2", "b")


def test_python_converts_markdown_merges_and_splits(python: tuple[dict[str, Any], Path]) -> None:
    _, out = python
    [notes] = pages_of(out / "notes.pdf")
    assert "second" in notes
    assert "**" not in notes
    first, last = pages_of(out / "merged.pdf")
    assert "second" in first
    assert "Hello" in last
    with zipfile.ZipFile(out / "split.zip") as archive:
        assert archive.namelist() == ["merged_0.pdf", "merged_1.pdf"]
        assert "Hello" in PdfReader(io.BytesIO(archive.read("merged_1.pdf"))).pages[0].extract_text()


def test_python_takes_a_screenshot(python: tuple[dict[str, Any], Path]) -> None:
    with Image.open(python[1] / "hello.jpeg") as picture:
        assert (picture.format, picture.size) == ("JPEG", (400, 300))


def test_python_writes_metadata(python: tuple[dict[str, Any], Path]) -> None:
    metadata = PdfReader(python[1] / "written.pdf").metadata
    assert metadata is not None
    assert metadata.title == "Written"


def test_node_reads_health_and_version(node: tuple[dict[str, Any], Path]) -> None:
    assert (node[0]["status"], node[0]["version"]) == ("up", "8.36.0")


def test_node_converts_html(node: tuple[dict[str, Any], Path]) -> None:
    reader = PdfReader(node[1] / "page.pdf")
    [page] = reader.pages
    assert "Hello" in page.extract_text()
    assert "From Node" in page.extract_text()
    assert (round(page.mediabox.width), round(page.mediabox.height)) == (595, 842)
    assert reader.metadata is not None
    assert (reader.metadata["/Author"], reader.metadata["/Creator"]) == ("Bob", "chromiumly")
    # Small letters have no pixel that is only ink.
    assert any(green > 200 and max(red, blue) < 60 for red, green, blue in colours_of(node[1] / "page.pdf"))


def test_node_converts_markdown(node: tuple[dict[str, Any], Path]) -> None:
    [text] = pages_of(node[1] / "notes.pdf")
    assert "|" not in text
    assert {"a", "b", "1", "2"} <= set(text.split())


def test_node_takes_a_screenshot(node: tuple[dict[str, Any], Path]) -> None:
    with Image.open(node[1] / "page.webp") as picture:
        assert (picture.format, picture.size) == ("WEBP", (500, 200))


def test_node_changes_pdfs(node: tuple[dict[str, Any], Path]) -> None:
    facts, out = node
    assert len(pages_of(out / "merged.pdf")) == 2
    assert facts["metadata"]["merged.pdf"]["Title"] == "Merged"
    assert PdfReader(out / "rotated.pdf").pages[0].rotation == 90
    locked = PdfReader(out / "locked.pdf")
    assert locked.is_encrypted
    assert locked.decrypt("u")


def test_node_shows_why_a_field_is_refused(node: tuple[dict[str, Any], Path]) -> None:
    assert "Status: 400" in node[0]["refused"]
    assert "waitForExpression" in node[0]["refused"]
