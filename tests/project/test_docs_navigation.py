"""The documentation as a site: its links and anchors, its navigation, its length, and a remedy for each code."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "docs" / "site")]

count_words = importlib.import_module("count_words")
pages = importlib.import_module("pages")
codes = importlib.import_module("reference.codes")
remedies = importlib.import_module("reference.remedies")

PAGES = pages.all_pages()
KINDS = ["Start", "How-to guides", "Reference", "Explanation"]


@pytest.mark.parametrize("page", [*PAGES, "README.md"])
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    assert broken_links(page) == []


def broken_links(page):
    broken = []
    for target in pages.links(page):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        try:
            found = pages.resolve(page, path) if path else page
        except ValueError as exc:
            broken.append(str(exc))
            continue
        if anchor and not (found.endswith(".md") and anchor in pages.anchors(found)):
            broken.append(f"{page}: {target}: no such heading")
    return broken


def test_every_document_is_in_the_navigation_once_and_no_other_is():
    listed = [entry.path for entry in pages.navigation()]
    documents = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - {pages.INDEX}
    outside = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "clients/typescript/README.md"}
    assert sorted(listed) == sorted({*documents, *outside, "docs/gallery/README.md", "docs/adr/README.md"})


def test_the_navigation_has_the_four_kinds_of_pages():
    assert list(dict.fromkeys(entry.part for entry in pages.navigation())) == KINDS


def test_every_decision_is_on_the_site():
    decisions = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}
    assert decisions - set(PAGES) == set()


def test_the_documents_that_people_write_are_within_the_bar():
    found = count_words.counts()
    assert sum(found.values()) <= count_words.WORDS_MAX, "python docs/count_words.py lists the pages"
    assert {"docs/exec.md", "README.md", "SECURITY.md", "bench/README.md"} <= set(found)
    assert not {"docs/errors.md", "docs/http-api.md", "docs/cis.md"} & set(found)


def test_words_in_code_count_and_marked_parts_do_not():
    assert count_words.words_of("# A page\n\ntwo words\n\n```sh\nls -l\n```\n") == 9
    assert count_words.words_of("a\n<!-- x -->\n| b | c |\n<!-- /x -->\nd\n") == 2
    assert count_words.words_of("# Codes\n\nMade by `docs/generate.py`. Text\n") == 0


def test_every_code_has_a_remedy_and_every_remedy_a_code():
    listed = {code for rows in codes.sections().values() for code, _ in rows} - {"produced"}
    assert set(remedies.REMEDIES) == listed
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    assert [code for code in listed if f"\n## `{code}`\n" not in text] == []


def test_links_in_code_are_not_links_and_repeated_headings_are_numbered():
    text = "# A `code` [link](b.md)\n\n`[x](no.md)` [`y`](yes.md#z) ![p](p.png)\n\n"
    text += "```md\n[w](no.md)\n# No\n```\n\n## Two\n\n## Two\n"
    assert pages.links_of(text) == ["b.md", "yes.md#z", "p.png"]
    assert pages.anchors_of(text) == {"a-code-link", "two", "two-1"}
