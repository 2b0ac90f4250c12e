"""Scans of hostile pages: one pass each. Where a scan starts again at each tag, these sizes take it hours."""

import pytest

from proofbox.service.facades.gotenberg import documents
from proofbox.service.facades.gotenberg.html_scan import has_page_size, without_comments

MANY = 300_000


@pytest.mark.parametrize("opening", ["<!--", "<body", "</head", "<!-- x -->", "</head \t\n"])
def test_a_page_of_openings_is_scanned_once(opening: str) -> None:
    page = opening * MANY
    assert documents.insert_at_start(page, "+") == f"+{page}"


@pytest.mark.parametrize("opening", ["<!--", "<body", "<!doctype", "<style", "<style>", "<head", "<head>", "<!-->"])
def test_a_header_of_openings_is_scanned_once(opening: str) -> None:
    assert 'id="header"' in documents.running_fragment("header", opening * MANY)


@pytest.mark.parametrize("opening", ["<title", "<title>", "<title></titl"])
def test_a_title_without_an_end_is_no_title(opening: str) -> None:
    assert documents.title_of(opening * MANY) == ""


@pytest.mark.parametrize("rule", ["@page", "@page{", "@page {}", "@page{size", "{size:", "@page" * 40 + "{ size "])
def test_rules_without_a_size_are_scanned_once(rule: str) -> None:
    rules = rule * (9_999 // max(rule.count("@page"), 1))
    assert has_page_size(rules) is False
    assert has_page_size(rules + "@page wide:first { margin: 0; SIZE : A4 }") is True


def test_more_rules_than_are_read_count_as_sized() -> None:
    assert has_page_size("@page {}" * MANY) is True


def test_a_rule_of_one_property_is_scanned_once() -> None:
    assert has_page_size("@page" * 40 + "{" + "size " * MANY) is False


def test_a_size_outside_of_a_page_rule_is_not_one_of_the_page() -> None:
    assert has_page_size("p { size: 1 } @page { margin: 0 } q { size: 2 }") is False
    assert has_page_size("@page { font-size: 1pt }") is True  # as CSS has no such property, a guess does


@pytest.mark.parametrize(
    ("text", "rest"),
    [("a<!-- b -->c", "ac"), ("a<!-->b", "ab"), ("a<!-- b", "a"), ("a--><!-- <!-- -->b", "a-->b")],
)
def test_comments_are_taken_out(text: str, rest: str) -> None:
    assert without_comments(text) == rest


def test_a_declared_encoding_is_found_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("page") / "page"
    raw = b"<meta" * 39 + b" charset=" + b" " * 3_800 + b"<"
    path.write_bytes(raw)
    assert documents.read_html(path, "index.html") == raw.decode()
