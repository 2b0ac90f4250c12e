"""The checker of words finds them in names, comments, docstrings and documents, and its counts only fall."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "check_words.py"
WORDS = """
[words]
"door, doors" = "entrance"
box = "container"
[names]
kept = "stored"
[phrases]
'the kept' = "stored"
[terms]
allowed = ['bounding box', 'life[-_ ]cycle']
[folders]
"sandbox_images/render" = ["box"]
[baseline]
"""


def _loaded():
    spec = importlib.util.spec_from_file_location("check_words", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check_words = _loaded()


@pytest.fixture
def root(tmp_path):
    for folder in ("docs", "service/api", "sandbox_images/render"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/words.toml").write_text(WORDS)
    return tmp_path


def _found(root, capsys):
    status = check_words.main([], root)
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "source",
    [
        "door = 1",
        "class FrontDoor: pass",
        "IS_KEPT = True",
        "def f(open_doors): pass",
        "x = 1  # behind the door",
        '"""A door."""',
        'class A:\n    b: int\n    """A door."""',
        "x = 1  # the kept one",
    ],
)
def test_a_word_in_a_name_a_comment_or_a_docstring_is_found(root, capsys, source):
    (root / "service/api/a.py").write_text(source + "\n")
    status, lines = _found(root, capsys)
    assert (status, len(lines), lines[0].split(":")[0]) == (1, 1, "service/api")


@pytest.mark.parametrize(
    "source",
    [
        "indoor = 1",
        "Proofbox = 1",
        'x = "a door"',
        "x = 1  # it is kept",
        "x = 1  # a bounding box",
        "life_cycle = 1",
    ],
)
def test_other_words_texts_of_messages_and_proper_terms_are_not(root, capsys, source):
    (root / "service/api/a.py").write_text(source + "\n")
    assert _found(root, capsys) == (0, [])


def test_a_proper_term_of_a_folder_is_one_there_only(root, capsys):
    for folder in ("service/api", "sandbox_images/render"):
        (root / folder / "a.py").write_text("box = 1\n")
    status, lines = _found(root, capsys)
    assert (status, [line.split(":")[0] for line in lines]) == (1, ["service/api"])


def test_documents_have_no_such_word_and_no_baseline(root, capsys):
    (root / "README.md").write_text("fine\na door\n")
    assert _found(root, capsys) == (1, ["README.md:2: 'door'; write entrance"])


def test_of_the_changelog_only_the_newest_section_counts(root, capsys):
    (root / "CHANGELOG.md").write_text("# Changes\n\n## [2]\n\n- fine\n\n## [1]\n\n- a door\n")
    assert _found(root, capsys) == (0, [])


def test_a_count_may_fall_and_not_rise(root, capsys):
    module = root / "service/api/a.py"
    module.write_text("door = 1\ndoors = 2\n")
    check_words.main(["--lower"], root)
    assert _baseline(root) == {"service/api": 2}
    assert _found(root, capsys) == (0, [])

    module.write_text("door = 1\n")
    assert _found(root, capsys) == (0, [])
    check_words.main(["--lower"], root)
    assert _baseline(root) == {"service/api": 1}

    module.write_text("door = 1\ndoors = 2\n")
    assert _found(root, capsys)[0] == 1
    check_words.main(["--lower"], root)
    assert _baseline(root) == {"service/api": 1}


def _baseline(root):
    return tomllib.loads((root / "docs/words.toml").read_text())["baseline"]
