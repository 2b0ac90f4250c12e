"""Sources and settings: Python, notebooks, YAML, TOML, JSON with comments, calendars, cards and mails."""

import json

import pytest
from inspector_run import Case, compared, verdicts_of
from inspector_samples import image

NOT_BLANK = {"not_blank": True}
WHITE = "is blank: it holds nothing but white space"

PYTHON = [
    Case("reads Python", "a.py", "# Größe\nx: int = 1\nprint(f'{x!r}')\n".encode(), None, NOT_BLANK),
    Case("reads a stub", "a.pyi", b"def f(x: int) -> str: ...\n"),
    Case("reads Python in the encoding that it declares", "a.py", "# coding: cp1251\nx = 'да'\n".encode("cp1251")),
    Case("reads Python behind a byte order mark", "a.py", b"\xef\xbb\xbfx = 1\n"),
    Case("names the line that is not Python", "a.py", b"x = 1\nif x\n", "is not Python: expected ':' at line 2"),
    Case(
        "refuses what only the compiler sees",
        "a.py",
        b"return 1\n",
        "is not Python: 'return' outside function at …",
    ),
    Case("refuses prose named .py", "a.py", b"Here is the program:\n", "is not Python: invalid syntax at line 1"),
    Case("refuses bytes of no declared encoding", "a.py", b"x = '\xe9'\n", "is not Python: …"),
    Case("refuses a NUL in Python", "a.py", b"x = 1\x00", "is not text: it has a NUL byte at offset 5"),
    Case("sees that a source is blank", "a.py", b" \n", WHITE, NOT_BLANK),
    Case("lets a source that is a comment pass", "a.py", b"# todo\n", None, NOT_BLANK),
    *[
        Case(f"answers for Python that is deep: {name}", "a.py", code, "…")
        for name, code in {
            "parentheses": b"(" * 100_000,
            "whole parentheses": b"(" * 5_000 + b")" * 5_000,
            "unary": b"-" * 200_000 + b"1",
            "attributes": b"a" + b".a" * 500_000,
        }.items()
    ],
    Case("does not run what it compiles", "a.py", b"raise SystemExit(3)\n"),
    Case("does not fold what would fill its memory", "a.py", b"x = 'a' * 10**11\ny = 2 ** 10**10\n"),
]


def notebook(**changes):
    cell = {"cell_type": "code", "source": ["1 + 1"], "metadata": {}, "outputs": [], "execution_count": None}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]} | changes).encode()


NOTEBOOKS = [
    Case("reads a notebook", "a.ipynb", notebook(), None, NOT_BLANK, {"cells": 1}),
    Case("reads one of format 3", "a.ipynb", notebook(nbformat=3, worksheets=[{"cells": []}]), facts={"cells": 0}),
    Case("refuses JSON that is no notebook", "a.ipynb", b"{}", "is not a notebook: it has no nbformat"),
    Case("refuses a list named .ipynb", "a.ipynb", b"[]", "is not a notebook: it has no nbformat"),
    Case(
        "refuses a notebook without cells", "a.ipynb", notebook(cells={}), "is not a notebook: it has no list of …"
    ),
    Case(
        "names the cell that is none", "a.ipynb", notebook(cells=[1]), "is not a notebook: cell 1 has no cell_type"
    ),
    Case("refuses a notebook that is no JSON", "a.ipynb", b"x = 1", "is not JSON: …"),
    Case("sees a blank notebook", "a.ipynb", notebook(cells=[]), "is blank: no cell has a source", NOT_BLANK),
    Case(
        "holds a notebook to a schema",
        "a.ipynb",
        notebook(),
        "does not satisfy the contract's json_schema: …",
        {"json_schema": {"required": ["x"]}},
    ),
]
YAML = [
    Case("reads YAML", "a.yaml", b"a: [1, 2]\nb: &x {c: d}\ne: *x\n", None, NOT_BLANK),
    Case("reads several documents", "a.yml", b"a: 1\n---\nb: 2\n", None, NOT_BLANK),
    Case("lets any tag pass", "a.yaml", b"a: !Ref B\nc: !!python/object/apply:os.system [id]\n"),
    Case("names the place that is not YAML", "a.yaml", b"a: 1\n b: 2\n", "is not YAML: mapping values are not …"),
    Case("refuses a tab that indents", "a.yaml", b"a:\n\tb: 1\n", "is not YAML: …"),
    Case("refuses an alias without an anchor", "a.yaml", b"a: *b\n", "is not YAML: the alias 'b' has no anchor …"),
    Case(
        "refuses an anchor of another document", "a.yaml", b"a: &b 1\n---\nc: *b\n", "is not YAML: the alias 'b' …"
    ),
    Case("refuses an image named .yaml", "a.yaml", image("PNG"), "is not text: it has a NUL byte at offset 8"),
    Case("lets a template of Helm pass", "a.yaml", b"{{- if .Values.on }}\na: {{ .Values.a }}\n{{- end }}\n"),
    Case("sees that YAML is blank", "a.yaml", b"# nothing\n", "is blank: it holds no value", NOT_BLANK),
    Case("answers for YAML that is deep", "a.yaml", b"[" * 100_000, "…"),
    Case(
        "answers for a list in a list in a list",
        "a.yaml",
        b"- " * 900 + b"a",
        "could not be opened as YAML: it is …",
    ),
    Case(
        "makes nothing out of a billion laughs",
        "a.yaml",
        b"a: &a [x,x]\n"
        + b"".join(
            b"k%d: &k%d [*%b,*%b]\n" % (n, n, p, p) for n, p in enumerate([b"a", *(b"k%d" % n for n in range(60))])
        ),
    ),
]
TOML = [
    Case("reads TOML", "a.toml", "[größe]\na = 1979-05-27\n".encode(), "…"),
    Case("reads quoted TOML", "a.toml", '["größe"]\na = 1979-05-27\n'.encode(), None, NOT_BLANK),
    Case(
        "names the place that is not TOML",
        "a.toml",
        b"a = 1\nb =\n",
        "is not TOML: Invalid value (at line 2, column 4)",
    ),
    Case("refuses a key twice", "a.toml", b"a = 1\na = 2\n", "is not TOML: Cannot overwrite a value …"),
    Case("sees that TOML is blank", "a.toml", b"# nothing\n", "is blank: it has no key", NOT_BLANK),
    Case(
        "answers for TOML that is deep",
        "a.toml",
        b"a = " + b"[" * 100_000,
        "could not be opened as a TOML text: it …",
    ),
]

TSC = (
    b'{ // tsc --init\n "compilerOptions": {"strict": true, /* \xe2\x80\xa6 */ "paths": {"a/*": ["//b", "/*c*/"]},'
    b"},\n}"
)
COMMENTED = [
    *[
        Case(f"lets {path} have comments and last commas", path, TSC, None, NOT_BLANK)
        for path in (
            "tsconfig.json",
            "app/tsconfig.app.json",
            "jsconfig.json",
            ".eslintrc.json",
            ".devcontainer/devcontainer.json",
            ".vscode/settings.json",
            ".vscode/launch.json",
            "a.jsonc",
            "x.code-workspace",
            "turbo.json",
        )
    ],
    *[
        Case(f"does not let {path} have them", path, TSC, "is not JSON: Expecting property name …")
        for path in ("package.json", "settings.json", "my_tsconfig.json", "tsconfig.geojson")
    ],
    Case(
        "holds settings to a schema",
        "tsconfig.json",
        b'{"a": 1, /* b */}',
        None,
        {"json_schema": {"required": ["a"]}},
    ),
    Case(
        "names the place of a mistake behind comments",
        "tsconfig.json",
        b'{\n/* a\n b */ "a": // c\n oops }',
        "is not JSON: Expecting value at line 4 column 2",
    ),
    *[
        Case(f"refuses {text!r} in settings", "a.jsonc", text, "is not JSON: …")
        for text in (b"{,}", b'{"a": 1,,}', b"[,]", b'{"a" /* : 1}', b'{"a": "b}', b"// nothing", b'{"a": 1} /')
    ],
    Case("answers for quotes that are never closed", "a.jsonc", b'"' + b'\\"' * 500_000, "is not JSON: …"),
    Case("answers for slashes without end", "a.jsonc", b"/* " * 300_000, "is not JSON: …"),
    Case("answers for commas without end", "a.jsonc", b"[1" + b", " * 300_000, "is not JSON: …"),
]

CALENDAR = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nSUMMARY:Tea\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
CARD = b"BEGIN:VCARD\nVERSION:4.0\nFN:Ann\nEND:VCARD\nBEGIN:VCARD\nFN:Bob\nEND:VCARD\n"
MAIL = b"From: a@example.test\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\nText\n"
OTHERS = [
    Case("reads a calendar", "a.ics", CALENDAR, None, NOT_BLANK),
    Case("refuses prose named .ics", "a.ics", b"Tea at five", "is not a calendar: it starts with 'Tea at five'"),
    Case("sees a calendar that is cut off", "a.ics", CALENDAR[:-33], "is cut off: 'END:VEVENT' is missing"),
    Case(
        "sees what ends and has not begun",
        "a.ics",
        CALENDAR + b"END:VEVENT\n",
        "is damaged: 'END:VEVENT' ends what …",
    ),
    Case(
        "sees a calendar without an entry",
        "a.ics",
        b"BEGIN:VCALENDAR\nEND:VCALENDAR\n",
        "is blank: nothing is entered in it",
        NOT_BLANK,
    ),
    Case("reads two address cards", "a.vcf", CARD, None, NOT_BLANK),
    Case(
        "tells a card from a calendar",
        "a.vcf",
        CALENDAR,
        "is not an address card: it starts with 'BEGIN:VCALENDAR…",
    ),
    Case("reads a mail", "a.eml", MAIL, None, NOT_BLANK),
    Case(
        "refuses prose named .eml", "a.eml", b"Dear Ann,\n\nhello\n", "is not an e-mail message: it starts with …"
    ),
    Case("refuses an image named .eml", "a.eml", image("PNG"), "is not an e-mail message: it is a PNG image"),
    Case(
        "sees a mail of nothing but a header", "a.eml", MAIL[:-6], "is blank: nothing follows its header", NOT_BLANK
    ),
]
CASES = [*PYTHON, *NOTEBOOKS, *YAML, *TOML, *COMMENTED, *OTHERS]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_source(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected
