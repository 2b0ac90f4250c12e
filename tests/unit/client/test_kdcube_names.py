"""The ids and paths of KDCube's runtime in the service's form, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.adapters.kdcube import Names, _promised, _with_globals
from proofbox.contracts.paths import FilePath, is_turn_id

TURN = "telegram_turn_7"
IDS = st.one_of(
    st.text(st.characters(exclude_characters="/", exclude_categories=["C"]), min_size=1, max_size=30),
    st.from_regex(r"(turn_|turn_of-|telegram_turn_)[A-Za-z0-9_.-]{1,12}", fullmatch=True),
)
FOLDERS = st.sampled_from(["files", "outputs", "attachments", "files/_outputs", "files/_outputs=", "files/outputs"])


@given(turn=IDS)
def test_each_turn_id_is_one_of_the_service_and_comes_back(turn):
    here = Names.turn(turn)
    assert is_turn_id(here)
    assert Names.to_runtime(here) == turn


@given(turns=st.lists(IDS, min_size=2, max_size=2, unique=True))
def test_no_two_turns_become_the_same(turns):
    assert Names.turn(turns[0]) != Names.turn(turns[1])


@given(turn=IDS, folder=FOLDERS)
def test_each_path_is_one_of_the_service_and_comes_back(turn, folder):
    path = f"{turn}/{folder}/a b.csv"
    here = Names(turn).to_service(path)
    assert FilePath.from_physical(here).turn_id == Names.turn(turn)
    assert Names.to_runtime(here) == path


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("turn_1/files/a.csv", "turn_1/files/a.csv"),
        ("turn_2026-07-04-13/outputs/a.csv", "turn_2026-07-04-13/files/_outputs/a.csv"),
        ("open('telegram_turn_7/files/a')", "open('turn_of-telegram_turn_7/files/a')"),
        ('join(OUT, "telegram_turn_7", "files", "a")', 'join(OUT, "turn_of-telegram_turn_7", "files", "a")'),
        ("OUT / 'telegram_turn_7' / 'attachments'", "OUT / 'turn_of-telegram_turn_7' / 'attachments'"),
        ("![x](conv:fi:telegram_turn_7.outputs/a.png)", "![x](fi:turn_of-telegram_turn_7.files/_outputs/a.png)"),
        ("fi:turn_1.user.attachments/a.png", "fi:turn_1.user.attachments/a.png"),
        ("conv:so:sources_pool[1]", "so:sources_pool[1]"),
        ("print('telegram_turn_7', 'my_files/outputs/a')", "print('telegram_turn_7', 'my_files/outputs/a')"),
    ],
)
def test_paths_in_programs_and_documents_are_translated_and_nothing_else(theirs, ours):
    assert Names(TURN).to_service(theirs) == ours
    assert Names.to_runtime(ours) == theirs.replace("conv:", "")


def test_paths_in_parameters_are_translated_at_any_depth():
    params = {"contract": [{"filename": "telegram_turn_7/files/a.csv", "min_rows": 1}], "n": None}
    contract = [{"filename": "turn_of-telegram_turn_7/files/a.csv", "min_rows": 1}]
    assert Names(TURN).to_service(params) == {"contract": contract, "n": None}


def test_a_long_word_takes_no_long_time():
    word = "turn_" * 200_000
    assert Names(TURN).to_service(word) == word


@pytest.mark.parametrize(
    ("code", "lines_before"),
    [
        ("print(OUTPUT_DIR)", 0),
        ("# OUTPUT_DIR\nawait f()", 0),
        ('"""OUTPUT_DIR\n"""', 0),
        ("for a in OUTPUT_DIR:\n    print(a)", 1),
        ("print('turn_1/files/_outputs/a')", 0),
    ],
)
def test_the_global_of_programs_is_set_and_lines_keep_their_numbers(code, lines_before):
    given_code = _with_globals(code, "turn_1")
    assert given_code.startswith('OUTPUT_DIR = __import__("os").environ["OUTPUT_DIR"]')
    assert given_code.endswith(code)
    assert given_code.count("\n") - code.count("\n") == lines_before


@pytest.mark.parametrize("code", ["print(1)", "OUTPUT_DIR = = 1", "from __future__ import annotations\nOUTPUT_DIR"])
def test_other_programs_stay_as_they_are(code):
    assert _with_globals(code, "turn_1") == code


def test_a_promised_file_is_saved_where_the_runtime_promised_it_and_in_its_turn():
    names = ["telegram_turn_7/outputs/a.csv", "telegram_turn_7/files/turn_of--2E-2E-2F-2E-2E-2Fb", "c", "files/d"]
    refused = ["../e", "telegram_turn_7/files/../../f", "/g/../h"]
    contract = [{"filename": name, "description": "d"} for name in names + refused]
    paths = [path for path, _ in _promised({"contract": contract}, Names(TURN), TURN).values()]
    assert paths == [*names[:2], "telegram_turn_7/files/c", "telegram_turn_7/files/d"]
    assert _promised({"contract": "not a list"}, Names(TURN), TURN) == {}
    assert list(_promised({"path": "a.pdf"}, Names(TURN), TURN)) == ["turn_of-telegram_turn_7/files/a.pdf"]
