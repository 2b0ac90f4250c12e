import json

import pytest
from inspector_run import Case, compared, verdicts_of
from inspector_samples import image

NOT_BLANK = {"not_blank": True}
BLANK_PAGE = "is blank: it has neither visible text nor an image, a drawing or a table"
PAGE = b"<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body>%b</body></html>"
ENCODING_HINT = "; if another encoding is meant, give it as the check encoding"
RAISES = "cannot be checked: the contract's json_schema refers to "


def held_to(schema, value, problem=None, claim=""):
    return Case(claim, "a.json", json.dumps(value).encode(), problem, {"json_schema": schema})


TEXT = [
    Case("reads Markdown", "a.md", "# Größe 😀\n".encode(), None, NOT_BLANK),
    Case(
        "sees that a text is blank",
        "a.txt",
        b" \n\t\xe3\x80\x80\n",
        "is blank: it holds nothing but white space",
        NOT_BLANK,
    ),
    Case("lets a blank text pass if nobody minds", "a.txt", b"\n"),
    Case("refuses an image named .py", "a.py", image("PNG"), "is not text: it has a NUL byte at offset 8"),
    Case(
        "refuses what is not UTF-8 beyond the first megabyte",
        "a.log",
        b"x" * 1_048_575 + "é".encode() + b"\xff\n",
        "is not UTF-8: the byte at offset 1,048,577 does not belong there" + ENCODING_HINT,
    ),
    Case(
        "takes an unknown extension for bytes",
        "a.dat",
        b"\x00\x01",
        None,
        NOT_BLANK | {"mime": "application/octet-stream"},
    ),
    Case(
        "sees that a file of an unknown kind is all zeros",
        "a",
        bytes(3_000_000),
        "is blank: it holds nothing but zero bytes",
        NOT_BLANK,
    ),
]
JSON = [
    Case("reads JSON", "a.json", b'{"a": [1, null, "x"]}', None, NOT_BLANK),
    Case("takes zero for a value", "a.json", b"0", None, NOT_BLANK),
    *[
        Case(f"takes {text} for blank", "a.json", text.encode(), "is blank: its value is empty", NOT_BLANK)
        for text in ("null", "[]", "{}", '" "')
    ],
    Case("refuses NaN", "a.json", b'{"a": NaN}', "is not JSON: NaN is no JSON value"),
    Case("refuses -Infinity", "a.json", b"[-Infinity]", "is not JSON: -Infinity is no JSON value"),
    Case(
        "refuses a byte order mark", "a.json", b"\xef\xbb\xbf{}", "is not JSON: it starts with a byte order mark, …"
    ),
    Case(
        "names the place of a mistake",
        "a.json",
        b'{"a": 1,\n "b" 2}',
        "is not JSON: Expecting ':' delimiter at line 2 column 6",
    ),
    Case(
        "says how a file that is no JSON starts",
        "a.json",
        b"Here is the JSON: {}",
        "is not JSON: Expecting value at line 1 column 1 (it starts with 'Here is the JSON: {}')",
    ),
    Case("refuses UTF-16", "a.json", '{"a": 1}'.encode("utf-16-le"), "is not text: it has a NUL byte at offset 1"),
    Case(
        "answers for JSON that is a million deep",
        "a.json",
        b"[" * 1_000_000 + b"]" * 1_000_000,
        "could not be opened as JSON: it is nested too deep",
    ),
    Case(
        "answers for a number of a million digits",
        "a.json",
        b"9" * 1_000_000,
        "could not be opened as JSON: it has a number of more than 4,300 digits",
    ),
    Case("reads GeoJSON", "a.geojson", b'{"type": "Point"}', None, {"mime": "application/geo+json"}),
]
SCHEMA = [
    held_to({"type": "object", "required": ["a"]}, {"a": 1}, None, "lets a value pass that satisfies the schema"),
    held_to(
        {"type": "object", "required": ["a"]},
        {"b": 1},
        "does not satisfy the contract's json_schema: at $: 'a' is a required property",
        "says what the schema misses",
    ),
    held_to(
        {"properties": {"a": {"items": {"maximum": 3}}}},
        {"a": [1, 5]},
        "does not satisfy the contract's json_schema: at $.a[1]: 5 is greater than the maximum of 3",
        "names the path of what does not satisfy the schema",
    ),
    held_to(
        {"items": [{"type": "string"}]}, [1], "cannot be checked: the contract's json_schema is …", "takes 2020-12"
    ),
    held_to(
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
        [1],
        "does not satisfy the contract's json_schema: at $[0]: 1 is not of type 'string'",
        "takes the draft that the schema names",
    ),
    Case(
        "takes a schema that is false",
        "a.json",
        b"1",
        "does not satisfy the contract's json_schema: at $: False schema does not allow 1",
        {"json_schema": False},
    ),
    held_to(
        {"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, None, None, "follows a reference within the schema"
    ),
    held_to(
        {
            "$id": "https://example.test/a",
            "$ref": "https://example.test/a#/$defs/n",
            "$defs": {"n": {"type": "null"}},
        },
        None,
        None,
        "follows a reference to the schema's own address",
    ),
    held_to(
        {"anyOf": [True, {"$ref": "http://127.0.0.1:9/s.json"}]},
        1,
        RAISES + "'http://127.0.0.1:9/s.json', and nothing is fetched",
        "refuses a remote reference, also one that no value would reach",
    ),
    held_to(
        {"$ref": "other.json"}, 1, RAISES + "'other.json', and nothing is fetched", "refuses a neighbouring file"
    ),
    held_to(
        {"type": "no such"},
        1,
        "cannot be checked: the contract's json_schema is not a valid schema: …",
        "refuses a schema that is none",
    ),
    held_to(
        {"$ref": "#"},
        1,
        "could not be opened as a JSON document: it is nested too deep",
        "answers for a schema that is its own",
    ),
]
HTML = [
    Case("reads a page", "a.html", PAGE % "<p>Grüße</p>".encode(), None, NOT_BLANK),
    Case("reads a fragment", "a.htm", b"<p>x", None, NOT_BLANK),
    *[
        Case(f"sees a {name}", "a.html", PAGE % tag, None, NOT_BLANK)
        for name, tag in {"picture": b"<img src=x>", "drawing": b"<svg></svg>", "canvas": b"<canvas>"}.items()
    ],
    Case(
        "sees a page that a script fills",
        "a.html",
        PAGE % b'<div id="p-1"></div><script>draw("p-1")</script>',
        None,
        NOT_BLANK,
    ),
    Case("sees that a page shows nothing", "a.html", PAGE % b"<div> </div><!-- x -->", BLANK_PAGE, NOT_BLANK),
    Case("sees that a script fills nothing", "a.html", PAGE % b"<script>let page</script>", BLANK_PAGE, NOT_BLANK),
    Case(
        "refuses text named .html",
        "a.html",
        b"1 < 2, and that is all",
        "is not an HTML page: there is no element in it (it starts with '1 < 2, and that is all')",
    ),
    Case(
        "refuses elements in comments only",
        "a.html",
        b"a <!-- <p> -->",
        "is not an HTML page: there is no element in it …",
    ),
    Case("refuses a PNG named .html", "a.html", image("PNG"), "is not an HTML page: it is a PNG image"),
    Case("refuses a NUL in a page", "a.html", b"<p>a\x00</p>", "is not text: it has a NUL byte at offset 4"),
    Case("reads the encoding that a page declares", "a.html", b"<meta charset=latin-1><p>\xe9", None, NOT_BLANK),
    Case(
        "refuses a page in no encoding that it declares",
        "a.html",
        b"<p>\xe9",
        "is not UTF-8: the byte at offset 3 does not belong there",
    ),
    Case(
        "reads a page with a script of 20 MB",
        "a.html",
        PAGE % (b"<p>x<script>" + b"x" * 20_000_000 + b"</script>"),
        None,
        NOT_BLANK,
    ),
    Case("answers for a page that is 100,000 deep", "a.html", b"<div>" * 100_000 + b"x"),
]
MIME = [
    Case(f"takes {mime} for .{name.split('.')[-1]}", name, content, None, {"mime": mime})
    for name, content, mime in [
        ("a.xml", b"<a/>", "text/xml"),
        ("a.js", b"x", "application/javascript; charset=utf-8"),
        ("a.html", b"<p>", "Text/HTML;charset=UTF-8"),
        ("a.yaml", b"a: 1", "text/yaml"),
        ("a.jpg", image("JPEG"), "image/jpg"),
    ]
]
CONTRACT = [
    Case(
        "refuses another media type",
        "a.md",
        b"x",
        "is text/markdown, the contract asks for 'text/html'",
        {"mime": "text/html"},
    ),
    *[
        Case(
            f"refuses {check} on a .{extension}",
            f"a.{extension}",
            content,
            f"{check} cannot be checked on a .{extension} file",
            {check: value},
        )
        for check, value, extension, content in [
            ("min_pages", 1, "png", image("PNG")),
            ("max_pages", 1, "txt", b"x"),
            ("min_rows", 1, "html", b"<p>"),
            ("columns", ["a"], "json", b"{}"),
            ("json_schema", {}, "csv", b"a\n"),
            ("min_width", 1, "md", b"x"),
            ("min_height", 1, "weird", b"x"),
        ]
    ],
    Case(
        "refuses a check on a file without extension",
        "README",
        b"x",
        "min_rows cannot be checked on a file without extension",
        {"min_rows": 1},
    ),
    Case(
        "refuses a check that is none",
        "a.txt",
        b"x",
        "'min_words' is not a check that a file can be held to",
        {"min_words": 1},
    ),
    Case(
        "refuses a check of the wrong type",
        "a.csv",
        b"a\n",
        "min_rows cannot be checked: its value must be a whole number",
        {"min_rows": "1"},
    ),
    Case(
        "leaves to others what needs no look inside, and what is null",
        "a.txt",
        b"x",
        None,
        {"min_bytes": 9, "max_bytes": 0, "glob": "*", "min_count": 9, "max_count": 0, "min_pages": None},
    ),
]
CASES = [*TEXT, *JSON, *SCHEMA, *HTML, *MIME, *CONTRACT]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_text(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected
