"""LibreOffice: opens DOCX, PPTX and XLSX and prints them as PDF, many files a start."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readers import words


def convert(paths: Sequence[Path], source: Path, target: Path, seconds: int) -> dict[Path, dict[str, Any]]:
    """Prints files as ``<target>/<path below source>.pdf`` and reads what the pages show.

    A file that LibreOffice dies of costs only itself: the files after it are started anew.

    Args:
        paths: DOCX, PPTX and XLSX files.
        source: the folder that their names are relative to.
        target: where the PDFs go.
        seconds: how long a start may take, with all of its files.

    Returns:
        For each file ``{"pdf": its name below target}`` and what `words.pages` has of that, or ``{"error": why}``.
    """
    outcomes: dict[Path, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        printed = _print_all(paths, Path(folder), seconds)
        for path in paths:
            pdf = printed[path]
            if isinstance(pdf, str):
                outcomes[path] = {"error": pdf}
                continue
            name = path.relative_to(source).as_posix() + ".pdf"
            kept = target / name
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(pdf, kept)
            outcomes[path] = {"pdf": name, **words.pages(kept)}
    return outcomes


def _print_all(paths: Sequence[Path], folder: Path, seconds: int) -> dict[Path, Path | str]:
    """Each file's PDF in ``folder``, or why there is none. Links give every file a name of its own."""
    links = {path: folder / f"{number}{path.suffix}" for number, path in enumerate(paths)}
    for path, link in links.items():
        link.symlink_to(path.resolve())
    printed: dict[Path, Path | str] = {}
    pending = list(paths)
    while pending:
        problem = _print([links[path] for path in pending], folder, seconds)
        missing = [path for path in pending if not links[path].with_suffix(".pdf").is_file()]
        printed.update({path: links[path].with_suffix(".pdf") for path in pending if path not in missing})
        if missing and len(pending) == 1:
            printed[missing[0]] = problem
        elif missing:
            # The first one may be the reason that the others are missing.
            problem = _print([links[missing[0]]], folder, seconds)
            pdf = links[missing[0]].with_suffix(".pdf")
            printed[missing[0]] = pdf if pdf.is_file() else problem
        pending = missing[1:]
    return printed


def _print(links: Sequence[Path], folder: Path, seconds: int) -> str:
    """One start of LibreOffice; what it said."""
    command = [
        *("soffice", f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--norestore"),
        *("--convert-to", "pdf", "--outdir", str(folder), *map(str, links)),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"LibreOffice needed more than {seconds} s"
    return (done.stderr or done.stdout).strip()[
        -500:
    ] or f"LibreOffice ended with {done.returncode} and said nothing"
