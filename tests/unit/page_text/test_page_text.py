"""The program that takes the readable text out of pages, as the sandbox runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[3] / "sandbox_images"
PARAGRAPHS = "".join(
    f"<p>Paragraph {n} says something about the tides that is long enough to be kept by the reader.</p>"
    for n in range(4)
)


def read(tmp_path, *pages, characters_max=1_000, seconds=20.0):
    """What the program says of pages: bytes, or bytes and their charset."""
    rows = []
    for number, page in enumerate(pages):
        data, charset = page if isinstance(page, tuple) else (page, None)
        if data is not None:
            (tmp_path / f"page-{number}").write_bytes(data)
        rows.append({"path": f"page-{number}", "charset": charset, "url": f"https://a.example/{number}"})
    request = tmp_path / "request.json"
    request.write_text(
        json.dumps(
            {"pages": rows, "target": "out.json", "characters_max": characters_max, "seconds_per_page": seconds}
        )
    )
    subprocess.run(
        [sys.executable, "-m", "page_text", str(request)],
        cwd=PROGRAMS,
        env={**os.environ, "OUT_DIR": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    return json.loads((tmp_path / "out.json").read_text())["pages"]


def page(body, head="<title>Tides</title>", lang=' lang="en"'):
    return f"<html{lang}><head>{head}</head><body>{body}</body></html>"


def test_the_article_is_kept_and_what_stands_around_it_is_not(tmp_path):
    html = page(f"<nav>Home Shop Login</nav><article><h1>Head</h1>{PARAGRAPHS}</article><footer>Imprint</footer>")
    [found] = read(tmp_path, html.encode())
    assert found["text"].startswith("# Head\n\nParagraph 0 says")
    assert not [word for word in ("Shop", "Imprint") if word in found["text"]]
    assert (found["title"], found["language"], found["truncated"]) == ("Tides", "en", False)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ('<title> Tides \n of May </title><meta property="og:title" content="Other">', "Tides of May"),
        ('<title></title><meta property="og:title" content="Tides">', "Tides"),
        ("", "Head"),
    ],
)
def test_the_title_is_the_one_that_the_page_gives_itself(tmp_path, head, title):
    html = page(f"<svg><title>a picture</title></svg><article><h1>Head</h1>{PARAGRAPHS}</article>", head)
    [found] = read(tmp_path, html.encode())
    assert found["title"] == title


def test_a_page_without_an_article_is_given_whole(tmp_path):
    [found] = read(tmp_path, page("<div>short</div>").encode())
    assert (found["title"], found["text"]) == ("Tides", "short")


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("Höhe".encode(), None),
        ("Höhe".encode(), "utf-8"),
        ("Höhe".encode("latin-1"), "iso-8859-1"),
        ("Höhe".encode("latin-1"), None),
        ("Höhe".encode("utf-16"), None),
        ("\ufeffHöhe".encode(), "iso-8859-1"),
        ("Höhe".encode("cp1252"), "no-such-charset"),
        ("Höhe".encode("latin-1"), "punycode"),
    ],
)
def test_the_encoding_is_found_as_browsers_do(tmp_path, data, charset):
    encoding = "utf-16" if data.startswith(b"\xff\xfe") else "ascii"
    before, after = page("<p>|</p>", "").split("|")
    around = [before.encode(encoding), after.encode("utf-16-le" if encoding == "utf-16" else "ascii")]
    if data.startswith(b"\xef\xbb\xbf"):
        whole = data[:3] + around[0] + data[3:] + around[1]
    elif encoding == "utf-16":
        whole = around[0] + data[2:] + around[1]
    else:
        whole = around[0] + data + around[1]
    [found] = read(tmp_path, (whole, charset))
    assert found["text"] == "Höhe"


def test_the_meta_element_names_the_encoding(tmp_path):
    html = page("<p>привет</p>", '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">')
    [found] = read(tmp_path, html.encode("cp1251"))
    assert found["text"] == "привет"


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('<meta property="article:published_time" content="2026-03-04T10:00:00Z">', ""),
        ('<script type="application/ld+json">{"@type":"Article","datePublished":"2026-03-04"}</script>', ""),
        ("", '<time datetime="2026-03-04">yesterday</time>'),
        ("", "<time>4 March 2026</time>"),
        ("", '<span itemprop="datePublished" content="2026-03-04">4 March</span>'),
    ],
)
def test_the_date_that_a_page_states_is_found(tmp_path, head, body):
    [found] = read(tmp_path, page(f"<article>{body}{PARAGRAPHS}</article>", head).encode())
    assert found["date"] == "2026-03-04"


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", "".join(f"<p>Room {number} has a view of the river</p>" for number in range(1980, 2030))),
        ("", "<p>The castle was built by 12 March 1995, and again on 2001-02-03.</p>"),
        ("", "<footer>© 2019 The hotel. Updated: 2020-03-04</footer>"),
        ("<title>News of 2026-03-04</title>", "<h1>4 March 2026</h1>"),
        ('<meta name="description" content="Room 1995, 12 March 2001">', "<time>5 minutes</time>"),
        ('<link rel="canonical" href="https://x.example/2026/03/04/tides">', ""),
    ],
)
def test_no_date_is_made_from_numbers_of_the_text(tmp_path, head, body):
    [found] = read(tmp_path, page(f"<article>{body}{PARAGRAPHS}</article>", head).encode())
    assert "date" not in found


def test_a_long_text_is_cut_and_says_so(tmp_path):
    [found] = read(tmp_path, page(PARAGRAPHS).encode(), characters_max=50)
    assert (len(found["text"]), found["truncated"]) == (50, True)


def test_a_page_that_cannot_be_read_is_an_error_of_its_own(tmp_path):
    missing, empty, good = read(tmp_path, None, b"", page(PARAGRAPHS).encode())
    assert "FileNotFoundError" in missing["error"]
    assert empty == {"title": "", "text": "", "truncated": False}
    assert good["text"].startswith("Paragraph 0")


def test_a_page_that_takes_too_long_is_given_up(tmp_path):
    slow, _ = read(tmp_path, page(PARAGRAPHS * 2_000).encode(), b"", seconds=0.01)
    assert slow["error"] == "it could not be read within 0.01 s"


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000,
        "<table><tr><td>" * 3_000,
        "<p " + "a='b' " * 100_000,
        "\x00" * 100_000,
        "<![CDATA[" * 10_000,
        "&" * 300_000,
        "<a href='" * 20_000,
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><p>&f;</p>',
    ],
)
def test_hostile_markup_is_an_answer(tmp_path, html):
    hostile, good = read(tmp_path, html.encode(), page(PARAGRAPHS).encode())
    assert "error" in hostile or "text" in hostile
    assert "root:" not in json.dumps(hostile)
    assert good["text"].startswith("Paragraph 0")
