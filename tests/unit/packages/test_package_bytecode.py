"""Modules of packages are compiled without being imported, and only bytecode of modules that exist is placed."""

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from proofbox.service.packages.bytecode_files import place_bytecode
from proofbox.service.packages.programs import compile_modules
from proofbox.service.packages.programs.compile_modules import ENTRY

PYTHON = "3.13.5"
SUFFIX = ".cpython-313.pyc"
MIB = 1024 * 1024


def written(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__of__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def compiled(folder, target, time_s=60.0, bytes_max=8 * MIB):
    """The entries of the program, run as in a sandbox: whole by itself, elsewhere."""
    request = {"folder": str(folder), "target": str(target), "time_s": time_s, "bytes_max": bytes_max}
    subprocess.run(
        [sys.executable, "-I", compile_modules.__file__],
        input=json.dumps(request).encode(),
        check=True,
        capture_output=True,
        cwd=target.parent,
    )
    return target.read_bytes()


def entry(name, content):
    return ENTRY.pack(len(name), len(content)) + name + content


def place(folder, *entries, bytes_max=MIB):
    return place_bytecode(io.BytesIO(b"".join(entries)), folder, PYTHON, bytes_max)


def placed(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.pyc"))


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "packages"
    made.mkdir()
    return made


def test_bytecode_is_used_whatever_time_and_text_the_module_has_and_nothing_is_imported(folder, tmp_path):
    written(
        folder, pkg__of____init__="", pkg__of__a="VALUE = 1", pkg__of__boom=f"open({str(tmp_path / 'ran')!r}, 'w')"
    )
    entries = compiled(folder, tmp_path / "bytecode")
    assert not (tmp_path / "ran").exists()
    assert place_bytecode(io.BytesIO(entries), folder, ".".join(map(str, sys.version_info[:3])), MIB) == 3
    (folder / "pkg" / "a.py").write_text("VALUE = 'compiled again'")
    os.utime(folder / "pkg" / "a.py", (1, 1))
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import pkg.a; print(pkg.a.VALUE)"
    shown = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "1\n"


def test_modules_that_do_not_compile_and_those_of_tests_are_left_out(folder, tmp_path):
    written(
        folder, pkg__of__ok="1", pkg__of__bad="def", pkg__of__nul="\0", pkg__of__tests__of__test_a="1", test="1"
    )
    written(folder, pkg__of__deep="(" * 100_000, pkg__of__huge="#" * 3 * MIB, pkg__of__odd="'\\d'")
    place_bytecode(io.BytesIO(compiled(folder, tmp_path / "bytecode")), folder, PYTHON, MIB)
    assert placed(folder) == [
        f"__pycache__/test{SUFFIX}",
        f"pkg/__pycache__/odd{SUFFIX}",
        f"pkg/__pycache__/ok{SUFFIX}",
    ]


def test_the_modules_near_the_top_come_first_where_bytes_or_time_do_not_suffice(folder, tmp_path):
    written(folder, b__of__c__of__deep="1", b__of__a="1", z="1")
    names = compile_modules.find_modules(os.fsencode(folder))
    assert names == [b"z.py", b"b/a.py", b"b/c/deep.py"]
    whole = compiled(folder, tmp_path / "bytecode")
    assert place(folder, compiled(folder, tmp_path / "bytecode", bytes_max=len(whole) - 1)) == 2
    assert compiled(folder, tmp_path / "bytecode", time_s=-1.0) == b""


@pytest.mark.parametrize(
    "name",
    [b"../out.py", b"/etc/out.py", b"pkg/../pkg/a.py", b"pkg/b.py", b"pkg/data.txt", b"link.py", b"pkg", b""],
)
def test_names_that_are_no_module_of_the_packages_place_nothing(folder, tmp_path, name):
    written(folder, pkg__of__a="1")
    (folder / "pkg" / "data.txt").write_text("")
    (tmp_path / "out.py").write_text("")
    (folder / "link.py").symlink_to(tmp_path / "out.py")
    assert place(folder, entry(name, b"x"), entry(b"pkg/a.py", b"y")) == 1
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.pyc")] == [
        f"packages/pkg/__pycache__/a{SUFFIX}"
    ]


def test_an_entry_that_is_cut_short_or_too_large_ends_it_and_leaves_no_part(folder):
    written(folder, a="1", b="1", c="1")
    assert place(folder, entry(b"a.py", b"x"), entry(b"b.py", b"yy")[:-1]) == 1
    assert place(folder, entry(b"b.py", bytes(100)), entry(b"c.py", b"z"), bytes_max=99) == 0
    assert place(folder, b"\xff" * 5, entry(b"c.py", b"z")) == 0
    assert place(folder, ENTRY.pack(4, 2**32 - 1) + b"c.py") == 0
    assert placed(folder) == [f"__pycache__/a{SUFFIX}"]


def test_a_module_gets_the_bytecode_of_its_first_entry_in_place_of_what_the_package_brought(folder):
    written(folder, a="1")
    brought = folder / "__pycache__" / f"a{SUFFIX}"
    brought.parent.mkdir()
    brought.write_bytes(b"brought")
    old = os.umask(0o077)
    try:
        assert place(folder, entry(b"a.py", b"first"), entry(b"a.py", b"second")) == 1
    finally:
        os.umask(old)
    assert brought.read_bytes() == b"first"
    assert stat.S_IMODE(brought.stat().st_mode) == 0o644


def test_modules_whose_bytecode_has_no_place_have_none(folder):
    longest = "n" * 252
    written(folder, **{"file__of__a": "1", "folder__of__a": "1", longest: "1", "z": "1"})
    (folder / "file" / "__pycache__").write_text("")
    Path(folder, "folder", "__pycache__", f"a{SUFFIX}").mkdir(parents=True)
    names = (b"file/a.py", b"folder/a.py", f"{longest}.py".encode(), b"z.py")
    assert place(folder, *(entry(name, b"x") for name in names)) == 1
    assert [path for path in placed(folder) if (folder / path).is_file()] == [f"__pycache__/z{SUFFIX}"]
