"""The one spelling of a web address."""

import pytest

from proofbox.service.web.urls import UrlRefusedError, WebUrl


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/A?b=C#d", "https://example.com/A?b=C"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:8080", "http://example.com:8080/"),
        ("https://example.com./x", "https://example.com/x"),
        ("https://stra\u00dfe.example/", "https://xn--strae-oqa.example/"),
        ("https://example\u3002com/", "https://example.com/"),
        ("https://example.com/h\u00f6he?q=\u00e4", "https://example.com/h%C3%B6he?q=%C3%A4"),
        ("https://example.com/a%20b?c=%2F&utm_source=x", "https://example.com/a%20b?c=%2F&utm_source=x"),
        ("http://[2001:DB8:0::1]/", "http://[2001:db8::1]/"),
        ("  https://example.com/  ", "https://example.com/"),
    ],
)
def test_an_address_has_one_spelling_and_reading_it_again_changes_nothing(written, canonical):
    assert str(WebUrl.parse(written)) == canonical
    assert str(WebUrl.parse(canonical)) == canonical


@pytest.mark.parametrize("written", ["https://a b/", "https://a.example/b c", "https://a.example/\n", "x" * 9_000])
def test_what_parsers_disagree_about_is_refused(written):
    if written.endswith("\n"):
        written += "x"
    with pytest.raises(UrlRefusedError):
        WebUrl.parse(written)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "1.2.3.4.5",
        "256.1.1.1",
        "a.0x1",
        "user@a.example",
        "user:pw@a.example",
        "a..b",
        "[::1%25lo]",
        "[1.2.3.4]",
        "[zz]",
        "a%2eb",
        "-a.example",
    ],
)
def test_a_host_that_programs_read_in_different_ways_is_refused(host):
    with pytest.raises(UrlRefusedError):
        WebUrl.parse(f"http://{host}/")


def test_a_relative_redirect_is_read_from_where_it_was_sent():
    base = WebUrl.parse("https://example.com/a/b?c")
    assert [str(base.joined(x)) for x in ("d", "/d", "?e", "//f.example/g")] == [
        "https://example.com/a/d",
        "https://example.com/d",
        "https://example.com/a/b?e",
        "https://f.example/g",
    ]
