"""The archive of a workspace: what lies in files/ comes back as it was, and nothing else is touched."""

import importlib
import io
import json
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
MIB = 1024 * 1024
USER = 65_534


class Sent:
    """A channel that takes frames."""

    def __init__(self):
        self.facts, self.archive = {}, bytearray()

    def send_json(self, _kind, value):
        self.facts = json.loads(json.dumps(value))

    def send(self, _kind, payload):
        assert 0 < len(payload) <= 256 * 1024
        self.archive += payload


class Sandbox:
    """An OUT_DIR below a folder of the test, and the runner's modules."""

    def __init__(self, root, modules):
        self.root = root
        self.out_dir, self.workspace = modules
        root.mkdir()
        self.out = self.out_dir.OutDir(str(root))
        self.out.begin_turn("turn_1")
        self.files = root / "turn_1/files"

    def put(self, path, content=b"", **settings):
        fd = self.out.create(path)
        os.write(fd, content)
        os.close(fd)
        self.out.seal(path, writable=True, **settings)

    def pack(self, entries_max=1_000, bytes_max=64 * MIB, stored=()):
        sent = Sent()
        packing = self.workspace.Packing(self.out, entries_max, bytes_max)
        for rel in stored:
            packing.leave_out(f"turn_1/files/{rel}")
        packing.send(sent)
        return sent

    def restore(self, archive, piece_bytes=1_000):
        stream = io.BytesIO(bytes(archive))
        archive = self.workspace.Archive(lambda: stream.read(piece_bytes), len(bytes(archive)))
        self.workspace.restore(self.out, archive).finish()

    def tree(self):
        """Kind, mode, time and content of all that lies in files/; folders have no time."""
        found = {}
        for path in sorted(self.files.rglob("*")):
            status = path.lstat()
            content, when = None, status.st_mtime_ns
            if path.is_symlink():
                content = str(path.readlink())
            elif path.is_file():
                content = path.read_bytes()
            else:
                when = 0
            found[str(path.relative_to(self.files))] = (stat.filemode(status.st_mode), when, content)
        return found


@pytest.fixture(scope="module")
def modules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RUNNER))
        patch.syspath_prepend(str(RUNNER.parent))
        yield importlib.import_module("out_dir"), importlib.import_module("workspace")


@pytest.fixture
def sandbox(tmp_path, modules):
    return Sandbox(tmp_path.resolve() / "out", modules)


@pytest.fixture
def later(tmp_path, modules):
    """The sandbox of the next call."""
    return Sandbox(tmp_path.resolve() / "later", modules)


@pytest.fixture
def user_folder():
    """A folder of a user who has no rights but those of its modes; the test runs as that user."""
    with tempfile.TemporaryDirectory() as top:
        if os.geteuid() != 0:
            yield Path(top).resolve()
            return
        os.chown(top, USER, USER)
        os.seteuid(USER)
        try:
            yield Path(top).resolve()
        finally:
            os.seteuid(0)


def fill(files):
    """What programs leave: folders, empty ones too, modes, links, odd names, a file of several pieces."""
    (files / "src/deep").mkdir(parents=True)
    (files / "src/deep/code.py").write_text("print(1)\n")
    (files / "empty").mkdir(mode=0o750)
    (files / "run.sh").write_text("#!/bin/sh\n")
    (files / "run.sh").chmod(0o755)
    (files / "secret").write_text("s")
    (files / "secret").chmod(0o000)
    (files / "link").symlink_to("src/deep/code.py")
    (files / "outside").symlink_to("/etc/passwd")
    (files / "loop").symlink_to("loop")
    os.link(files / "run.sh", files / "src/again.sh")
    (files / "two\nlines é").write_text("odd")
    (files / os.fsdecode(b"no\xffutf8")).write_text("bytes")
    (files / "large.bin").write_bytes(os.urandom(600_000))
    (files / "zero").touch()
    os.utime(files / "src/deep/code.py", ns=(1, 1_234_567_891_234_567_891))
    (files / "locked").mkdir()
    (files / "locked/inside").write_text("i")
    (files / "locked").chmod(0o555)


def test_all_comes_back_with_modes_times_links_and_empty_folders(sandbox, later):
    fill(sandbox.files)
    before = sandbox.tree()
    sent = sandbox.pack()
    later.restore(sent.archive)
    assert later.tree() == before
    assert sent.facts == {
        "entries": len(before),
        "size": len(sent.archive),
        "is_too_large": False,
        "left_out": 0,
        "is_same": False,
    }
    assert (later.files / "run.sh").samefile(later.files / "src/again.sh")


def test_an_archive_of_what_was_restored_is_not_sent_again(sandbox, later):
    fill(sandbox.files)
    later.restore(sandbox.pack().archive)
    again = later.pack()
    assert (again.facts["is_same"], again.facts["entries"] > 10, again.archive) == (True, True, b"")
    (later.files / "empty").rmdir()
    assert later.pack().facts["is_same"] is False
    (later.files / "empty").mkdir(mode=0o750)
    (later.files / "src/deep/code.py").write_text("print(2)\n")
    os.utime(later.files / "src/deep/code.py", ns=(1, 1_234_567_891_234_567_891))
    assert later.pack().facts["is_same"] is False


def test_files_that_are_stored_by_themselves_leave_their_modes_alone(sandbox, later):
    (sandbox.files / "run").write_text("echo 1")
    (sandbox.files / "run").chmod(0o755)
    (sandbox.files / "script").write_text("#!/bin/sh")
    (sandbox.files / "script").chmod(0o755)
    (sandbox.files / "plain").write_text("1")
    (sandbox.files / "more").write_text("2")
    sent = sandbox.pack(stored=["run", "script", "plain"])
    assert (sent.facts["entries"], b'"more"' in sent.archive, b'"run"' in sent.archive) == (2, True, True)
    later.restore(sent.archive)
    later.put("turn_1/files/run", b"echo 1")
    later.put("turn_1/files/plain", b"1")
    assert {rel: entry[0] for rel, entry in later.tree().items()} == {
        "run": "-rwxr-xr-x",
        "plain": "-rw-r--r--",
        "more": "-rw-r--r--",
    }
    assert later.pack().facts["is_same"] is True


def test_second_names_of_stored_files_come_back_unless_one_of_them_is_another_file(
    sandbox, later, tmp_path, modules
):
    (sandbox.files / "a").write_text("1")
    os.link(sandbox.files / "a", sandbox.files / "b")
    archive = sandbox.pack(stored=["a", "b"]).archive
    for at, (content, is_one) in enumerate([(b"1", True), (b"2", False)]):
        later = Sandbox(tmp_path.resolve() / f"later_{at}", modules)
        stream = io.BytesIO(bytes(archive))
        restoration = later.workspace.restore(later.out, later.workspace.Archive(stream.read, len(archive)))
        later.put("turn_1/files/a", b"1")
        later.put("turn_1/files/b", content)
        restoration.finish()
        assert (later.files / "a").samefile(later.files / "b") is is_one
        assert later.out.walk(10, 10).files() == []


def test_what_was_removed_does_not_come_back(sandbox, later, tmp_path, modules):
    for name in ("a", "b"):
        (sandbox.files / name).write_text(name)
    later.restore(sandbox.pack().archive)
    (later.files / "a").unlink()
    third = Sandbox(tmp_path.resolve() / "third", modules)
    third.restore(later.pack().archive)
    assert list(third.tree()) == ["b"]


def test_restored_files_are_unchanged_until_the_program_changes_them(sandbox, later):
    for name in ("same", "changed", "gone"):
        (sandbox.files / name).write_text(name)
    (sandbox.files / "link").symlink_to("same")
    later.restore(sandbox.pack().archive)
    (later.files / "changed").write_text("CHANGED")
    (later.files / "gone").unlink()
    (later.files / "new").write_text("new")
    assert [rel for rel, _ in later.out.walk(100, 10).files()] == ["changed", "new"]
    elsewhere = importlib.import_module("elsewhere")
    assert elsewhere.removed(later.out) == []  # of what has no versions none can be marked


def test_what_a_program_wrote_beside_files_is_in_files_the_next_time(sandbox, later):
    (sandbox.root / "bare.txt").write_text("bare")
    (sandbox.root / "sub").mkdir()
    (sandbox.root / "sub/deep.txt").write_text("deep")
    (sandbox.root / "hollow").mkdir()
    sandbox.put("turn_0/files/other.txt", b"of another turn")
    sandbox.put("turn_1/files/data.csv", b"a", links=["turn_1/attachments/data.csv"])
    later.restore(sandbox.pack().archive)
    assert list(later.tree()) == ["bare.txt", "hollow", "sub", "sub/deep.txt"]


def test_empty_folders_beside_files_come_with_those_above_them(sandbox, later):
    (sandbox.root / "a/b/c").mkdir(parents=True)
    later.restore(sandbox.pack().archive)
    assert list(later.tree()) == ["a", "a/b", "a/b/c"]


def test_what_lies_below_a_name_that_is_a_link_in_files_is_left_out(sandbox, later):
    other = sandbox.root
    (other / "data/sub").mkdir(parents=True)
    (other / "data/x.csv").write_text("x")
    (other / "data/sub/link").symlink_to("x.csv")
    (sandbox.files / "data").symlink_to(other / "data")
    sent = sandbox.pack()
    assert sent.facts["left_out"] > 0
    later.restore(sent.archive)
    assert list(later.tree()) == ["data"]


@pytest.mark.parametrize("replaced", ["turn_1", "turn_1/files"])
def test_a_link_in_the_place_of_files_is_not_followed(sandbox, tmp_path, replaced):
    target = tmp_path / "target"
    (target / "files").mkdir(parents=True)
    for folder in (target, target / "files"):
        (folder / "locked").mkdir()
        (folder / "locked/secret").write_text("s")
        (folder / "locked").chmod(0o555)
    (sandbox.root / replaced).rename(tmp_path / "before")
    (sandbox.root / replaced).symlink_to(target)
    (sandbox.root / "bare").write_text("b")
    sent = sandbox.pack()
    assert b"secret" not in sent.archive
    assert (sent.facts["left_out"], b'"bare"' in sent.archive) == (1, True)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in target.rglob("locked")}
    assert modes == {0o555}


def test_folders_that_the_program_removed_are_not_left_out(sandbox):
    sandbox.files.rmdir()
    assert (sandbox.pack().facts["entries"], sandbox.pack().facts["left_out"]) == (0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a folder of another user")
def test_a_folder_of_another_user_is_left_out(modules, user_folder):
    sandbox = Sandbox(user_folder / "out", modules)
    (sandbox.files / "a").write_text("a")
    (sandbox.files / "foreign").mkdir()
    os.seteuid(0)
    os.chown(sandbox.files / "foreign", 0, 0)
    os.seteuid(USER)
    assert (sandbox.pack().facts["entries"], sandbox.pack().facts["left_out"]) == (2, 1)


def test_a_path_that_is_too_long_in_the_next_sandbox_is_left_out_and_counted(sandbox, modules, tmp_path):
    folder = sandbox.files
    while len(os.fsencode(folder)) < 3_800:
        folder /= "d" * 200
        folder.mkdir()
    (folder / "first").write_text("1")
    (folder / ("f" * (4_094 - len(os.fsencode(folder))))).write_text("no")
    (folder / "hello").mkdir()
    (sandbox.files / "zero").write_text("0")
    later = Sandbox(tmp_path.resolve() / "longer", modules)
    later.restore(sandbox.pack().archive)
    assert later.out.not_restored == 1
    assert {path.name for path in later.files.rglob("*") if not path.is_dir()} == {"first", "zero"}
    assert later.pack().facts["left_out"] == 1


def test_pipes_and_sockets_are_counted_and_left_out(sandbox):
    os.mkfifo(sandbox.files / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(sandbox.files / "socket"))
        sent = sandbox.pack()
    assert (sent.facts["entries"], sent.facts["left_out"]) == (0, 2)


@pytest.mark.parametrize("bounds", [{"entries_max": 9}, {"bytes_max": 1_500}])
def test_a_workspace_over_its_bounds_is_not_sent(sandbox, bounds):
    for number in range(10):
        (sandbox.files / f"f{number}").write_bytes(bytes(100))
    sent = sandbox.pack(**bounds)
    assert (sent.facts["is_too_large"], sent.archive) == (True, b"")
    assert sandbox.pack().facts["is_too_large"] is False


def test_a_sparse_file_is_counted_by_what_it_claims(sandbox):
    with (sandbox.files / "sparse").open("wb") as file:
        file.truncate(65 * MIB)
    assert sandbox.pack().facts["is_too_large"] is True


# ---- newer files over a restored workspace ----


def test_a_newer_file_takes_the_place_of_what_is_there(sandbox, later):
    (sandbox.files / "a").mkdir()
    (sandbox.files / "a/inside").write_text("old")
    (sandbox.files / "b").symlink_to("/tmp")
    (sandbox.files / "c").write_text("a file where a folder is wanted")
    (sandbox.files / "d").mkdir()
    (sandbox.files / "d").chmod(0o555)
    later.restore(sandbox.pack().archive)
    for path in ("a", "b/x", "c/y", "d/z"):
        assert later.workspace.make_way(later.out, f"turn_1/files/{path}", yields=False)
        later.put(f"turn_1/files/{path}", b"new")
    found = {rel: entry[2] for rel, entry in later.tree().items() if entry[2] is not None}
    assert found == dict.fromkeys(("a", "b/x", "c/y", "d/z"), b"new")


def test_a_newer_file_takes_the_place_of_a_folder_with_folders_that_cannot_be_written(modules, user_folder):
    sandbox, later = Sandbox(user_folder / "out", modules), Sandbox(user_folder / "later", modules)
    outside = user_folder / "outside"
    outside.mkdir()
    outside.chmod(0o555)
    (sandbox.files / "a/b/c").mkdir(parents=True)
    (sandbox.files / "a/b/c/file").write_text("old")
    (sandbox.files / "a/b/link").symlink_to(outside)
    for path, mode in (("a/b/c", 0o000), ("a/b", 0o555), ("a", 0o500)):
        (sandbox.files / path).chmod(mode)
    later.restore(sandbox.pack().archive)
    assert later.workspace.make_way(later.out, "turn_1/files/a", yields=False)
    later.put("turn_1/files/a", b"new")
    assert {rel: entry[2] for rel, entry in later.tree().items()} == {"a": b"new"}
    assert stat.S_IMODE(outside.stat().st_mode) == 0o555


def test_a_file_that_yields_is_only_put_where_nothing_lies(sandbox, later):
    (sandbox.files / "a").write_text("kept")
    later.restore(sandbox.pack().archive)
    places = ("turn_1/files/a", "turn_1/files/a/below", "turn_1/files/free", "turn_1/attachments/a")
    assert [later.workspace.make_way(later.out, path, yields=True) for path in places] == [False, False, True, True]
    assert (later.files / "a").read_text() == "kept"


# ---- archives of a runner that a program took over ----


def line(**entry):
    return json.dumps({"mode": 0o644, "mtime_ns": 0, **entry}).encode() + b"\n"


@pytest.mark.parametrize(
    "archive",
    [
        line(path="../escape", kind="file", size=0),
        line(path="/abs", kind="file", size=0),
        line(path="a/../../b", kind="folder"),
        line(path="", kind="folder"),
        line(path="a", kind="file", size=10) + b"short",
        line(path="a", kind="link", target="../../../etc/passwd"),
        line(path=5, kind="file", size=0),
        line(path="a", kind="file"),
        line(path="a", kind="file", size="x"),
        line(path="a", kind="device"),
        line(kind="file", size=0),
        b"no json\n",
        b"[]\n",
        b"[" * 100_000 + b"\n",
        b"x" * 200_000,
        b"x",
    ],
)
def test_a_damaged_archive_is_refused(later, archive):
    with pytest.raises(later.workspace.DamagedArchiveError):
        later.restore(archive)
    assert sorted(path.name for path in later.root.parent.iterdir()) == ["later"]


def test_nothing_is_written_through_a_link_of_the_archive(later, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    later.restore(
        line(path="a", kind="symlink", target=str(target))
        + line(path="a/b", kind="file", size=1)
        + b"x"
        + line(path="a/c", kind="symlink", target="b")
        + line(path="a/d", kind="folder")
        + line(path="a/d/e", kind="file", size=2)
        + b"yz"
        + line(path="f", kind="file", size=1)
        + b"f"
        + line(path="g", kind="link", target="missing")
    )
    assert list(target.iterdir()) == []
    assert sorted(path.name for path in later.files.iterdir()) == ["a", "f"]
    assert later.out.not_restored == 5
