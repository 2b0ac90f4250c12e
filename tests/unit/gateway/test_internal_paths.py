"""Which names of files a space sees in the report of a tool of this service: those of external files alone."""

from types import SimpleNamespace

import pytest

from proofbox.service.gateway.posting import own_tool_output

HIDDEN = "(file not shown)"


def artifact(name, visibility):
    return SimpleNamespace(
        logical_path=f"fi:turn_1.files/{name}", physical_path=f"turn_1/files/{name}", visibility=visibility,
        mime="text/csv", size_bytes=1, sha256="0", verdict="pass",
    )  # fmt: skip


ARTIFACTS = [
    artifact("out.csv", "external"),
    artifact("my out.csv", "external"),
    artifact("secret.csv", "internal"),
    artifact("plan of ann.csv", "internal"),
    artifact("notes", "internal"),
]


def reported(text, artifacts=ARTIFACTS):
    response = SimpleNamespace(artifacts=artifacts, ok=True, error=None, report=text)
    return own_tool_output(response)["report"]


@pytest.mark.parametrize(
    "text",
    [
        "wrote `files/out.csv`",
        "see files/out.csv.",
        "(files/out.csv)",
        "wrote /workspace/files/out.csv",
        "./files/out.csv ok",
        "turn_1/files/out.csv and fi:turn_1.files/out.csv",
        "files/my out.csv, then",
        "'files/my out.csv'",
        "fetched https://x.org/files/a.csv and http://h/secret.csv",
        "profiles/x.csv",
        "notes: all is well\n- a/b, c.",
        "marks \0000\000 and \0007\000",
    ],
)
def test_external_files_and_other_text_stay(text):
    assert reported(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see /workspace/files/secret.csv", f"see {HIDDEN}"),
        ("see ./files/secret.csv.", f"see {HIDDEN}."),
        ("/tmp/turn_0/files/old.csv", HIDDEN),
        ("turn_0/files/out.csv", HIDDEN),
        ("fi:turn_0.files/out.csv", HIDDEN),
        ("`files/x.csv`", f"`{HIDDEN}`"),
        ("path=files/zz.csv", f"path={HIDDEN}"),
        ("files/out.csvx", HIDDEN),
        ("files/out.csv.gz", HIDDEN),
        ("files\\secret.csv", HIDDEN),
        ("FILES/secret.csv", HIDDEN),
        ("Path: a/secret.csv", f"Path: {HIDDEN}"),
        ("read secret.csv, notes", f"read {HIDDEN}, notes"),
        ("read plan of ann.csv now", f"read {HIDDEN} now"),
        ("files/plan of ann.csv", HIDDEN),
        ("turn_1/files/plan of ann.csv", HIDDEN),
        ("No such file: '/workspace/files/plan of ben.csv'", f"No such file: '{HIDDEN}'"),
        ("\0000\000 files/secret.csv", f"\0000\000 {HIDDEN}"),
        ("file:///workspace/files/secret.csv", f"file:{HIDDEN}"),
    ],
)
def test_other_files_are_not_shown(text, shown):
    assert reported(text) == shown


@pytest.mark.parametrize("text", ["aa " * 40_000, "a" * 120_000, "/" * 120_000, "a/" * 2_000, "'a/" * 40_000])
def test_a_long_report_of_many_files_is_read_in_one_pass(text):
    many = [artifact(f"aa{number}_x.csv", "internal") for number in range(2_000)]
    assert reported(text, many) == text
