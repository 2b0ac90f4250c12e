"""``python -m readers CHECK... [--in FOLDER] [--out FOLDER] [--seconds N]``: one JSON object on standard output.

Its keys are the checks that were asked for; each holds what was found for every file of its kinds, by its path
below the folder. ``README.md`` beside this package shows the shapes.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from readers import audit, conformance, office, sdk, tags, words


def main() -> int:
    """Runs the checks side by side: most of them are programs of their own."""
    parser = argparse.ArgumentParser(prog="readers", description=__doc__.partition("\n")[0])
    parser.add_argument("checks", nargs="+", choices=("convert", "ooxml", "pdfua", "pdfa", "text", "tags"))
    parser.add_argument("--in", dest="source", type=Path, default=Path("/in"))
    parser.add_argument("--out", dest="target", type=Path, default=Path("/out"))
    parser.add_argument(
        "--seconds", type=int, default=600, help="how long a start of LibreOffice or of Node may take"
    )
    asked = parser.parse_args()
    source: Path = asked.source
    files = sorted(path for path in source.rglob("*") if path.is_file())
    office_files = [path for path in files if path.suffix in {".docx", ".pptx", ".xlsx"}]
    pdfs = [path for path in files if path.suffix == ".pdf"]
    with ThreadPoolExecutor() as pool:
        converted = (
            pool.submit(office.convert, office_files, source, asked.target, asked.seconds)
            if "convert" in asked.checks
            else None
        )
        validated = pool.submit(sdk.validate, office_files, asked.seconds) if "ooxml" in asked.checks else None
        found: dict[str, dict[str, Any]] = {}
        if validated is not None:
            audited = {path: audit.findings(path) for path in office_files}
            errors = validated.result()
            found["ooxml"] = {
                _name(path, source): {"sdk": errors[path], "audit": audited[path]} for path in office_files
            }
        if "pdfua" in asked.checks:
            found["pdfua"] = {_name(path, source): conformance.failures(path, "ua1") for path in pdfs}
        if "pdfa" in asked.checks:
            found["pdfa"] = {_name(path, source): conformance.archive(path) for path in pdfs}
        if "text" in asked.checks:
            found["text"] = {_name(path, source): words.pages(path) for path in pdfs}
        if "tags" in asked.checks:
            found["tags"] = {_name(path, source): tags.tree(path) for path in pdfs}
        if converted is not None:
            found["convert"] = {_name(path, source): outcome for path, outcome in converted.result().items()}
    json.dump(found, sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")
    return 0


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


if __name__ == "__main__":
    sys.exit(main())
