"""``python -m render request.json``: renders one document and prints one line of JSON.

``{"ok": true, "warnings": […], "cited": [sid, …], "facts": {…}}`` or
``{"ok": false, "error": {"code", "message"}}``. What libraries print goes to standard error.
"""

import gc
import json
import os
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from render.frontend.pipeline import open_document
from render.model import Document, RenderError, RenderRequest
from render.request import read_request
from render.writers import write

STACK_BYTES = 512 * 1024 * 1024
"""Layout recurses some ten frames per level. It is address space: only what is used becomes memory."""
RECURSION_MAX = 15_000
WARNINGS_MAX = 100
COLLECTED_AFTER = (100_000, 20, 100)
"""Objects made between collections: the tree of a long document exists to the end, and traversing it again and
again takes a third of the time."""


def render(request: RenderRequest) -> dict[str, Any]:
    """Renders a request; every failure is an answer.

    The file appears under its name when it is whole: a program that reads while this one writes sees no half.
    """
    target = Path(request.root, request.target)
    part: Path | None = None
    try:
        if not f"{os.path.realpath(target.parent)}/".startswith(f"{os.path.realpath(request.root)}/"):
            return _failed("invalid_request", "target is outside of the output folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = _new_file(target.parent)
        document, facts = _written(request, str(part))
        part.replace(target)
    except RenderError as exc:
        return _failed(exc.code, exc.message)
    except MemoryError:
        return _failed("out_of_memory", "The document takes more memory than there is.")
    except RecursionError:
        return _failed("too_deep", "The document is nested too deep to be laid out.")
    except OSError as exc:
        return _failed("write_failed", f"The file could not be written: {exc.strerror or exc}")
    except Exception as exc:  # noqa: BLE001 - the entry of the program: an unforeseen error is reported, not dumped
        return _failed("render_failed", f"{type(exc).__name__}: {exc}"[:500])
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    rows = [asdict(warning) for warning in document.warnings[:WARNINGS_MAX]]
    return {"ok": True, "warnings": rows, "cited": [source.sid for source in document.cited], "facts": facts}


def _new_file(folder: Path) -> Path:
    """A file that nobody had made: a link or a pipe of that name would lead the writer elsewhere."""
    handle, path = tempfile.mkstemp(".part", ".", folder)
    os.fchmod(handle, 0o644)
    os.close(handle)
    return Path(path)


def _written(request: RenderRequest, path: str) -> tuple[Document, dict[str, Any]]:
    """Renders; what fails in a way that nobody foresaw is tried again without the author's styles.

    Raises:
        RenderError: all that can be reported about a document; ``layout_failed`` if the second try fails too.
    """
    document = open_document(request)
    try:
        return document, write(document, path)
    except (MemoryError, OSError):
        raise
    except RenderError as exc:
        if exc.code != "layout_failed":
            raise
        reason = exc.message
    except Exception as exc:  # noqa: BLE001 - layout engines fail with all kinds of errors on hostile styles
        reason = f"{type(exc).__name__}: {exc}"[:200]
    from render.weasy.usable_styles import drop_styles  # noqa: PLC0415 - DOCX does without the layout engine

    document = open_document(request)
    drop_styles(document)
    document.warn(
        "styles_dropped", f"The document's own styles could not be laid out and were left out ({reason})."
    )
    try:
        return document, write(document, path)
    except (RenderError, MemoryError, OSError):
        raise
    except Exception as exc:
        raise RenderError(
            "layout_failed", f"The document could not be laid out: {type(exc).__name__}: {exc}"[:400]
        ) from exc


def _failed(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": message}}


def run(path: str) -> dict[str, Any]:
    """Renders the request of a file on a thread whose stack holds a deep document."""
    answers: list[dict[str, Any]] = []

    def work() -> None:
        sys.setrecursionlimit(RECURSION_MAX)
        try:
            answers.append(render(read_request(path)))
        except RenderError as exc:
            answers.append(_failed(exc.code, exc.message))

    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=work, name="render")
    thread.start()
    thread.join()
    return answers[0] if answers else _failed("render_failed", "The program ended without an answer.")


def main() -> int:
    """Reads the path of the request from the command line; gives the exit status, 0 if the file was written."""
    answer_to = os.dup(1)
    os.dup2(2, 1)
    answer = run(sys.argv[1]) if len(sys.argv) == 2 else _failed("invalid_request", "usage: render request.json")  # noqa: PLR2004
    line = json.dumps(answer, ensure_ascii=True, default=str) + "\n"
    with os.fdopen(answer_to, "w", encoding="utf-8") as file:
        file.write(line)
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    ended_with = main()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Python would unload pango, whose thread may still run; and taking the interpreter apart takes as long as a page.
    os._exit(ended_with)
