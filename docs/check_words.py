"""Check names, comments, docstrings and documents for the words of docs/words.toml; part of ``make lint``.

Usage: python docs/check_words.py [--list [PATH]] [--lower]. ``--list`` shows every occurrence below a path, also
those within the baseline; ``--lower`` lowers the baseline to the present counts.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("contracts", "proofbox/cli", "proofbox/client", "sandbox_images", "service")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "docs/**/*.md")
CHANGELOG = "CHANGELOG.md"
# Made of docstrings and descriptions of `contracts` and `service`, whose words count there.
OF_CODE = frozenset({"docs/http-api.md", "docs/tool-parameters.md", "docs/wire-types.md"})
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One occurrence of a word.

    Attributes:
        path: the file, from the root of the repository.
        line: the line, from 1.
        word: the text that was found.
        instead: what to write in its place.
    """

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: '{self.word}'; write {self.instead}"


class Vocabulary:
    """The words of a TOML file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        self.baseline: dict[str, int] = content["baseline"]
        self._words = {
            form.strip(): instead for forms, instead in content["words"].items() for form in forms.split(",")
        }
        self._names = {**self._words, **content["names"]}
        self._phrases = [
            (re.compile(rf"\b{pattern}", re.IGNORECASE), instead) for pattern, instead in content["phrases"].items()
        ]
        self._terms = re.compile("|".join(content["terms"]["allowed"]), re.IGNORECASE)
        self._folders: dict[str, list[str]] = content["folders"]

    def in_name(self, path: str, line: int, name: str) -> Iterator[Finding]:
        """Find words in a Python name, split at underscores and capital letters."""
        allowed = self._allowed(path)
        for part in _NAME_PART.findall(self._terms.sub("", name)):
            instead = self._names.get(part.lower())
            if instead is not None and part.lower() not in allowed:
                yield Finding(path, line, name, instead)

    def in_text(self, path: str, line: int, text: str) -> Iterator[Finding]:
        """Find words and phrases in a text that begins at a line of a file."""
        allowed = self._allowed(path)
        for number, row in enumerate(text.split("\n"), line):
            plain = self._terms.sub("", row)
            for word in re.findall(r"[A-Za-z]+", plain):
                instead = self._words.get(word.lower())
                if instead is not None and word.lower() not in allowed:
                    yield Finding(path, number, word, instead)
            for pattern, instead in self._phrases:
                for found in pattern.finditer(plain):
                    yield Finding(path, number, found[0], instead)

    def lower(self, counts: Counter[str]) -> None:
        """Write the smaller of baseline and count for each package; an empty baseline gets the counts."""
        head = self._path.read_text(encoding="utf-8").partition("[baseline]\n")[0]
        limits = self.baseline or counts
        lowered = {name: min(counts[name], limits.get(name, 0)) for name in sorted(counts)}
        rows = "".join(f'"{name}" = {count}\n' for name, count in lowered.items() if count)
        self._path.write_text(f"{head}[baseline]\n{rows}", encoding="utf-8")

    def _allowed(self, path: str) -> set[str]:
        return {word for folder, words in self._folders.items() if path.startswith(f"{folder}/") for word in words}


def python_findings(words: Vocabulary, path: str, source: str) -> Iterator[Finding]:
    """Find words in the names, comments and docstrings of a module."""
    docstrings = _docstring_lines(source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.NAME:
            yield from words.in_name(path, line, token.string)
        elif token.type == tokenize.COMMENT or (token.type == tokenize.STRING and line in docstrings):
            yield from words.in_text(path, line, token.string)


def package_of(path: str) -> str:
    """Return the package that a module counts for: ``service/api``, ``contracts``."""
    parts = Path(path).parts
    return "/".join(parts[: min(2, len(parts) - 1)])


def newest_section(changelog: str) -> str:
    """Return the text up to the second release; older sections are history."""
    sections = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    return "".join(sections[:2])


def document_findings(words: Vocabulary, root: Path) -> list[Finding]:
    """Find words in all documents, and in the newest section of the changelog."""
    pages = {path for pattern in DOCUMENTS for path in root.glob(pattern)} - {root / name for name in OF_CODE}
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(pages)}
    if (root / CHANGELOG).is_file():
        texts[root / CHANGELOG] = newest_section((root / CHANGELOG).read_text(encoding="utf-8"))
    return [
        found for path, text in texts.items() for found in words.in_text(path.relative_to(root).as_posix(), 1, text)
    ]


def code_findings(words: Vocabulary, root: Path) -> list[Finding]:
    """Find words in the Python code of the product."""
    modules = sorted(path for folder in CODE for path in (root / folder).rglob("*.py"))
    return [
        found
        for path in modules
        for found in python_findings(words, path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    ]


def problems(words: Vocabulary, root: Path) -> list[str]:
    """Describe what has to change: words in documents, packages with more of them than their baseline."""
    lines = [str(found) for found in document_findings(words, root)]
    found_in: dict[str, list[Finding]] = {}
    for found in code_findings(words, root):
        found_in.setdefault(package_of(found.path), []).append(found)
    for package, findings in found_in.items():
        allowed = words.baseline.get(package, 0)
        if len(findings) > allowed:
            count = f"{package}: {len(findings)} words of docs/words.toml (baseline {allowed})"
            lines.append(f"{count}; see 'python docs/check_words.py --list {package}'")
    return lines


def _docstring_lines(source: str) -> set[int]:
    """The lines on which docstrings begin, those of attributes included."""
    return {
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def main(argv: list[str], root: Path = ROOT) -> int:
    """Check, list or lower; return 1 if something has to change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", nargs="?", const="", metavar="PATH", help="show all occurrences below a path")
    parser.add_argument("--lower", action="store_true", help="lower the baseline to the present counts")
    arguments = parser.parse_args(argv)
    words = Vocabulary(root / "docs" / "words.toml")
    if arguments.list is not None:
        found = [*document_findings(words, root), *code_findings(words, root)]
        lines = [str(each) for each in found if each.path.startswith(arguments.list)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return 0
    if arguments.lower:
        words.lower(Counter(package_of(found.path) for found in code_findings(words, root)))
        return 0
    lines = problems(words, root)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
