"""Physical, logical and caller-written paths: what they mean, what is refused, that nothing escapes."""

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.paths import (
    PATH_BYTES_MAX,
    SEGMENT_BYTES_MAX,
    FilePath,
    Namespace,
    UnsafePathError,
    in_turn,
    is_call_id,
    is_turn_id,
    relative_path,
)

DOTTED = "turn_2026-07-04.13-18.files"
FILES, ATTACHMENTS = Namespace.FILES, Namespace.ATTACHMENTS

# Characters that path rules are about, far more often than chance would bring them.
TEXT = st.text(
    st.one_of(
        st.sampled_from(list("./\\:~ -_?*[]\0\n\t\x1b\x7f\x85\u202e\u0301é\udc80%")),
        st.characters(),
    ),
    max_size=60,
)
PIECES = st.lists(
    st.one_of(
        st.sampled_from(["..", ".", "/", "//", "./", "../", "files", "attachments", "turn_1", "turn_1/files/"]),
        st.sampled_from(["fi:turn_2", ".files/", "fi:", "turn_"]),
        st.sampled_from(["", ".user.attachments/", "a.csv", "\\", "~", "%2e%2e", "\u2024\u2024", "\uff0e\uff0e"]),
        TEXT,
    ),
    max_size=8,
)
HOSTILE = st.one_of(TEXT, PIECES.map("".join), PIECES.map("/".join))
TURNS = st.from_regex(r"turn_[A-Za-z0-9_.-]{1,40}", fullmatch=True)


@pytest.mark.parametrize(
    ("path", "physical", "logical"),
    [
        (FilePath("turn_1", FILES, "a.csv"), "turn_1/files/a.csv", "fi:turn_1.files/a.csv"),
        (FilePath("turn_1", FILES, "x/y z.csv"), "turn_1/files/x/y z.csv", "fi:turn_1.files/x/y z.csv"),
        (FilePath("turn_1", ATTACHMENTS, "a.csv"), "turn_1/attachments/a.csv", "fi:turn_1.user.attachments/a.csv"),
        (FilePath(DOTTED, FILES, "a"), f"{DOTTED}/files/a", f"fi:{DOTTED}.files/a"),
        (FilePath("turn_1", FILES, "b.files/c"), "turn_1/files/b.files/c", "fi:turn_1.files/b.files/c"),
        (
            FilePath("turn_1", ATTACHMENTS, "b.files/c"),
            "turn_1/attachments/b.files/c",
            "fi:turn_1.user.attachments/b.files/c",
        ),
        (
            FilePath("turn_1", FILES, "b.user.attachments/c"),
            "turn_1/files/b.user.attachments/c",
            "fi:turn_1.files/b.user.attachments/c",
        ),
        (
            FilePath("turn_1.user", ATTACHMENTS, "c"),
            "turn_1.user/attachments/c",
            "fi:turn_1.user.user.attachments/c",
        ),
    ],
)
def test_a_file_is_printed_and_read_in_both_forms(path, physical, logical):
    assert (path.physical, path.logical) == (physical, logical)
    assert FilePath.from_physical(physical) == path
    assert FilePath.from_logical(logical) == path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/etc/passwd", "is absolute"),
        ("//server/share", "is absolute"),
        ("..", "has the segment '..'"),
        ("a/../b", "has the segment '..'"),
        ("../b", "has the segment '..'"),
        ("a/./b", "has the segment '.'"),
        (".", "has the segment '.'"),
        ("", "has the segment ''"),
        ("./", "has the segment ''"),
        ("a//b", "has the segment ''"),
        ("a/", "has the segment ''"),
        (".//etc/passwd", "is absolute"),
        ("a\0b", "holds the control character U+0000"),
        ("a\nb", "holds the control character U+000A"),
        ("a\x1b[31m", "holds the control character U+001B"),
        ("a\x7f", "holds the control character U+007F"),
        ("a\x85", "holds the control character U+0085"),
        ("a\u2028b", "holds the control character U+2028"),
        ("a\u2029b", "holds the control character U+2029"),
        ("a\udc80", "holds the control character U+DC80"),
        ("a\\b", "holds a backslash"),
        ("..\\b", "holds a backslash"),
        ("C:\\b", "holds a backslash"),
        ("n" * 256, "has a segment of 256 bytes, 255 are allowed"),
        ("é" * 128, "has a segment of 256 bytes, 255 are allowed"),
        ("/".join(["n" * 204] * 5) + "x", "is 1025 bytes long, 1024 are allowed"),
    ],
)
def test_an_unusual_relative_path_is_refused_with_its_reason(text, why):
    with pytest.raises(UnsafePathError, match="the path") as refused:
        relative_path(text)
    shown = text[:80].encode("unicode_escape").decode()
    assert str(refused.value) == f"the path '{shown}' {why}; give a path relative to files/"
    assert refused.value.code == "unsafe_path"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", "a"),
        ("./a", "a"),
        ("././a/b", "a/b"),
        ("...", "..."),
        ("..a", "..a"),
        (".hidden", ".hidden"),
        ("a b", "a b"),
        (" a", " a"),
        ("cafe\u0301.csv", "café.csv"),
        ("n" * 255, "n" * 255),
        ("日本/語.csv", "日本/語.csv"),
        ("~/a", "~/a"),
        ("C:a", "C:a"),
    ],
)
def test_a_plain_relative_path_is_kept_in_nfc(text, path):
    assert relative_path(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "turn_1/files",
        "turn_1/files/",
        "turn_1/other/a",
        "turn_/files/a",
        "run_1/files/a",
        "turn_1",
        "files/a",
        "turn_1/files/../a",
        "turn_1/files//a",
        "/turn_1/files/a",
        "turn 1/files/a",
        "turn_é/files/a",
    ],
)
def test_no_other_form_is_a_physical_path(text):
    with pytest.raises(UnsafePathError):
        FilePath.from_physical(text)


@pytest.mark.parametrize(
    "text",
    [
        "turn_1.files/a",
        "fi:turn_1/files/a",
        "fi:turn_1.files/",
        "fi:turn_1.files/../a",
        "fi:turn_1.files//a",
        "fi:turn_.files/a",
        "fi:.files/a",
        "fi:other.files/a",
        "fi:turn_1/x.files/a",
        "fi:turn_1.attachments/a",
        "fi: turn_1.files/a",
        "FI:turn_1.files/a",
        "fi:turn_1.code.call_1",
    ],
)
def test_no_other_form_is_a_logical_file_path(text):
    with pytest.raises(UnsafePathError):
        FilePath.from_logical(text)


@pytest.mark.parametrize(
    ("text", "rel", "foreign"),
    [
        ("report.pdf", "report.pdf", False),
        ("./report.pdf", "report.pdf", False),
        ("charts/a.png", "charts/a.png", False),
        ("files/report.pdf", "report.pdf", False),
        ("./files/report.pdf", "report.pdf", False),
        ("files/files/report.pdf", "files/report.pdf", False),
        ("files", "files", False),
        ("turn_7/files/report.pdf", "report.pdf", False),
        ("fi:turn_7.files/report.pdf", "report.pdf", False),
        ("turn_8/files/report.pdf", "report.pdf", True),
        ("fi:turn_8.files/report.pdf", "report.pdf", True),
        ("turn_7/attachments/report.pdf", "report.pdf", True),
        ("fi:turn_7.user.attachments/report.pdf", "report.pdf", True),
        ("turn_8/report.pdf", "turn_8/report.pdf", False),
        ("turn_8", "turn_8", False),
        ("turn_8/files", "turn_8/files", False),
        ("attachments/report.pdf", "attachments/report.pdf", False),
    ],
)
def test_every_way_to_write_a_path_means_a_file_of_the_current_turn(text, rel, foreign):
    named = in_turn(text, "turn_7")
    assert named.file == FilePath("turn_7", FILES, rel)
    assert (named.original, named.foreign) == (text, foreign)
    assert (named.source == named.file) is not foreign


@pytest.mark.parametrize(
    "text",
    [
        *("sandbox:x.csv", "sandbox:/x.csv", "sandbox:files/x.csv", "sandbox:/files/x.csv", "sandbox:/out/x.csv"),
        *("sandbox:/mnt/data/x.csv", "sandbox:/turn_7/files/x.csv", "sandbox:/tmp/x.csv", "/mnt/data/x.csv"),
        *("$HOME/x.csv", "${HOME}/x.csv", "{HOME}/x.csv", "$TMPDIR/x.csv", "${TMPDIR}/x.csv", "{OUT_DIR}/x.csv"),
        *("$OUT_DIR/x.csv", "${OUTPUT_DIR}/files/x.csv", "~/x.csv", "OUT_DIR/x.csv", "{OUTPUT_DIR}/x.csv"),
        *(
            "`x.csv`",
            '"x.csv"',
            "'files/x.csv'",
            "`/mnt/data/x.csv`",
            "\u201cx.csv\u201d",
            "`fi:turn_7.files/x.csv`",
        ),
    ],
)
def test_the_place_of_a_sandbox_and_quotes_around_a_path_are_left_out(text):
    named = in_turn(text, "turn_7")
    assert (named.file.rel, named.original, named.foreign) == ("x.csv", text, False)


@pytest.mark.parametrize(
    "text",
    [
        *("sandbox:/home/user/x.csv", "sandbox:/workspace/x.csv", "sandbox://workspace/x.csv", "/home/user/x.csv"),
        *("sandbox:/etc/passwd", "`/etc/passwd`", "sandbox:", "sandbox:/", "$HOME/../x.csv", "sandbox:/mnt/x.csv"),
    ],
)
def test_an_unknown_place_of_a_sandbox_is_refused(text):
    with pytest.raises(UnsafePathError):
        in_turn(text, "turn_7")


@pytest.mark.parametrize(
    "text", ["$HOMER/x.csv", "'a' and 'b'", "`", "``", "it's", "'s", "x{OUT_DIR}/a", "{a}/x.csv"]
)
def test_other_marks_belong_to_the_name(text):
    assert in_turn(text, "turn_7").file.rel == text


@pytest.mark.parametrize("place", ["", "./", "/out/", "/mnt/data/", "sandbox:/mnt/data/", "$OUT_DIR/", "OUT_DIR/"])
@pytest.mark.parametrize("physical", ["turn_1/files/x/a.txt", "turn_1/attachments/a.txt"])
def test_the_file_of_another_turn_is_known_behind_any_output_place(place, physical):
    named = in_turn(place + physical, "turn_2")
    assert (named.source, named.foreign) == (FilePath.from_physical(physical), True)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("turn_1", True),
        ("turn_2026-07-04-13-18-11-048", True),
        ("turn_a.b_c-D", True),
        ("turn_..", True),
        ("turn_", False),
        ("turn", False),
        ("Turn_1", False),
        ("turn_1/", False),
        ("turn_1\n", False),
        ("turn_ü", False),
        ("turn_" + "1" * 250, True),
        ("turn_" + "1" * 251, False),
    ],
)
def test_turn_ids(text, is_one):
    assert is_turn_id(text) is is_one


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("call_1", True), ("toolu:A-1", True), ("", False), ("a.b", False), ("a/b", False), ("a" * 129, False)],
)
def test_call_ids(text, is_one):
    assert is_call_id(text) is is_one


def test_the_longest_file_can_be_read_in_each_of_its_spellings():
    rel = "/".join([*["d" * SEGMENT_BYTES_MAX] * 3, "f" * 243])
    path = FilePath("turn_1", FILES, rel)
    assert len(path.physical) == PATH_BYTES_MAX
    for text in (rel, f"files/{rel}", path.physical, path.logical):
        assert in_turn(text, "turn_1").file == path
    for text in (f"{rel}f", f"files/{rel}f", f"{path.physical}f", f"{path.logical}f"):
        with pytest.raises(UnsafePathError):
            in_turn(text, "turn_1")


def stays_below(root, folder, physical):
    return os.path.normpath(f"{root}/{physical}").startswith(f"{root}/{folder}/")


@given(HOSTILE)
def test_no_text_makes_a_relative_path_that_leaves_its_folder(text):
    try:
        path = relative_path(text)
    except UnsafePathError:
        return
    assert stays_below("/out/t", "files", f"files/{path}")
    assert path == unicodedata.normalize("NFC", path)
    assert relative_path(path) == path
    assert len(path.encode()) <= PATH_BYTES_MAX


@given(HOSTILE, TURNS)
def test_no_text_is_read_as_a_file_outside_of_the_current_turn(text, turn_id):
    try:
        file = in_turn(text, turn_id).file
    except UnsafePathError:
        return
    assert (file.turn_id, file.namespace) == (turn_id, FILES)
    assert stays_below("/out", f"{turn_id}/files", file.physical)


@given(st.one_of(HOSTILE, HOSTILE.map("turn_1/files/{}".format), HOSTILE.map("fi:turn_1.files/{}".format)))
def test_no_text_parses_to_a_file_outside_of_its_turn(text):
    for parse in (FilePath.from_physical, FilePath.from_logical):
        try:
            file = parse(text)
        except UnsafePathError:
            continue
        assert is_turn_id(file.turn_id)
        assert stays_below("/out", f"{file.turn_id}/{file.namespace}", file.physical)


@given(TURNS, st.sampled_from(Namespace), HOSTILE)
def test_what_can_be_made_is_read_back_from_both_forms_as_the_same_file(turn_id, namespace, rel):
    try:
        path = FilePath(turn_id, namespace, rel)
    except UnsafePathError:
        return
    assert FilePath.from_physical(path.physical) == path
    assert FilePath.from_logical(path.logical) == path
    if namespace is FILES:
        assert in_turn(path.physical, turn_id).file == path
        assert in_turn(path.logical, turn_id).file == path


@given(HOSTILE)
def test_a_refusal_shows_the_path_without_its_control_characters(text):
    for parse in (relative_path, FilePath.from_physical, FilePath.from_logical):
        try:
            parse(text)
        except UnsafePathError as refused:
            shown = str(refused)
            assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in shown)
            assert len(shown) < 1_500
