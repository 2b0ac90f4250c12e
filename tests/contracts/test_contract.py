"""The exec contract: what is read from it, and every refusal with its code and the entry it names."""

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.artifacts import (
    DEPTH_MAX,
    ENTRIES_MAX,
    GLOB_MATCHES_MAX,
    Checks,
    ContractError,
    parse_contract,
)
from proofbox.contracts.checks import ENCODINGS, EXTENSIONS_OF_CHECK
from proofbox.contracts.media_types import MIME_BY_EXTENSION
from proofbox.contracts.paths import FilePath, Namespace

TURN = "turn_7"
FILE = {"filename": "a.csv", "description": "a table"}


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("raw", "code", "message"),
    [
        # none
        (None, "missing_artifacts", "params.contract is missing"),
        ("", "missing_artifacts", "params.contract is missing"),
        # no JSON
        ("{", "invalid_artifacts_json", "params.contract is a string but no JSON"),
        ("a.csv", "invalid_artifacts_json", "params.contract is a string but no JSON"),
        ("[" * 100_000, "invalid_artifacts_json", "params.contract is a string but no JSON"),
        ("[" + "1" * 5_000 + "]", "invalid_artifacts_json", "params.contract is a string but no JSON"),
        ('[{"filename": "a", "description": "\\ud800"}]', "invalid_artifacts_json", "cannot be sent on as JSON"),
        ('[{"filename": "a", "description": "b", "min_rows": NaN}]', "invalid_artifacts_json", "cannot be sent on"),
        (
            '[{"filename": "a", "description": "b", "min_rows": 1e999}]',
            "invalid_artifacts_json",
            "cannot be sent on",
        ),
        ("[" * 66 + "]" * 66, "invalid_artifacts_json", "it is nested deeper than 64 levels"),
        # no list of objects
        ([], "invalid_artifacts", "params.contract is not a non-empty list"),
        ({}, "invalid_artifacts", "params.contract is not a non-empty list"),
        (FILE, "invalid_artifacts", "params.contract is not a non-empty list"),
        (5, "invalid_artifacts", "params.contract is not a non-empty list"),
        ("null", "invalid_artifacts", "params.contract is not a non-empty list"),
        ("[]", "invalid_artifacts", "params.contract is not a non-empty list"),
        ([FILE, "b.csv"], "invalid_artifacts", "contract[1] is no object"),
        ([FILE, None], "invalid_artifacts", "contract[1] is no object"),
        ([FILE | {"description": "d" * 524_288}], "invalid_artifacts", "524288 are allowed; shorten its checks"),
        ([FILE] * 201, "invalid_artifacts", "params.contract has 201 entries, 200 are allowed"),
        # blank, unknown
        ([FILE, {"description": "d"}], "invalid_artifact_spec", "contract[1]: give either filename or glob"),
        ([{"filename": "", "description": "d"}], "invalid_artifact_spec", "contract[0].filename is blank"),
        ([{"filename": " ", "description": "d"}], "invalid_artifact_spec", "contract[0].filename is blank"),
        ([{"filepath": " ", "description": "d"}], "invalid_artifact_spec", "contract[0].filename is blank"),
        ([{"glob": "", "description": "d"}], "invalid_artifact_spec", "contract[0].glob is blank"),
        ([{"filename": None, "description": "d"}], "invalid_artifact_spec", "contract[0]: give either filename"),
        ([{"filename": "a"}], "invalid_artifact_spec", "contract[0].description: Field required"),
        ([FILE | {"description": ""}], "invalid_artifact_spec", "contract[0]: description is blank"),
        ([FILE | {"description": "\t"}], "invalid_artifact_spec", "contract[0]: description is blank"),
        ([FILE | {"description": 5}], "invalid_artifact_spec", "contract[0].description: Input should be a valid"),
        (
            [FILE | {"visibility": "public"}],
            "invalid_artifact_spec",
            "contract[0].visibility: Input should be 'ext",
        ),
        (
            [FILE | {"max_pixels": 1}],
            "invalid_artifact_spec",
            "contract[0].max_pixels: there is no such field; the fields are",
        ),
        ([FILE | {"min_bytes": -1}], "invalid_artifact_spec", "contract[0].min_bytes: Input should be greater"),
        (
            [FILE | {"min_bytes": "9"}],
            "invalid_artifact_spec",
            "contract[0].min_bytes: Input should be a valid int",
        ),
        ([FILE | {"min_rows": True}], "invalid_artifact_spec", "contract[0].min_rows: Input should be a valid int"),
        ([FILE | {"columns": []}], "invalid_artifact_spec", "contract[0].columns: List should have at least 1"),
        (
            [FILE | {"columns": ["a", 1]}],
            "invalid_artifact_spec",
            "contract[0].columns.1: Input should be a valid s",
        ),
        ([FILE | {"json_schema": []}], "invalid_artifact_spec", "contract[0].json_schema: Input should be a valid"),
        (
            [FILE | {"filepath": "b.csv"}],
            "invalid_artifact_spec",
            "contract[0] has a filename and another filepath",
        ),
        ([FILE | {"glob": "*.csv"}], "invalid_artifact_spec", "contract[0]: give either filename or glob"),
        ([FILE | {"min_count": 1}], "invalid_artifact_spec", "contract[0]: min_count and max_count go with glob"),
        (
            [{"glob": "a.csv", "description": "d"}],
            "invalid_artifact_spec",
            "contract[0]: glob 'a.csv' has no wildca",
        ),
        (
            [{"glob": "*", "description": "d", "max_count": 0}],
            "invalid_artifact_spec",
            "max_count 0 is below min_c",
        ),
        (
            [{"glob": "*", "description": "d", "max_count": 201}],
            "invalid_artifact_spec",
            "contract[0].max_count: In",
        ),
        (
            [{"glob": "*", "description": "d", "min_count": 201}],
            "invalid_artifact_spec",
            "contract[0].min_count: In",
        ),
        (
            [{"glob": "*", "description": "d", "min_count": 3, "max_count": 2}],
            "invalid_artifact_spec",
            "contract[0]: max_count 2 is below min_count 3",
        ),
        # unsafe, foreign
        (
            [FILE, {"filename": "../a", "description": "d"}],
            "invalid_filename",
            "contract[1]: the path '../a' has th",
        ),
        (
            [{"filename": "/etc/passwd", "description": "d"}],
            "invalid_filename",
            "contract[0]: the path '/etc/passw",
        ),
        ([{"filename": "a\0", "description": "d"}], "invalid_filename", "holds the control character U+0000"),
        ([{"filename": "a\\b", "description": "d"}], "invalid_filename", "holds a backslash"),
        ([{"filename": "n" * 256, "description": "d"}], "invalid_filename", "has a segment of 256 bytes"),
        ([{"filename": "n/" * 600 + "n", "description": "d"}], "invalid_filename", "1024 are allowed"),
        ([{"filename": "turn_8/files/a", "description": "d"}], "invalid_filename", "lies outside turn_7/files/"),
        ([{"filename": "fi:turn_8.files/a", "description": "d"}], "invalid_filename", "lies outside turn_7/files/"),
        (
            [{"filename": "turn_7/attachments/a", "description": "d"}],
            "invalid_filename",
            "lies outside turn_7/files",
        ),
        (
            [{"filename": "fi:nonsense", "description": "d"}],
            "invalid_filename",
            "contract[0]: 'fi:nonsense' is no",
        ),
        (
            [{"glob": "../*", "description": "d"}],
            "invalid_filename",
            "contract[0]: the path '../*' has the segment",
        ),
        ([{"glob": "turn_8/files/*", "description": "d"}], "invalid_filename", "lies outside turn_7/files/"),
        # twice
        ([FILE, FILE], "duplicate_artifact", "contract[1] and contract[0] are the same file, turn_7/files/a.csv"),
        (
            [FILE, FILE | {"filename": "files/a.csv"}],
            "duplicate_artifact",
            "contract[1] and contract[0] are the sam",
        ),
        ([FILE, FILE | {"filename": "fi:turn_7.files/a.csv"}], "duplicate_artifact", "contract[1] and contract[0]"),
        (
            [FILE | {"filename": "café"}, FILE, FILE | {"filename": "./cafe\u0301"}],
            "duplicate_artifact",
            "contract[2] and contract[0] are the same file, turn_7/files/café",
        ),
    ],
)
def test_a_contract_that_cannot_be_kept_is_refused_by_its_code_and_entry(raw, code, message):
    with pytest.raises(ContractError) as refused:
        parse_contract(raw, TURN)
    assert refused.value.code == code
    assert message in refused.value.message
    refused.value.message.encode()


@pytest.mark.parametrize("turn_id", [None, ""])
def test_a_call_without_a_turn_cannot_promise_files(turn_id):
    with pytest.raises(ContractError, match="the call has no turn_id") as refused:
        parse_contract([FILE], turn_id)
    assert refused.value.code == "missing_turn_id"


@pytest.mark.parametrize(
    ("filename", "rel", "is_rewritten"),
    [
        ("a.csv", "a.csv", False),
        ("files/a.csv", "a.csv", False),
        ("turn_7/files/a.csv", "a.csv", False),
        ("fi:turn_7.files/a.csv", "a.csv", False),
        ("./a.csv", "a.csv", True),
        (" a.csv ", "a.csv", True),
        ("./files/a.csv", "a.csv", True),
        ("cafe\u0301.csv", "café.csv", True),
        ("a*.csv", "a*.csv", False),
    ],
)
def test_a_filename_may_be_written_in_every_way(filename, rel, is_rewritten):
    contract = parse_contract([{"filename": filename, "description": "d"}], TURN)
    [promise] = contract.promises
    assert (promise.path, promise.is_glob) == (FilePath(TURN, Namespace.FILES, rel), False)
    assert contract.rewritten == (((filename, f"turn_7/files/{rel}"),) if is_rewritten else ())


def test_a_contract_is_read_from_its_json_text_as_from_the_list():
    raw = [FILE, {"glob": "charts/*.png", "description": "é", "min_width": 10}]
    assert parse_contract(json.dumps(raw), TURN) == parse_contract(raw, TURN)


@pytest.mark.parametrize(
    "entry",
    [
        {"filepath": "a.csv", "description": "a table"},
        {"filepath": "a.csv", "filename": "a.csv", "description": "a table"},
        {"filepath": "a.csv", "filename": None, "description": "a table"},
        {"filepath": None, "filename": "a.csv", "description": "a table"},
        {"filename": "a.csv", "description": "a table", "glob": None, "min_count": None, "mime": None},
    ],
)
def test_filepath_is_another_name_of_filename_and_null_is_not_given(entry):
    assert parse_contract([entry], TURN) == parse_contract([FILE], TURN)


def test_what_an_entry_does_not_say_has_its_default():
    [promise] = parse_contract([FILE], TURN).promises
    assert (promise.visibility, promise.min_count, promise.max_count) == ("external", 1, 1)
    assert promise.checks == Checks()
    assert promise.checks.inspected() == {}


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ({}, 1, GLOB_MATCHES_MAX),
        ({"min_count": 0}, 0, GLOB_MATCHES_MAX),
        ({"min_count": 200}, 200, GLOB_MATCHES_MAX),
        ({"max_count": 1}, 1, 1),
        ({"min_count": 0, "max_count": 0}, 0, 0),
    ],
)
def test_a_pattern_says_how_many_files_match(counts, low, high):
    [promise] = parse_contract([{"glob": "charts/*.png", "description": "d", **counts}], TURN).promises
    assert (promise.is_glob, promise.path.rel) == (True, "charts/*.png")
    assert (promise.min_count, promise.max_count) == (low, high)


def test_every_check_reaches_the_promise_and_all_but_the_sizes_the_inspector():
    checks = {
        "mime": "application/json",
        "min_bytes": 1,
        "max_bytes": 2,
        "min_pages": 3,
        "max_pages": 4,
        "min_rows": 5,
        "columns": ["a"],
        "json_schema": nested(DEPTH_MAX - 3),
        "min_width": 6,
        "min_height": 7,
        "not_blank": True,
        "encoding": "cp1251",
        "password": "a word",
    }
    assert set(checks) == set(Checks.model_fields)
    matches = {"glob": "*.*", "description": "whatever has an extension"}  # to which all may apply
    [promise] = parse_contract([matches | checks], TURN).promises
    assert promise.checks.model_dump() == checks
    assert promise.checks.inspected() == {k: v for k, v in checks.items() if k not in {"min_bytes", "max_bytes"}}


@pytest.mark.parametrize("check", EXTENSIONS_OF_CHECK)
@pytest.mark.parametrize("name", [*MIME_BY_EXTENSION, "weird", ""])
def test_a_check_that_cannot_apply_to_a_file_is_refused_by_its_name_and_by_a_pattern_of_its_extension(check, name):
    value = {"columns": ["a"], "json_schema": {}, "encoding": "cp1251", "password": "x"}.get(check, 1)
    applies = name in EXTENSIONS_OF_CHECK[check]
    named = {"filename": f"sub/a.{name}" if name else "README", "description": "d"}
    entries = [named, *([{"glob": f"sub/*.{name}", "description": "d"}] if name else [])]
    for entry in entries:
        if applies:
            assert parse_contract([entry | {check: value}], TURN).promises[0].checks != Checks()
            continue
        with pytest.raises(ContractError) as refused:
            parse_contract([FILE, entry | {check: value}], TURN)
        assert refused.value.code == "invalid_artifact_spec"
        kind = f".{name} files" if name else "files without an extension"
        listed = ", ".join(f".{extension}" for extension in EXTENSIONS_OF_CHECK[check])
        assert refused.value.message == (
            f"contract[1] '{entry.get('filename') or entry['glob']}': {check} does not apply to {kind}; "
            f"it applies to {listed}"
        )


@pytest.mark.parametrize("pattern", ["*", "**/*", "a.*", "data*", "*.[cx]sv", "*.t?t", "x.tar.*"])
def test_a_pattern_that_leaves_the_extension_open_may_have_any_check(pattern):
    entry = {"glob": pattern, "description": "d", "min_rows": 1, "min_pages": 1, "mime": "a/b"}
    [promise] = parse_contract([entry], TURN).promises
    assert promise.checks.min_rows == 1


@pytest.mark.parametrize(
    ("name", "mime", "holds"),
    [
        ("a.csv", "text/csv; charset=cp1251", True),
        ("a.csv", "application/csv", True),
        ("a.csv", "text/plain", False),
        ("a.jpg", "image/JPG", True),
        ("a.weird", "application/octet-stream", True),
        ("a.weird", "application/pdf", False),
        ("README", "text/plain", False),
    ],
)
def test_a_media_type_that_no_file_of_the_name_has_is_refused(name, mime, holds):
    entry = {"filename": name, "description": "d", "mime": mime}
    if holds:
        assert parse_contract([entry], TURN).promises[0].checks.mime == mime
    else:
        with pytest.raises(ContractError, match=f"^contract.0. '{name}': mime '{mime}' cannot hold: "):
            parse_contract([entry], TURN)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("cp1251", "cp1251"),
        ("windows-1251", "windows_1251"),
        (" Shift-JIS ", "shift_jis"),
        ("UTF-8", "utf_8"),
        ("utf-8-sig", "utf_8_sig"),
        ("utf-16", "utf_16"),
        ("ISO-8859-1", "iso_8859_1"),
        ("KOI8-U", "koi8_u"),
        *(
            (odd, None)
            for odd in ("hex", "rot13", "base64", "zlib", "mbcs", "undefined", "idna", "../os", "klingon")
        ),
    ],
)
def test_an_encoding_is_one_of_a_text_or_is_refused(given, name):
    entry = {"filename": "a.csv", "description": "d", "encoding": given}
    if name is not None:
        [promise] = parse_contract([entry], TURN).promises
        assert promise.checks.encoding == name
        assert codecs.lookup(name)
        return
    with pytest.raises(ContractError) as refused:
        parse_contract([entry], TURN)
    assert refused.value.code == "invalid_artifact_spec"
    assert "is no text encoding that is known" in refused.value.message


def test_every_encoding_of_a_text_is_one_that_python_decodes():
    assert [name for name in ENCODINGS if not isinstance(b"".decode(name), str)] == []


def test_promises_keep_their_order_up_to_the_most_entries():
    names = [f"{index}.csv" for index in reversed(range(ENTRIES_MAX))]
    contract = parse_contract([{"filename": name, "description": "d"} for name in names], TURN)
    assert [promise.path.rel for promise in contract.promises] == names


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"name": "a.csv", "description": "d"}, "contract[0].name: there is no such field; did you mean filename?"),
        ({"file_path": "a.csv", "description": "d"}, "did you mean filename?"),
        ({"filename": "a.csv", "desc": "d"}, "did you mean description?"),
        ({"filename": "a.csv", "description": "d", "min_row": 3}, "did you mean min_rows?"),
        (
            {"filename": "a.csv", "description": "d", "colour": "red"},
            "there is no such field; the fields are filename, ",
        ),
    ],
)
def test_a_field_that_there_is_not_is_told_with_the_one_that_was_meant(entry, told):
    with pytest.raises(ContractError) as refused:
        parse_contract([entry], TURN)
    assert refused.value.code == "invalid_artifact_spec"
    assert told in refused.value.message


def test_all_mistakes_of_a_contract_are_told_at_once():
    wrong = [{"filename": "/etc/x", "description": "d"}, {"filename": "a.csv", "desc": "d", "min_rows": -1}, FILE]
    with pytest.raises(ContractError) as refused:
        parse_contract([*wrong, FILE], TURN)
    assert refused.value.code == "invalid_filename"
    for place in (
        "contract[0]",
        "contract[1].description",
        "contract[1].min_rows",
        "contract[1].desc",
        "contract[3]",
    ):
        assert place in refused.value.message
    wrong = [{"filename": "a.csv", "min_rows": "x", "description": 3}, {"filename": "k.pdf", "min_width": 3}, 7]
    with pytest.raises(ContractError) as refused:
        parse_contract(wrong, TURN)
    assert [part.message for part in refused.value.parts] == [
        (
            "contract[0].min_rows: Input should be a valid integer; "
            "contract[0].description: Input should be a valid string"
        ),
        (
            "contract[1].description: Field required; contract[1] 'k.pdf': min_width does not apply to .pdf files; "
            "it applies to .png, .jpg, .jpeg, .gif, .webp, .bmp, .tif, .tiff, .svg"
        ),
        "contract[2] is no object; write {filename, description}",
    ]
    with pytest.raises(ContractError, match="; and 195 more mistakes"):
        parse_contract([{"filename": "a/"}] * 200, TURN)


@pytest.mark.parametrize(
    ("entry", "ignored"),
    [
        ({"name": "table", "filename": "a.csv", "description": "d"}, ("contract[0].name",)),
        ({"filename": "a.yaml", "description": "d", "mime": "application/octet-stream"}, ("contract[0].mime",)),
        ({"glob": "*.log", "description": "d", "mime": "application/octet-stream"}, ("contract[0].mime",)),
        ({"filepath": "a.csv.gz", "description": "d", "mime": "text/csv"}, ("contract[0].mime",)),
        ({"filename": "a.weird", "description": "d", "mime": "chemical/x-weird"}, ("contract[0].mime",)),
        ({"filename": "a.c", "description": "d", "mime": "text/x-csrc"}, ("contract[0].mime",)),
        ({"filename": "a.ts", "description": "d", "mime": "text/vnd.trolltech.linguist"}, ("contract[0].mime",)),
        ({"filename": "a.csv", "description": "d", "mime": "text/csv", "slot": "table"}, ("contract[0].slot",)),
        ({"filename": "a.csv", "description": "d", "sha256": None}, ("contract[0].sha256",)),
        ({"filename": "a.csv", "description": "d", "min_rows": None, "filepath": None}, ()),
        ({"filename": "a.csv", "description": "d"}, ()),
    ],
)
def test_what_promises_nothing_is_left_out(entry, ignored):
    assert parse_contract([entry], TURN).ignored == ignored


@pytest.mark.parametrize(
    ("filename", "rel"),
    [
        ("sandbox:/mnt/data/my%20table.csv", "my table.csv"),
        ("%E7%88%B1.pptx", "\N{CJK UNIFIED IDEOGRAPH-7231}.pptx"),
        ("100%.csv", "100%.csv"),
        ("a%ff.csv", "a%ff.csv"),
    ],
)
def test_a_percent_encoded_name_is_the_name_that_it_encodes(filename, rel):
    contract = parse_contract([{"filename": filename, "description": "d"}], TURN)
    assert contract.promises[0].path.rel == rel
    assert contract.rewritten == (() if filename == rel else ((filename, f"{TURN}/files/{rel}"),))


TEXT = st.text(st.one_of(st.sampled_from("./*?[]\\\0 \udc80é"), st.characters()), max_size=12)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)
JSON = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4))
)
FIELDS = [
    "filename",
    "filepath",
    "glob",
    "description",
    "visibility",
    "min_count",
    "max_count",
    *Checks.model_fields,
]
ENTRIES = st.one_of(
    JSON,
    st.dictionaries(st.one_of(st.sampled_from(FIELDS), TEXT), st.one_of(TEXT, JSON), max_size=6),
    st.fixed_dictionaries({"filename": TEXT, "description": st.just("d")}),
    st.fixed_dictionaries({"glob": TEXT, "description": st.just("d")}),
)


@given(st.one_of(JSON, st.lists(ENTRIES, max_size=4)), st.booleans())
def test_any_json_is_a_contract_or_a_contract_error(raw, as_text):
    try:
        contract = parse_contract(json.dumps(raw) if as_text else raw, TURN)
    except ContractError as exc:
        refusal = exc.message
    else:
        refusal = None
    if refusal is not None:
        assert refusal.encode()
        return
    assert contract.promises
    for promise in contract.promises:
        assert promise.path.physical.startswith("turn_7/files/")
        promise.description.encode()
    json.dumps([promise.checks.inspected() for promise in contract.promises], allow_nan=False).encode()
