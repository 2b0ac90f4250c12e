"""LibreOffice, headless, from HTML. Its first start makes a profile, which every job copies."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines.commands import run
from engines.pages import WARM_UP, page_file

PROFILE = Path("/tmp/libreoffice-profile")  # noqa: S108 - in a container that runs nothing else
FILTERS = {"pdf": "pdf:writer_web_pdf_Export", "docx": "docx:MS Word 2007 XML"}


def _convert(profile: Path, fmt: str, out: Path, pages: Sequence[Path]) -> list[str]:
    # HTML opens in Writer/Web, which has no DOCX; this filter opens it in Writer.
    reader = ["--infilter=HTML (StarWriter)"] if fmt == "docx" else []
    return run(
        [
            *("soffice", f"-env:UserInstallation=file://{profile}", "--headless", "--norestore", *reader),
            *("--convert-to", FILTERS[fmt], "--outdir", str(out), *map(str, pages)),
        ]
    )


def warm(fmt: str) -> None:
    """Makes the profile."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(WARM_UP, encoding="utf-8")
        _convert(PROFILE, fmt, Path(folder), [page])


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Renders one document.

    Raises:
        RuntimeError: LibreOffice's own error.
    """
    with tempfile.TemporaryDirectory() as profile:
        shutil.copytree(PROFILE, profile, dirs_exist_ok=True)
        return _convert(Path(profile), fmt, target.parent, [page_file(job, "result.html")])


def render_together(jobs: Sequence[dict[str, Any]], fmt: str) -> None:
    """Renders many in one start, which takes a twentieth of the time.

    Raises:
        RuntimeError: LibreOffice's own error.
    """
    pages = [page_file(job, f"page{index}.html") for index, job in enumerate(jobs)]
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryDirectory() as out:
        shutil.copytree(PROFILE, profile, dirs_exist_ok=True)
        _convert(Path(profile), fmt, Path(out), pages)
        for page in pages:
            written = Path(out, f"{page.stem}.{fmt}")
            if written.exists():
                shutil.move(written, page.with_name(f"result.{fmt}"))
