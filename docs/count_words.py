"""Count the words of the documents that people write; a test holds the sum below a bar.

Usage: python docs/count_words.py. It lists the pages and the sum.

A word is what `wc -w` counts, in text, tables and code blocks alike. Counted are the documents that a reader of the
site finds: README, SECURITY and CONTRIBUTING, all of docs, bench/README.md and the README of the TypeScript client.

Not counted are pages that a program writes (`docs/generate.py`, `docs/gallery/make.py`,
`tests/security/cis_docker.py`), parts that a program writes between markers, decision records, the changelog, and
results of benchmarks. The sentences in the code that generated pages consist of do not count either.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The redesign 30,000; console, gateway and network 8,000; operations and scale 3,000; what came beside, the rest.
WORDS_MAX = 42_600
_PATTERNS = (
    *("README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/*.md", "docs/gallery/*.md"),
    *("bench/README.md", "clients/typescript/README.md"),
)
_MADE = re.compile(r"\A# .+\n\nMade by `")
_OF_PROGRAMS = frozenset({"docs/cis.md", "docs/gallery/README.md"})
_MARKED = re.compile(r"<!-- ([\w-]+) -->.*?<!-- /\1 -->", re.DOTALL)


def words_of(text: str) -> int:
    """The number of words that a person wrote in a page; 0 for a page that a program writes."""
    return 0 if _MADE.match(text) else len(_MARKED.sub("", text).split())


def counts(root: Path = ROOT) -> dict[str, int]:
    """The number of words of each page, by its path."""
    pages = sorted({path for pattern in _PATTERNS for path in root.glob(pattern)})
    found = {page.relative_to(root).as_posix(): words_of(page.read_text(encoding="utf-8")) for page in pages}
    return {page: count for page, count in found.items() if count and page not in _OF_PROGRAMS}


def main() -> int:
    """List the pages, the longest first, and the sum; 1 if it is above the bar."""
    found = counts()
    for page, count in sorted(found.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"{count:6} {page}\n")
    sys.stdout.write(f"{sum(found.values()):6} of {WORDS_MAX}\n")
    return int(sum(found.values()) > WORDS_MAX)


if __name__ == "__main__":
    raise SystemExit(main())
