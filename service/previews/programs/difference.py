"""Runs in a sandbox: the difference of the texts of two files as a unified diff, made by ``diff``.

Of documents the text is what ``react.read`` reads of them, by the reader of the image.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from proofbox.service.previews.programs.pages import CannotShowError, run_program
from proofbox.service.text_encoding import find_file_encoding

DIFF_BYTES_MAX = 512 * 1024
_TEXT_CHARS_MAX = 4_000_000
_SAME, _DIFFERENT = 0, 1
_PROGRAMS_OF_THE_IMAGE = "/opt/proofbox"


def compare_files(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request, ``{"old", "new", "old_kind", "new_kind", "labels", "target"}``; a kind is ``text`` or such.

    Raises:
        CannotShowError: a file has no readable text.
    """
    texts = []
    for side in ("old", "new"):
        path = f"/tmp/{side}"  # noqa: S108 - the sandbox's own, for this program only
        with open(path, "w", encoding="utf-8") as file:
            file.write(_read_text(request[side], request[f"{side}_kind"]))
        texts.append(path)
    labels = [f"--label={label}" for label in request["labels"]]
    command = ["diff", "--text", "-U3", "--minimal", *labels, *texts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}) as running:
        assert running.stdout is not None
        counts = {b"+": 0, b"-": 0}
        size_bytes, is_cut, is_head = 0, False, True
        with open(request["target"], "wb") as target:
            for line in running.stdout:
                is_head = is_head and not line.startswith(b"@@")
                if not is_head and line[:1] in counts:
                    counts[line[:1]] += 1
                is_cut = is_cut or size_bytes + len(line) > DIFF_BYTES_MAX
                if not is_cut:
                    target.write(line)
                    size_bytes += len(line)
    if running.returncode not in {_SAME, _DIFFERENT}:
        raise CannotShowError("the texts cannot be compared")
    return {"ok": True, "added": counts[b"+"], "removed": counts[b"-"], "truncated": is_cut}


def _read_text(path: str, kind: str) -> str:
    if kind == "text":
        with open(path, encoding=find_file_encoding(path), errors="replace") as file:
            return file.read()
    sys.path.append(_PROGRAMS_OF_THE_IMAGE)
    from page_text import documents  # noqa: PLC0415

    try:
        answer = documents.document_text(Path(path), kind, _TEXT_CHARS_MAX)
    except Exception as exc:  # parsers fail with all kinds of errors on hostile documents
        raise CannotShowError(f"its text cannot be read: {type(exc).__name__}") from exc
    text = answer.get("text")
    if not isinstance(text, str):
        raise CannotShowError(f"its text cannot be read: {str(answer.get('error'))[:200]}")
    return text + "\n"


if __name__ == "__main__":
    run_program(compare_files)
