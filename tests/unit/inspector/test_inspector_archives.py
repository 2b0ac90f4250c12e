import io
import tarfile
import zipfile
from collections.abc import Callable

import pytest
from inspector_run import Case, compared, verdicts_of
from inspector_samples import image, tar_member, tarred, zip_with_link, zipped

NOT_BLANK = {"not_blank": True}
OUTSIDE = "would be written outside the folder"
FILES = [("a.txt", b"hello"), ("b/c.txt", b"world" * 1000)]


def zip_altered(members: dict[str, bytes], alter: Callable[[list[zipfile.ZipInfo]], None]) -> bytes:
    """A ZIP archive whose directory at the end tells something else than its members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        alter(archive.infolist())
    return out.getvalue()


def all_at_the_first(members: list[zipfile.ZipInfo]) -> None:
    for member in members[1:]:
        member.header_offset, member.CRC = members[0].header_offset, members[0].CRC
        member.compress_size, member.file_size = members[0].compress_size, members[0].file_size


def encrypted(members: list[zipfile.ZipInfo]) -> None:
    members[0].flag_bits |= 1


def shorter_than_it_is(members: list[zipfile.ZipInfo]) -> None:
    members[0].file_size = 10


def longer_than_it_is(members: list[zipfile.ZipInfo]) -> None:
    members[0].file_size = 10_000


def a_device(members: list[zipfile.ZipInfo]) -> None:
    members[0].external_attr = 0o020666 << 16


def sparse_tar(size: int) -> bytes:
    """A tar archive of one member that claims a size which nothing follows."""
    info = tarfile.TarInfo("big")
    info.size = size
    return info.tobuf() + bytes(1024)


def damaged_header(archive: bytes) -> bytes:
    """The second member's header made unreadable."""
    return archive[:1024] + b"\xff" * 512 + archive[1536:]


ZIP = [
    Case("judges a ZIP archive", "a.zip", zipped(dict(FILES)), None, NOT_BLANK, {"members": 2}),
    Case(
        "takes empty members for blank",
        "a.zip",
        zipped({"a/": b"", "a/b": b""}),
        "is blank: no member holds a byte",
        NOT_BLANK,
        {"members": 2},
    ),
    *[
        Case(
            f"refuses the ZIP member {name}",
            "a.zip",
            zipped({name: b"x"}),
            f"the archive member '{name}' {OUTSIDE}",
        )
        for name in ("../x", "a/../../x", "/etc/x", "C:x", "a\\..\\..\\b", "\\\\host\\x")
    ],
    Case("lets a link within a ZIP archive pass", "a.zip", zip_with_link("a/link", "../b"), facts={"members": 1}),
    Case(
        "refuses a link out of a ZIP archive",
        "a.zip",
        zip_with_link("a/link", "../../etc"),
        "the link 'a/link' points outside the folder, to '../../etc'",
    ),
    Case(
        "refuses a ZIP member written through a link",
        "a.zip",
        zip_with_link("link", "a", {"link/x": b"x"}),
        "the archive member 'link/x' would be written through a link",
    ),
    Case(
        "refuses a device in a ZIP archive",
        "a.zip",
        zip_altered({"null": b""}, a_device),
        "the archive member 'null' is neither a file, a folder nor a link",
    ),
    Case(
        "refuses members that share their bytes",
        "a.zip",
        zip_altered({"a": b"x" * 50, "b": b"y" * 50}, all_at_the_first),
        "is a ZIP bomb or damaged: the archive member 'a' overlaps another",
    ),
    Case("refuses a ratio that only a bomb has", "a.zip", zipped({"a": bytes(20_000_000)}), "unpacks to 1,0…"),
    Case("lets a small file of zeros pass", "a.zip", zipped({"a": bytes(1_000_000)})),
    Case(
        "does not open the archives within an archive",
        "a.zip",
        zipped({f"{n}.zip": zipped({"a": bytes(20_000_000)}) for n in range(2)}, zipfile.ZIP_STORED),
        facts={"members": 2},
    ),
    Case(
        "refuses a password",
        "a.zip",
        zip_altered({"a": b"x"}, encrypted),
        "is encrypted: the archive member 'a' needs a password",
    ),
    *[
        Case(
            f"refuses a member that is {name}",
            "a.zip",
            zip_altered({"a": b"x" * 100}, alter),
            "is damaged: the archive member 'a' …",
        )
        for name, alter in [
            ("longer than it says", shorter_than_it_is),
            ("shorter than it says", longer_than_it_is),
        ]
    ],
    Case(
        "refuses text named .zip",
        "a.zip",
        b"PK is short for",
        "is not a ZIP archive: it starts with 'PK is short for'",
    ),
    Case(
        "sees that a ZIP archive is cut off",
        "a.zip",
        zipped(dict(FILES))[:-30],
        "is damaged or cut off: the directory at the end of the ZIP archive is missing",
    ),
    Case(
        "escapes the control characters of a member's name, and shortens it",
        "a.zip",
        zipped({"../\x1b[31m\n\u202e" + "x" * 5000: b""}),
        "the archive member '../\\x1b[31m\\n\\u202ex…",
    ),
]
TAR = [
    Case("judges a tar archive", "a.tar", tarred(FILES), None, NOT_BLANK, {"members": 2}),
    Case("judges a gzipped tar archive", "a.tar.gz", tarred(FILES, compress=True), None, NOT_BLANK, {"members": 2}),
    Case(
        "judges a .tgz", "a.TGZ", tarred(FILES, compress=True), None, {"mime": "application/gzip"}, {"members": 2}
    ),
    Case(
        "judges an empty tar archive",
        "a.tar",
        tarred([]),
        "is blank: no member holds a byte",
        NOT_BLANK,
        {"members": 0},
    ),
    *[
        Case(
            f"refuses the tar member {name}",
            "a.tar",
            tarred([(name, b"x")]),
            f"the archive member '{name}' {OUTSIDE}",
        )
        for name in ("../x", "a/../../x", "/etc/x")
    ],
    Case("lets a link within a tar archive pass", "a.tar", tarred([tar_member("a/link", tarfile.SYMTYPE, "../b")])),
    Case(
        "refuses a link out of a tar archive",
        "a.tar",
        tarred([tar_member("a/link", tarfile.SYMTYPE, "../../b")]),
        "the link 'a/link' points outside the folder, to '../../b'",
    ),
    Case(
        "refuses an absolute link",
        "a.tar",
        tarred([tar_member("link", tarfile.SYMTYPE, "/etc/passwd")]),
        "the link 'link' points outside the folder, to '/etc/passwd'",
    ),
    Case(
        "refuses a link that climbs behind a name",
        "a.tar",
        tarred([tar_member("link", tarfile.SYMTYPE, "a/../..")]),
        "the link 'link' points outside the folder, to 'a/../..'",
    ),
    Case(
        "refuses a hard link out of a tar archive",
        "a.tar",
        tarred([tar_member("link", tarfile.LNKTYPE, "../shadow")]),
        f"the archive member '../shadow' {OUTSIDE}",
    ),
    Case(
        "refuses a tar member written through a link",
        "a.tar",
        tarred([tar_member("./link", tarfile.SYMTYPE, "a"), ("link//x", b"x")]),
        "the archive member 'link//x' would be written through a link",
    ),
    *[
        Case(
            f"refuses a {name} in a tar archive",
            "a.tar",
            tarred([tar_member("thing", kind)]),
            "the archive member 'thing' is a device or a pipe",
        )
        for name, kind in [
            ("device", tarfile.CHRTYPE),
            ("block device", tarfile.BLKTYPE),
            ("pipe", tarfile.FIFOTYPE),
        ]
    ],
    Case(
        "refuses a member that claims a terabyte",
        "a.tar",
        sparse_tar(10**12),
        "unpacks to 1,000,000,000,000 bytes, more than the 1,073,741,824 bytes that are checked",
    ),
    Case(
        "sees that a tar archive is cut off",
        "a.tar",
        tarred(FILES)[:2500],
        "is damaged or cut off: unexpected end of data",
    ),
    Case(
        "sees that a header in the middle is damaged",
        "a.tar",
        damaged_header(tarred(FILES)),
        "is damaged: what follows the archive's first 1 member is no header",
    ),
    Case(
        "sees that gzip data is cut off",
        "a.tgz",
        tarred(FILES, compress=True)[:-20],
        "is cut off: its gzip data ends too early",
    ),
    Case(
        "sees that gzip's checksum does not match",
        "a.tgz",
        tarred(FILES, compress=True)[:-8] + bytes(8),
        "is damaged: its gzip data does not unpack: …",
    ),
    Case("refuses a plain tar archive named .tgz", "a.tgz", tarred(FILES), "is not a gzipped tar archive: …"),
    Case(
        "refuses a gzipped archive named .tar",
        "a.tar",
        tarred(FILES, compress=True),
        "is not a tar archive: it is gzip data",
    ),
    Case("refuses an image named .tar", "a.tar", image("PNG"), "is not a tar archive: it is a PNG image"),
]
CASES = [*ZIP, *TAR]

MANY = zipped({f"{n}": b"" for n in range(11)})
NARROW = [
    Case("bounds the members of a ZIP archive", "a.zip", MANY, "has 11 members, more than the 10 that are checked"),
    Case(
        "bounds the members of a tar archive",
        "a.tar",
        tarred([(str(n), b"") for n in range(11)]),
        "has more than 10 members, the most that are checked",
    ),
    Case(
        "bounds what a ZIP archive unpacks to",
        "a.zip",
        zipped({"a": bytes(60_000), "b": bytes(60_000)}),
        "unpacks to 120,000 bytes, more than the 100,000 bytes that are checked",
    ),
    Case(
        "bounds what a tar archive says that it holds",
        "a.tgz",
        tarred([("a", bytes(200_000))], compress=True),
        "unpacks to 200,000 bytes, more than the 100,000 bytes that are checked",
    ),
    Case(
        "bounds what gzip data unpacks to behind the archive's end",
        "a.tgz",
        tarred([tar_member(str(n), tarfile.DIRTYPE) for n in range(9)], compress=True)
        + tarred([("z", bytes(200_000))], compress=True),
        "unpacks to more than 100,000 bytes, the most that are checked",
    ),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def narrow_verdicts(tmp_path_factory):
    return verdicts_of(NARROW, tmp_path_factory.mktemp("out"), members_max=10, unpacked_bytes_max=100_000)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_archive(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected


@pytest.mark.parametrize("case", NARROW, ids=lambda case: case.claim)
def test_archive_within_narrow_limits(case, narrow_verdicts):
    actual, expected = compared(narrow_verdicts[case.claim], case)
    assert actual == expected
