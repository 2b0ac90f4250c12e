"""Documents to render, half of them to tune on and half to report.

Some are fetched from packages into a cache folder, some are written by `documents` and `decks`; none is committed.
Everything is pinned, so a corpus is the same wherever it is fetched.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from bench.render import authored_decks, decks, documents, model_decks
from bench.render.model import Sample, SourceFormat

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".proofbox" / "corpora"
NPM = {
    "readmes": ("eslint@9.30.0", "express@5.1.0", "webpack@5.99.9"),
    "packages": ("@mermaid-js/examples@1.4.0", "unicode-emoji-json@0.9.0"),
}
NPM_BEFORE = "2026-10-01"
"""What the pinned packages depend on is taken as it was on this day."""
WHEELS = ("cmarkgfm==2025.10.22", "html5lib==1.1", "babel==2.18.0")
SPECIFICATIONS = "marko==2.2.4"
DEBIAN = ("sqlite3-doc", "git-doc")
READMES_MAX = 130
HTML_MAX = 100
BYTES_MAX = 60_000
_EXAMPLE = re.compile(r"^`{32} example(.*)\n([\s\S]*?)^\.\n([\s\S]*?)^`{32}$", re.MULTILINE)


def half(sample_id: str) -> str:
    """``tune`` or ``report``: which half of its corpus a sample is in."""
    return "tune" if hashlib.sha256(sample_id.encode()).digest()[0] % 2 else "report"


def load(name: str) -> list[Sample]:
    """All samples of a corpus, fetched if they aren't there yet.

    Raises:
        RuntimeError: a package cannot be had.
        KeyError: there is no such corpus.
    """
    return [sample for sample, _ in _rows(name)]


def reference_html(sample: Sample) -> str:
    """What a document says, as HTML: from its corpus where that has it, else from GitHub's own parser."""
    if sample.corpus in CORPORA:
        found = _references(sample.corpus).get(sample.id)
        if found is not None:
            return found
    return sample.text if sample.source_format == "html" else github_html(sample.text)


def github_html(text: str) -> str:
    """Markdown to HTML with GitHub's parser, which shares no code with ours."""
    use_wheels()
    import cmarkgfm  # noqa: PLC0415 - fetched at run time

    flags = cmarkgfm.Options.CMARK_OPT_UNSAFE | cmarkgfm.Options.CMARK_OPT_FOOTNOTES
    extensions = ["table", "autolink", "strikethrough", "tasklist"]
    written: str = cmarkgfm.markdown_to_html_with_extensions(text, flags, extensions)
    return written


@cache
def use_wheels() -> None:
    """Fetches the second readers of Markdown and HTML, and lets them be imported."""
    folder = CACHE / "python"
    if not _is_there(folder, WHEELS):
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *WHEELS])
        _note(folder, WHEELS)
    sys.path.append(str(folder))


Row = tuple[Sample, str | None]
"""A sample, and what it says as HTML where the corpus knows."""


@cache
def _rows(name: str) -> list[Row]:
    return sorted(CORPORA[name](), key=lambda row: row[0].id)


@cache
def _references(name: str) -> dict[str, str]:
    return {sample.id: said for sample, said in _rows(name) if said is not None}


def _row(corpus: str, name: str, text: str, said: str | None = None, source: SourceFormat = "markdown") -> Row:
    return Sample(f"{corpus}/{name}", corpus, source, text), said


# ---- fetched ----


def _commonmark() -> list[Row]:
    return [
        _row("commonmark", f"{number:03}", text, said) for number, (text, said) in enumerate(_spec("commonmark"), 1)
    ]


def _gfm() -> list[Row]:
    """GitHub's examples that CommonMark's haven't; all its extensions are on, whatever an example is about."""
    known = {text for text, _ in _spec("commonmark")}
    return [
        _row("gfm", f"{number:03}", text) for number, (text, _) in enumerate(_spec("gfm"), 1) if text not in known
    ]


def _spec(name: str) -> list[tuple[str, str]]:
    """The examples of a specification: Markdown, and the HTML that it has to become."""
    folder = CACHE / "specifications"
    if not _is_there(folder, (SPECIFICATIONS,)):
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        _run([*fetch, "-d", str(folder), SPECIFICATIONS])
        _run(["tar", "-xzf", next(map(str, folder.glob("*.tar.gz"))), "--strip-components=1", "-C", str(folder)])
        _note(folder, (SPECIFICATIONS,))
    text = (folder / "tests" / "spec" / f"{name}.txt").read_text(encoding="utf-8").replace("\u2192", "\t")
    return [(found[2], found[3]) for found in _EXAMPLE.finditer(text)]


def _readmes() -> list[Row]:
    folder = _npm("readmes")
    files = {
        str(path.parent.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
        for path in folder.rglob("*")
        if path.name.lower() == "readme.md" and path.stat().st_size <= BYTES_MAX
    }
    return [_row("readmes", name, files[name]) for name in _some(files, READMES_MAX) if files[name].strip()]


def _html() -> list[Row]:
    folder = CACHE / "debian"
    if not _is_there(folder, DEBIAN):
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", *DEBIAN], cwd=folder)
        for package in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(folder)])
        _note(folder, DEBIAN)
    files = {
        str(path.relative_to(folder / "usr" / "share" / "doc").with_suffix("")): path
        for path in folder.rglob("*.html")
        if path.stat().st_size <= BYTES_MAX
    }
    return [
        _row("html", name, files[name].read_text(encoding="utf-8", errors="replace"), source="html")
        for name in _some(files, HTML_MAX)
    ]


def _mermaid() -> list[Row]:
    folder = _npm("packages") / "@mermaid-js" / "examples" / "dist" / "mermaid-examples.core.mjs"
    program = f"import({json.dumps(str(folder))}).then(m => console.log(JSON.stringify(m.diagramData)))"
    kinds = json.loads(_run(["node", "-e", program]))
    return [
        _row(
            "mermaid",
            f"{kind['id']}-{number}",
            f"Before.\n\n```mermaid\n{example['code'].strip()}\n```\n\nAfter.\n",
            "<p>Before.<p>After.",
        )
        for kind in kinds
        for number, example in enumerate(kind["examples"], 1)
    ]


def _scripts() -> list[Row]:
    use_wheels()
    return [_row("scripts", name, text) for name, text in documents.scripts()]


def _emoji() -> list[Row]:
    listed = _npm("packages") / "unicode-emoji-json" / "data-ordered-emoji.json"
    return [_row("emoji", name, text) for name, text in documents.emoji(json.loads(listed.read_text("utf-8")))]


def _npm(name: str) -> Path:
    folder = CACHE / name
    if not _is_there(folder, NPM[name]):
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        _run(["npm", "install", *flags, f"--before={NPM_BEFORE}", "--prefix", str(folder), *NPM[name]])
        _note(folder, NPM[name])
    return folder / "node_modules"


def _some(names: Iterable[str], most: int) -> list[str]:
    """At most so many names, as if drawn by lot, always the same ones."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:most]


def _is_there(folder: Path, pins: tuple[str, ...]) -> bool:
    note = folder / "fetched.txt"
    return note.is_file() and note.read_text(encoding="utf-8") == "\n".join(pins)


def _note(folder: Path, pins: tuple[str, ...]) -> None:
    (folder / "fetched.txt").write_text("\n".join(pins), encoding="utf-8")


def _run(command: list[str], cwd: Path | None = None) -> str:
    if cwd is None:
        CACHE.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as exc:
        raise RuntimeError(f"{command[0]} is not installed; it fetches a corpus.") from exc
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} … failed: {done.stderr.strip()[-300:]}")
    return done.stdout


# ---- written ----


def _formulas() -> list[Row]:
    return [
        _row(
            "formulas",
            f"{number:03}",
            f"Before.\n\n$$\n{tex}\n$$\n\nInline ${tex}$ after.\n",
            "<p>Before.<p>Inline<p>after.",
        )
        for number, tex in enumerate(documents.FORMULAS, 1)
    ]


def _citations() -> list[Row]:
    return [_row("citations", name, text, said) for name, text, said in documents.citations()]


def _decks() -> list[Row]:
    return [_row("decks", deck.name, deck.text, deck.said, deck.source_format) for deck in decks.written()]


def _model_decks() -> list[Row]:
    return [_row("model-decks", deck.name, deck.text, None, "html") for deck in model_decks.decks()]


def _authored_decks() -> list[Row]:
    return [
        _row("authored-decks", deck.name, deck.text, None, deck.source_format) for deck in authored_decks.decks()
    ]


def _hostile_decks() -> list[Row]:
    return [_row("hostile-decks", deck.name, deck.text, deck.said, deck.source_format) for deck in decks.hostile()]


CORPORA: dict[str, Callable[[], list[Row]]] = {
    "commonmark": _commonmark,
    "gfm": _gfm,
    "readmes": _readmes,
    "html": _html,
    "mermaid": _mermaid,
    "formulas": _formulas,
    "scripts": _scripts,
    "emoji": _emoji,
    "citations": _citations,
    "decks": _decks,
    "hostile-decks": _hostile_decks,
    "model-decks": _model_decks,
    "authored-decks": _authored_decks,
}
"""The corpora by name."""
