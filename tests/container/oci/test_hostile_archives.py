"""Archives of images made to harm who unpacks them: they end in time, inside their folder, with one sentence."""
# ruff: noqa: E501 - headers and names are data

import gzip
import io
import json
import os
import resource
import shutil
import signal
import stat
import tarfile
import tempfile
from pathlib import Path

import pytest
from archives import archive, entry, layer
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.service.sandbox.oci.unpack_image import Bounds, main

pytestmark = pytest.mark.oci

MINUTES = float(os.environ.get("PROOFBOX_TEST_FUZZ_MINUTES", "0"))


def fuzzed(examples: int) -> settings:
    return settings(
        max_examples=int(examples * (1 + MINUTES * 2)), deadline=None, derandomize=not MINUTES, database=None
    )


BOUNDS = Bounds(bytes_max=250_000, members_max=300, memory_bytes_max=256 << 20)
CPU_S_MAX = 10
ROOT_BYTES_MAX = 2_000_000


def unpacked(path: Path, folder: Path) -> tuple[int, str]:
    """Unpacks in a process of its own, as the service does; its exit status and its last words."""
    said = folder.with_name("said")
    child = os.fork()
    if child == 0:
        status = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
            fd = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for standard in (1, 2):
                os.dup2(fd, standard)
            import sys  # noqa: PLC0415 - of the child: pytest has replaced the parent's

            sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(n, "w"), write_through=True) for n in (1, 2))
            try:
                status = main(str(path), str(folder), BOUNDS)
            except BaseException as exc:  # noqa: BLE001 - told to the parent
                os.write(2, f"Traceback: {exc!r}".encode(errors="replace"))
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(ended), f"ended by {signal.Signals(os.WTERMSIG(ended)).name}"
    return os.WEXITSTATUS(ended), said.read_text(errors="replace").strip()


def seen_below(folder: Path) -> list[os.stat_result]:
    return [os.lstat(f"{top}/{name}") for top, folders, files in os.walk(folder) for name in (*folders, *files)]


class Place:
    """A folder with a victim beside the root that an archive is unpacked into."""

    def __enter__(self):
        self.above = Path(tempfile.mkdtemp(prefix="hostile-archive-"))
        self.root, self.victim = self.above / "root", self.above / "victim"
        self.root.mkdir()
        self.victim.mkdir()
        (self.victim / "kept.txt").write_text("kept")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.above)

    def unpack(self, path: Path) -> tuple[int, str]:
        """Unpacks and looks around; what is returned is `unpacked`'s."""
        status, words = unpacked(path, self.root)
        assert status in {0, 1}, words
        assert len(words.splitlines()) == 1, words
        assert len(words) < 2_000
        assert "Traceback" not in words
        assert {found.name for found in self.above.iterdir()} == {"root", "victim", "said", path.name}
        assert [found.name for found in self.victim.iterdir()] == ["kept.txt"]
        assert (self.victim / "kept.txt").read_text() == "kept"
        found = seen_below(self.root)
        assert sum(one.st_blocks * 512 for one in found if not stat.S_ISDIR(one.st_mode)) < ROOT_BYTES_MAX
        assert {stat.S_IFMT(one.st_mode) for one in found} <= {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}
        modes = [one.st_mode for one in found if not stat.S_ISLNK(one.st_mode)]
        assert [mode for mode in modes if mode & (stat.S_ISUID | stat.S_ISGID)] == []
        return status, words


# ---- fuzzed


def octal(value: int, size: int) -> bytes:
    return f"{value:0{size - 1}o}".encode()[-size + 1 :] + b"\0"


def base256(value: int, size: int) -> bytes:
    return (b"\x80" if value >= 0 else b"\xff") + value.to_bytes(size - 1, "big", signed=True)


def block(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def header(name: bytes, kind: bytes, linkname: bytes, numbers: dict[str, bytes], rest: bytes) -> bytes:
    """A header of our own making: the fields that `TarInfo` would refuse to write."""
    fields = {"mode": octal(0o755, 8), "uid": octal(0, 8), "gid": octal(0, 8), "size": octal(0, 12), "mtime": octal(0, 12)}  # fmt: skip
    fields |= numbers
    made = name[:100].ljust(100, b"\0") + b"".join(fields.values()) + b" " * 8 + kind + linkname[:100].ljust(100, b"\0") + rest  # fmt: skip
    made = made[:512].ljust(512, b"\0")
    return made[:148] + f"{sum(made):06o}\0 ".encode() + made[156:]


NAMES = st.sampled_from(
    [
        b"a", b"a/b", b"a/b/c", b"etc", b"etc/x", b"../victim/out", b"../../victim/kept.txt", b"/../victim/x", b"/etc/x", b"./../x",
        b"a/../../victim/x", b"", b".", b"..", b"/", b"//", b"./", b"a//b", b"a\0b", b"x" * 100, b"a/" * 49, b"\xff\xfe", b"a\nb", b"~", b"-rf",
        b".wh.a", b"a/.wh.b", b".wh.", b"a/.wh.", b".wh..", b".wh...", b"a/.wh...", b"a/.wh..", b".wh..wh..opq", b"a/.wh..wh..opq", b"l/.wh..wh..opq",
        b".wh..wh.plnk", b"l", b"l/x", b"l/l/l", b"proc", b"proc/self/root/x", b"dev/null", b"etc/hosts", b"etc/mtab", b"out",
    ]
)  # fmt: skip
LINKS = st.sampled_from([b"a", b"l", b"..", b"../victim", b"../victim/kept.txt", b"/", b"/etc", b".", b"", b"a/b", b"/proc/self/root", b"x" * 100, b"a\nb", b"l/../l"])  # fmt: skip
KINDS = st.sampled_from([tarfile.REGTYPE] * 6 + [tarfile.DIRTYPE] * 4 + [tarfile.SYMTYPE] * 4 + [tarfile.LNKTYPE] * 3 + [b"\0", tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"S", b"L", b"K", b"x", b"g", b"X", b"V", b"Z", b"\xff"])  # fmt: skip
SIZES = st.sampled_from([octal(0, 12), octal(1, 12), octal(511, 12), octal(10**6, 12), octal(8**11 - 1, 12), base256(2**62, 12), base256(-1, 12), base256(-512, 12), base256(-1024, 12), base256(2**80, 12), b"x" * 12, b" " * 12])  # fmt: skip
TIMES = st.sampled_from([octal(0, 12), octal(8**11 - 1, 12), base256(2**62, 12), base256(-(2**62), 12), base256(2**85, 12), b"zzz".ljust(12)])  # fmt: skip
IDS = st.sampled_from([octal(0, 8), octal(65_534, 8), octal(8**7 - 1, 8), base256(2**31, 8), base256(2**40, 8), base256(-1, 8), base256(-5, 8), b"????????"])  # fmt: skip
MODES = st.sampled_from([octal(0o755, 8), octal(0o7777, 8), octal(0, 8), octal(0o100755, 8), base256(2**40, 8), base256(-1, 8)])  # fmt: skip
PAX = st.sampled_from(
    [
        ("path", "../victim/x"), ("path", "/etc/x"), ("path", "a\0b"), ("path", "x" * 5_000), ("path", ""), ("path", "é\u202e\n"),
        ("linkpath", "../victim/kept.txt"), ("linkpath", "\0"), ("size", "999999999999"), ("size", "-1"), ("size", "nan"), ("mtime", "nan"), ("mtime", "inf"),
        ("mtime", "-1e300"), ("mtime", "1e12"), ("uid", "-1"), ("uid", "4294967296"), ("gid", "x"), ("uname", "root"), ("hdrcharset", "BINARY"),
        ("GNU.sparse.map", "0,1,99999999999,1"), ("GNU.sparse.size", "99999999999999"), ("GNU.sparse.realsize", "99999999999999"),
        ("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", "../victim/x"), ("GNU.sparse.numblocks", "99999999"),
        ("SCHILY.xattr.security.capability", "\x01\x00\x00\x02"), ("SCHILY.xattr.user.x", "y" * 900),
    ]
)  # fmt: skip


def pax_record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode("utf-8", "surrogateescape")
    size = len(body) + 1
    while len(str(size)) + len(body) != size:
        size = len(str(size)) + len(body)
    return str(size).encode() + body


@st.composite
def members(draw: st.DrawFn) -> bytes:
    """One member, perhaps with extended headers in front of it."""
    name, kind = draw(NAMES), draw(KINDS)
    content = draw(st.sampled_from([b"", b"x", b"y" * 600, b"0\n" * 300, b"9 path=x\n"]))
    numbers = {}
    odd = draw(st.sampled_from(["", "", "", "", "size", "mtime", "uid", "mode"]))
    if odd:
        numbers[odd] = draw({"size": SIZES, "mtime": TIMES, "uid": IDS, "mode": MODES}[odd])
    if "size" not in numbers and kind not in {tarfile.DIRTYPE, tarfile.SYMTYPE}:
        numbers["size"] = octal(len(content), 12)
    rest = draw(st.sampled_from([b"ustar\x0000", b"ustar  \0", b"", b"ustar\x0000" + bytes(82) + b"../victim" * 10, b"ustar  \0" + bytes(121) + b"\x7f" * 100]))  # fmt: skip
    made = header(name, kind, draw(LINKS), numbers, rest) + block(content)
    front = b""
    if draw(st.integers(0, 3)) == 0:
        records = b"".join(pax_record(*draw(PAX)) for _ in range(draw(st.integers(1, 3))))
        kind_of_header = draw(st.sampled_from([b"x", b"x", b"g"]))
        front = header(b"pax", kind_of_header, b"", {"size": octal(len(records), 12)}, b"ustar\x0000") + block(records)  # fmt: skip
    elif draw(st.integers(0, 7)) == 0:
        long = draw(
            st.sampled_from([b"../victim/" + b"n" * 200 + b"\0", b"d/" * 3_000 + b"\0", b"\0", b"z" * 70_000])
        )
        front = header(b"././@LongLink", draw(st.sampled_from([b"L", b"K"])), b"", {"size": octal(len(long), 12)}, b"ustar  \0") + block(long)  # fmt: skip
    return front + made


@st.composite
def layers(draw: st.DrawFn) -> bytes:
    """A layer whose members are odd, and whose bytes may be damaged."""
    made = b"".join(draw(st.lists(members(), min_size=1, max_size=8))) + bytes(1024)
    match draw(st.sampled_from(["whole"] * 6 + ["cut", "damaged", "twice", "gzip", "cut gzip", "bad gzip"])):
        case "cut":
            made = made[: draw(st.integers(0, len(made)))]
        case "damaged":
            at = draw(st.integers(0, len(made) - 1))
            made = made[:at] + draw(st.binary(min_size=1, max_size=20)) + made[at + 1 :]
        case "twice":
            made += made
        case "gzip":
            made = gzip.compress(made, 1)
        case "cut gzip":
            packed = gzip.compress(made, 1)
            made = packed[: draw(st.integers(2, len(packed)))]
        case "bad gzip":
            made = b"\x1f\x8b" + draw(st.binary(max_size=50))
    return made


def plain(data: bytes) -> bytes:
    """What digests are of: the layer uncompressed, as far as it can be."""
    try:
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, ValueError, gzip.zlib.error):
        return data


@given(st.lists(layers(), min_size=1, max_size=3))
@fuzzed(50)
def test_any_layers_are_unpacked_inside_their_folder_or_refused_in_one_sentence(made):
    good = layer(*(entry(name, type=tarfile.DIRTYPE) for name in ("etc", "a")), entry("a/b", b"1"))
    with Place() as place:
        told = [good, *(plain(one) for one in made)]
        place.unpack(archive(place.above / "image.tar", good, *made, told=told))


ODD_JSON = st.recursive(
    st.sampled_from([None, 0, -1, 1.5, "", "manifest.json", "../x", "0/layer.tar", "c.json", True, 10**30]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["Config", "Layers", "rootfs", "diff_ids", "config", "Entrypoint", "Env", "WorkingDir"]), below, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(
    ODD_JSON,
    ODD_JSON,
    st.sampled_from([None, b"[" * 100_000, b"{}", b"", b"\xff\xfe", b'[{"Config":"manifest.json"}]', b"NaN"]),
)
@fuzzed(20)
def test_any_manifest_and_configuration_are_understood_or_refused_in_one_sentence(manifest, config, raw):
    with Place() as place:
        path = place.above / "image.tar"
        text = (
            raw if raw is not None else json.dumps([manifest] if isinstance(manifest, dict) else manifest).encode()
        )
        path.write_bytes(
            layer(
                entry("manifest.json", text),
                entry("c.json", json.dumps(config).encode()),
                entry("0/layer.tar", b""),
            )
        )
        assert place.unpack(path)[0] == 1


# ---- bombs and circles


def sparse(name: bytes, real_bytes: int) -> bytes:
    """A GNU sparse file that is all hole."""
    rest = b"ustar  \0" + bytes(121) + octal(0, 12) + octal(0, 12) + bytes(24 * 3) + b"\0" + base256(real_bytes, 12)
    return header(name, b"S", b"", {"size": octal(0, 12)}, rest) + bytes(1024)


def links(count: int) -> bytes:
    return layer(*(entry(f"l{n}", type=tarfile.SYMTYPE, linkname=f"l{n + 1}/l{n + 1}") for n in range(count)), entry(f"l{count}", type=tarfile.SYMTYPE, linkname="l0"), entry("l0/x", b"1"))  # fmt: skip


def pax_bomb(header_bytes: int) -> bytes:
    """A packed layer whose first header alone unpacks to that many bytes."""
    first = header(b"pax", b"x", b"", {"size": base256(header_bytes, 12)}, b"ustar\x0000")
    return gzip.compress(first + bytes(header_bytes), 1)


def deep() -> list[tuple[tarfile.TarInfo, bytes]]:
    """Each link leads a hundred folders further down."""
    below, rows = "/".join("d" * 90), []
    for n in range(5):
        top = f"l{n - 1}/" if n else ""
        rows += [entry(f"{top}{below}", type=tarfile.DIRTYPE)]
        rows += [entry(f"l{n}", type=tarfile.SYMTYPE, linkname=f"{top}{below}")]
    return rows


BOMBS = {
    "a file that is larger than all of them may be": (lambda: layer(entry("a", b"x" * 300_000)), "bytes"),
    "a sparse file of a terabyte": (lambda: sparse(b"a", 1 << 40), "sparse"),
    "a sparse file of zettabytes": (lambda: sparse(b"a", 1 << 70), "sparse"),
    "zeros that were packed a thousand to one": (lambda: gzip.compress(layer(entry("a", bytes(50_000_000)))), "bytes"),
    "a name of eighty megabytes": (lambda: pax_bomb(80_000_000), "bytes"),
    "more members than are taken": (lambda: layer(*(entry(f"d{n}", type=tarfile.DIRTYPE) for n in range(400))), "members"),
    "a member of a terabyte that is not there": (lambda: header(b"a", b"Z", b"", {"size": base256(1 << 50, 12)}, b"ustar\x0000") + bytes(512), "cut off"),
    "one member again and again": (lambda: header(b"a", b"0", b"", {"size": base256(-512, 12)}, b"ustar  \0") + bytes(512), ""),
    "a long name of a negative size": (lambda: header(b"a", b"L", b"", {"size": base256(-512, 12)}, b"ustar  \0") + bytes(512), ""),
    "links in circles": (lambda: links(40), "File exists"),
    "a folder that is a link to itself": (lambda: layer(entry("l", type=tarfile.SYMTYPE, linkname="l"), entry("l/x", b"1")), ""),
    "folders below one another": (lambda: layer(entry("/".join("d" * 2_500), b"x")), "cannot be read"),
    "folders below one another by way of links": (lambda: layer(*deep()), "too deep"),
    "a whiteout of everything above": (lambda: layer(entry("a", type=tarfile.DIRTYPE), entry("a/.wh...", b"")), "whiteout"),
    "a whiteout without a name": (lambda: layer(entry("a", type=tarfile.DIRTYPE), entry("a/.wh.", b"")), "whiteout"),
}  # fmt: skip


@pytest.mark.parametrize("case", BOMBS)
def test_a_bomb_is_refused_before_it_costs_room_or_time(case):
    make, why = BOMBS[case]
    bomb = make()
    with Place() as place:
        good = layer(entry("etc", type=tarfile.DIRTYPE), entry("kept", b"1"))
        told = [good, plain(bomb) if len(bomb) < 1_000_000 else bomb]
        status, words = place.unpack(archive(place.above / "image.tar", good, bomb, told=told))
        assert (status, why in words) == (1, True), words


def test_an_archive_whose_members_are_links_to_one_another_is_refused():
    with Place() as place:
        path = place.above / "image.tar"
        path.write_bytes(
            layer(
                entry("manifest.json", type=tarfile.SYMTYPE, linkname="other.json"),
                entry("other.json", type=tarfile.SYMTYPE, linkname="manifest.json"),
            )
        )
        assert place.unpack(path) == (1, "it is no archive of an image as 'docker save' writes it")


def test_a_layer_that_is_a_link_to_another_is_that_layer(tmp_path):
    # As docker save writes two layers that are the same.
    made = layer(entry("etc", type=tarfile.DIRTYPE), entry("a", b"1"))
    path = archive(tmp_path / "plain.tar", made, made)
    linked = tmp_path / "linked.tar"
    with tarfile.open(path) as source, tarfile.open(linked, "w") as target:
        for member in source:
            if member.name == "1/layer.tar":
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "../0/layer.tar", 0
                target.addfile(member)
            else:
                target.addfile(member, source.extractfile(member))
    with Place() as place:
        shutil.copy(linked, place.above / "image.tar")
        assert place.unpack(place.above / "image.tar")[0] == 0
        assert (place.root / "a").read_bytes() == b"1"
