"""Our renderer, as the service runs it, but forked from a warm process instead of started for each document."""

import json
import tempfile
from pathlib import Path
from typing import Any

from render.__main__ import run

WARM_UP = "# One\n\nTwo *three*.\n"


def warm(fmt: str) -> None:
    """Renders a small document, which imports what the format needs."""
    with tempfile.TemporaryDirectory() as root:
        _run(WARM_UP, "markdown", Path(root, f"warm.{fmt}"), Path(root), {})


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Renders with ``job["options"]`` as further fields of the request.

    Raises:
        RuntimeError: the renderer's own error: its code and sentence.
    """
    del fmt
    root = Path(job["folder"])
    (source,) = root.glob("source.*")
    return _run(source.read_text(encoding="utf-8"), job["source_format"], target, root, job["options"])


def _run(content: str, source_format: str, target: Path, root: Path, options: dict[str, Any]) -> list[str]:
    request = {
        "output": target.suffix[1:],
        "source_format": source_format,
        "content": content,
        "root": str(root),
        "target": str(target.relative_to(root)),
        **options,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(request, file)
        file.flush()
        answer = run(file.name)
    if not answer["ok"]:
        raise RuntimeError(f"{answer['error']['code']}: {answer['error']['message']}")
    return [f"{row['code']}: {row['message']}" for row in answer["warnings"]]
