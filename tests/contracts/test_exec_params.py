"""What a program may be given when it starts: kinds, bounds and names that the sandbox keeps for itself."""

import pytest
from pydantic import ValidationError

from proofbox.contracts.exec_params import (
    ARGS_MAX,
    ENV_MAX,
    STDIN_BYTES_MAX,
    VALUES_BYTES_MAX,
    ExecParams,
    working_folder,
)
from proofbox.contracts.paths import UnsafePathError


@pytest.mark.parametrize(
    "given",
    [
        {"stdin": "x" * STDIN_BYTES_MAX},
        {"stdin": ""},
        {"args": [""] * ARGS_MAX},
        {"args": ["x" * VALUES_BYTES_MAX]},
        {"env": {f"NAME_{n}": "" for n in range(ENV_MAX)}},
        {"env": {"A": "ä" * (VALUES_BYTES_MAX // 2 - 1)}},
        {"env": {"_x9": "1", "API_URL": "a=b\nc"}},
        {"cwd": "work"},
        {"workspace": "full"},
        {"workspace": "read"},
        {"cwd": "files/work"},
        {"explore": True},
        {"explore": True, "contract": []},
        {"explore": False, "contract": [{"filename": "a", "description": "b"}]},
    ],
)
def test_what_is_within_the_bounds_is_taken(given):
    ExecParams.model_validate(given)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"stdin": "x" * (STDIN_BYTES_MAX + 1)}, "stdin"),
        ({"stdin": "ä" * (STDIN_BYTES_MAX // 2 + 1)}, "stdin"),
        ({"stdin": 5}, "stdin"),
        ({"args": [""] * (ARGS_MAX + 1)}, "args"),
        ({"args": ["x" * VALUES_BYTES_MAX, "y"]}, "args"),
        ({"args": ["a\0b"]}, "args"),
        ({"args": ["\ud800"]}, "args"),
        ({"args": "-v"}, "args"),
        ({"env": {f"NAME_{n}": "" for n in range(ENV_MAX + 1)}}, "env"),
        ({"env": {"A": "x" * VALUES_BYTES_MAX}}, "env"),
        ({"env": {"A": "\0"}}, "env"),
        ({"env": {"A": 1}}, "env"),
        *(
            ({"env": {name: "x"}}, "env")
            for name in (
                "", "9A", "A-B", "A B", "A=B", "A\n", "Ä", "a" * 129,
                "PATH", "HOME", "OUT_DIR", "TURN_ID", "TMPDIR", "PWD", "IFS",
                "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINTMAXSTRDIGITS",
                "BASH_ENV", "ENV", "BASH_FUNC_x%%", "NODE_OPTIONS", "GLIBC_TUNABLES",
            )
        ),
        ({"cwd": "../x"}, "cwd"),
        ({"workspace": "half"}, "workspace"),
        ({"cwd": "/etc"}, "cwd"),
        ({"cwd": "a/../../b"}, "cwd"),
        ({"cwd": "a\0b"}, "cwd"),
        ({"cwd": "x" * 1_025}, "cwd"),
        ({"explore": True, "contract": [{"filename": "a", "description": "b"}]}, ""),
        ({"explore": True, "contract": "[]"}, ""),
    ],
)  # fmt: skip
def test_what_is_beyond_them_is_refused_and_the_field_is_named(given, field):
    with pytest.raises(ValidationError) as caught:
        ExecParams.model_validate(given)
    assert {str(error["loc"][0]) if error["loc"] else "" for error in caught.value.errors()} == {field}


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        (".", ""),
        ("./", ""),
        ("work", "turn_2/files/work"),
        ("./work/", "turn_2/files/work"),
        ("files/work", "turn_2/files/work"),
        ("files", "turn_2/files"),
        ("turn_2/files/work", "turn_2/files/work"),
        ("turn_1/files", "turn_1/files"),
        ("/out", ""),
        ("/out/", ""),
        ("/out/.", ""),
        ("OUT_DIR", ""),
        ("$OUT_DIR", ""),
        ("${OUT_DIR}/", ""),
        ("/out/files/work", "turn_2/files/work"),
        ("$OUT_DIR/files", "turn_2/files"),
        ("/out/turn_1/files", "turn_1/files"),
        ("/mnt/data", "turn_2/files"),
        ("sandbox:/mnt/data/", "turn_2/files"),
        ("/mnt/user-data/outputs", "turn_2/files"),
        ("/mnt/data/work/", "turn_2/files/work"),
        ("/mnt/data/turn_1/files", "turn_1/files"),
        ("`work`", "turn_2/files/work"),
        ("HOME", "turn_2/files/HOME"),
        ("~backup", "turn_2/files/~backup"),
    ],
)
def test_a_working_folder_lies_below_out_dir(cwd, folder):
    assert working_folder(cwd, "turn_2") == folder


@pytest.mark.parametrize("cwd", ["..", "/", "a/..", "a//b", "/out/..", "/mnt/data/../x", "/workspace"])
def test_a_working_folder_cannot_leave_out_dir(cwd):
    with pytest.raises(UnsafePathError):
        working_folder(cwd, "turn_2")


@pytest.mark.parametrize("cwd", ["/", "//", "~", "~/work", "/tmp", "/tmp/work", "$HOME", "${HOME}/a", "$TMPDIR"])
def test_a_working_folder_elsewhere_is_refused_by_its_name(cwd):
    with pytest.raises(
        UnsafePathError, match="lies outside of OUT_DIR; give a folder relative to files/"
    ) as refused:
        working_folder(cwd, "turn_2")
    assert f"the folder '{cwd}'" in str(refused.value)
