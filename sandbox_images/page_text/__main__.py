"""``python -m page_text request.json``: reads web pages or documents and writes their text into one JSON file.

The request is ``{"pages": [page], "target", "characters_max", "seconds_per_page"}``, its paths below OUT_DIR. A
page is ``{"path", "charset", "url"}`` or a document ``{"path", "kind"}``; kinds are docx, pdf, pptx and xlsx.
The file is ``{"pages": [{"title", "text", "truncated", "language"?, "date"?} | {"error"}]}``, in the order of the
request.

Each page is read by a process of its own: one that hangs its parser, or eats up the memory, costs that page alone.
"""

import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from page_text import documents

ROOT = Path(os.environ.get("OUT_DIR", "/out"))
MEMORY_BYTES = 768 * 1024 * 1024
"""Address space of the process of one page or document."""
_READ_BYTES = 65_536


def _read_page(page: dict[str, Any], characters_max: int) -> dict[str, Any]:
    try:
        if "kind" in page:
            return documents.document_text(ROOT / page["path"], page["kind"], characters_max)
        from page_text.extraction import extracted  # noqa: PLC0415 - documents are read without its libraries

        data = (ROOT / page["path"]).read_bytes()
        return extracted(data, page["charset"], page["url"], characters_max)
    except MemoryError:
        return {"error": "reading it takes more memory than there is"}
    except Exception as exc:  # noqa: BLE001 - parsers fail with all kinds of errors on hostile pages
        return {"error": f"{type(exc).__name__}: {exc}"[:200]}


def _child(page: dict[str, Any], characters_max: int, pipe: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answer = json.dumps(_read_page(page, characters_max)).encode()
    view = memoryview(answer)
    while view:
        view = view[os.write(pipe, view) :]


def _apart(page: dict[str, Any], characters_max: int, seconds: float) -> dict[str, Any]:
    """Reads a page in a child process; what it does not answer in time is an error."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(source)
            _child(page, characters_max, sink)
        finally:
            os._exit(0)
    os.close(sink)
    answered = bytearray()
    ends = time.monotonic() + seconds
    in_time = False
    while (left := ends - time.monotonic()) > 0 and select.select([source], [], [], left)[0]:
        piece = os.read(source, _READ_BYTES)
        if not piece:
            in_time = True
            break
        answered += piece
    os.close(source)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if not in_time:
        return {"error": f"it could not be read within {seconds:g} s"}
    try:
        answer: dict[str, Any] = json.loads(answered)
    except ValueError:
        return {"error": "it ended the program that read it"}
    return answer


def _import_libraries(pages: list[dict[str, Any]]) -> None:
    """Imports what reading needs once, in the process that all others are forked from."""
    for kind in {page.get("kind") for page in pages}:
        if kind is None:
            importlib.import_module("page_text.extraction")
        else:
            documents.reader(kind)


def main() -> int:
    """Reads the path of the request from the command line; gives the exit status."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    _import_libraries(request["pages"])
    pages = [_apart(page, request["characters_max"], request["seconds_per_page"]) for page in request["pages"]]
    (ROOT / request["target"]).write_text(json.dumps({"pages": pages}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
