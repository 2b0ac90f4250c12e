"""What the runner says of a real folder: states, escapes, what did not change, what was written bare, bounds.

Whole patterns, with ``**`` and with sets of letters, are tested with the real image.
"""

import importlib.util
import os
import socket
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples

OUT_DIR_FILE = Path(__file__).parents[3] / "sandbox_images" / "runner" / "out_dir.py"


def _runner_outdir():
    spec = importlib.util.spec_from_file_location("outdir_of_the_runner", OUT_DIR_FILE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(OUT_DIR_FILE.parent))
        spec.loader.exec_module(module)
    return module


outdir = _runner_outdir()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path.resolve() / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def out(root):
    made = outdir.OutDir(str(root))
    made.begin_turn("turn_1")
    return made


def put(out, path, content=b"old", *, writable=True):
    fd = out.create(path)
    os.write(fd, content)
    os.close(fd)
    out.seal(path, writable=writable)


def write(root, path, content=b"new"):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def walked(out, files_max=100, depth_max=10):
    walk = out.walk(files_max, depth_max)
    return dict(walk.files()), walk.files_exceeded, walk.depth_exceeded


def test_a_turn_begins_with_its_folder(out, root):
    out.begin_turn("turn_1")
    assert [path.relative_to(root).as_posix() for path in root.rglob("*")] == ["turn_1", "turn_1/files"]


def test_a_file_is_put_in_once_old_and_read_only_where_it_is_not_the_turns(out, root):
    put(out, "turn_0/files/x/a", writable=False)
    put(out, "turn_1/files/b", writable=True)
    assert (root / "turn_0/files/x/a").stat().st_mode & 0o777 == 0o444
    assert (root / "turn_1/files/b").stat().st_mode & 0o777 == 0o644
    assert (root / "turn_1/files/b").stat().st_mtime == 946_684_800
    with pytest.raises(FileExistsError):
        out.create("turn_1/files/b")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("turn_1/files/x/a.csv", "turn_1/files/x/a.csv"),
        ("x/a.csv", "x/a.csv"),
    ],
)
def test_a_promised_file_is_found_where_programs_write_it(out, root, written, path):
    write(root, written)
    assert out.judge("x/a.csv", 100) == ("file", path, 3)


def test_a_file_below_files_comes_before_one_that_was_written_bare(out, root):
    write(root, "a.csv", b"bare")
    write(root, "turn_1/files/a.csv", b"in files")
    assert out.judge("a.csv", 100) == ("file", "turn_1/files/a.csv", 8)


@pytest.mark.parametrize(("size", "state"), [(0, "file"), (100, "file"), (101, "too_large")])
def test_a_file_above_the_bound_is_too_large(out, root, size, state):
    write(root, "turn_1/files/a.csv", b"x" * size)
    assert out.judge("a.csv", 100) == (state, "turn_1/files/a.csv", size)


def test_nothing_there_is_missing(out, root):
    assert out.judge("a.csv", 100) == ("missing", None, 0)
    assert out.judge("x/y/a.csv", 100) == ("missing", None, 0)
    write(root, "turn_1/files/x", b"a file where a folder was meant")
    assert out.judge("x/a.csv", 100) == ("missing", None, 0)


@pytest.mark.parametrize("target", ["turn_1/files/real", "/etc/passwd", "nowhere", "../turn_1/files/real", "a.csv"])
def test_a_symbolic_link_is_never_followed(out, root, target):
    write(root, "turn_1/files/real")
    (root / "turn_1/files/a.csv").symlink_to(target)
    assert out.judge("a.csv", 100) == ("symlink", "turn_1/files/a.csv", 0)


def test_a_folder_that_is_a_link_blocks_what_is_below_it(out, root, tmp_path):
    write(root, "turn_1/files/real/a.csv")
    (root / "turn_1/files/inside").symlink_to("real")
    (root / "turn_1/files/outside").symlink_to("/etc")
    (root / "turn_1/files/beside").symlink_to(tmp_path)
    write(root, "turn_1/files_too/a.csv")
    (root / "turn_1/files/twin").symlink_to("../files_too")
    assert out.judge("inside/a.csv", 100)[0] == "symlink"
    assert out.judge("outside/passwd", 100)[0] == "escape"
    assert out.judge("beside/out/turn_1/files/real/a.csv", 100)[0] == "escape"
    assert out.judge("twin/a.csv", 100)[0] == "escape"


def test_a_turn_whose_folder_was_replaced_by_a_link_is_an_escape(out, root, tmp_path):
    (root / "turn_1/files").rmdir()
    write(tmp_path, "elsewhere/a.csv")
    (root / "turn_1/files").symlink_to(tmp_path / "elsewhere")
    assert out.judge("a.csv", 100) == ("escape", "turn_1/files/a.csv", 0)
    assert walked(out) == ({}, False, False)


def test_what_is_no_regular_file_is_not_opened(out, root, monkeypatch):
    monkeypatch.chdir(root / "turn_1/files")  # the name of a socket is short
    os.mkfifo("pipe")
    (root / "turn_1/files/folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name, state in (("pipe", "not_regular"), ("folder", "folder"), ("socket", "not_regular")):
            assert out.judge(name, 100) == (state, f"turn_1/files/{name}", 0)


def test_what_was_written_anew_with_the_same_size_and_its_time_restored_is_a_new_file(out, root):
    put(out, "turn_1/files/a.csv", b"old")
    before = (root / "turn_1/files/a.csv").stat()
    # As shutil.copystat, cp -p, tar and rsync do: the clock of the kernel has to move on between the two.
    while write(root, "tick").stat().st_ctime_ns == before.st_ctime_ns:
        pass
    (root / "tick").unlink()
    write(root, "turn_1/files/a.csv", b"new")
    os.utime(root / "turn_1/files/a.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert out.judge("a.csv", 100) == ("file", "turn_1/files/a.csv", 3)
    assert walked(out)[0] == {"a.csv": "turn_1/files/a.csv"}


def test_what_was_put_in_and_not_changed_is_stale(out, root):
    put(out, "turn_1/files/a.csv")
    assert out.judge("a.csv", 100) == ("stale", "turn_1/files/a.csv", 3)
    assert walked(out) == ({}, False, False)
    write(root, "a.csv", b"bare and new")
    assert out.judge("a.csv", 100) == ("file", "a.csv", 12)


@pytest.mark.parametrize("how", ["written", "replaced", "appended", "touched"])
def test_what_was_put_in_and_changed_is_a_file(out, root, how):
    put(out, "turn_1/files/a.csv")
    target = root / "turn_1/files/a.csv"
    if how == "written":
        target.write_bytes(b"new")
    elif how == "appended":
        with target.open("ab") as file:
            file.write(b"!")
    elif how == "touched":
        target.touch()
    else:
        write(root, "other", b"old").rename(target)
    assert out.judge("a.csv", 100)[:2] == ("file", "turn_1/files/a.csv")
    assert walked(out)[0] == {"a.csv": "turn_1/files/a.csv"}


def test_a_file_of_another_turn_is_never_the_promised_one(out):
    put(out, "turn_0/files/a.csv", writable=False)
    assert out.judge("a.csv", 100) == ("missing", None, 0)
    assert walked(out) == ({}, False, False)


def test_a_file_that_nobody_may_read_is_made_readable(out, root):
    target = write(root, "turn_1/files/x/a.csv")
    target.chmod(0)
    target.parent.chmod(0)
    assert out.judge("x/a.csv", 100)[0] == "file"
    assert (target.parent.stat().st_mode & 0o700, target.stat().st_mode & 0o400) == (0o700, 0o400)


def test_all_that_a_program_left_is_listed_under_the_names_of_promises(out, root):
    put(out, "turn_1/files/stale")
    put(out, "turn_1/attachments/given")
    put(out, "turn_1/attachments/kept")
    write(root, "turn_1/files/a")
    write(root, "turn_1/files/x/b")
    write(root, "bare")
    write(root, "x/c")
    write(root, "x/b", b"the one below files/ is meant")
    write(root, "turn_notes.txt")
    write(root, "turn_1/attachments/given", b"changed")
    write(root, "turn_0/files/elsewhere")
    (root / "turn_1/files/link").symlink_to("/etc")
    assert walked(out) == (
        {
            "a": "turn_1/files/a",
            "x/b": "turn_1/files/x/b",
            "link": "turn_1/files/link",
            "../attachments/given": "turn_1/attachments/given",
            "bare": "bare",
            "x/c": "x/c",
            "turn_notes.txt": "turn_notes.txt",
        },
        False,
        False,
    )
    assert out.look("turn_1/files/link", 100) == ("symlink", 0)


def test_a_walk_does_not_follow_a_folder_that_is_a_link(out, root):
    (root / "turn_1/files/loop").symlink_to("..")
    assert walked(out) == ({"loop": "turn_1/files/loop"}, False, False)


@pytest.mark.parametrize(("files_max", "is_over"), [(5, False), (4, True), (0, True)])
def test_a_walk_ends_at_the_most_files(out, root, files_max, is_over):
    for number in range(5):
        write(root, f"turn_1/files/{number}")
    entries, over_files, over_depth = walked(out, files_max)
    assert (len(entries), over_files, over_depth) == (min(5, files_max), is_over, False)


def test_files_that_did_not_change_do_not_count(out):
    for number in range(5):
        put(out, f"turn_1/files/{number}")
    assert walked(out, files_max=0) == ({}, False, False)


@pytest.mark.parametrize(("depth_max", "is_over", "count"), [(3, False, 3), (2, True, 2), (1, True, 1)])
def test_a_walk_ends_at_the_deepest_folder(out, root, depth_max, is_over, count):
    for path in ("a", "x/b", "x/y/c"):
        write(root, f"turn_1/files/{path}")
    entries, over_files, over_depth = walked(out, depth_max=depth_max)
    assert (len(entries), over_files, over_depth) == (count, False, is_over)


def test_names_are_compared_in_one_unicode_form():
    assert outdir.composed("cafe\u0301") == "café"
    assert outdir.composed("odd\udc80") == "odd\udc80"


@settings(max_examples=examples(500))
@example("a*b", "a**b")
@example("", "*")
@example("a\nb", "a?b")
@example("aab", "*ab")
@given(st.text("ab.\n*?", max_size=12), st.text("ab.*?\n", max_size=12))
def test_wildcards_fit_what_the_standard_library_says(name, pattern):
    assert outdir.fits_wildcards(name, pattern) is fnmatchcase(name, pattern)


def test_many_stars_take_no_time_without_end():
    assert not outdir.fits_wildcards("a" * 255, "*a" * 100 + "b")
