"""Packed files, arrays, sound and film, books, old and open office files, databases and fonts."""

import bz2
import gzip
import io
import lzma
import sqlite3
import struct
import tempfile
import wave
from contextlib import closing
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from inspector_run import Case, compared, verdicts_of
from inspector_samples import image, rezipped, tarred, zipped

NOT_BLANK = {"not_blank": True}
PNG = image("PNG")
TEXT = b"some text of a file\n" * 2_000


def npy(array, **how):
    out = io.BytesIO()
    np.save(out, array, **how)
    return out.getvalue()


def npz(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def npy_of_header(header, data=b"", version=1):
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


PACKED = [
    *[
        Case(f"unpacks .{name}", f"a.{name}", pack(TEXT), None, NOT_BLANK, {"unpacked_bytes": len(TEXT)})
        for name, pack in {
            "gz": gzip.compress,
            "csv.gz": gzip.compress,
            "bz2": bz2.compress,
            "xz": lzma.compress,
        }.items()
    ],
    Case("unpacks two members one behind the other", "a.gz", gzip.compress(b"a") * 2, facts={"unpacked_bytes": 2}),
    *[
        Case(f"refuses text named .{name}", f"a.{name}", b"text", f"is not {what}: it starts with 'text'")
        for name, what in {"gz": "a gzip file", "bz2": "a bzip2 file", "xz": "an xz file"}.items()
    ],
    Case("says what a PNG named .gz is", "a.gz", PNG, "is not a gzip file: it is a PNG image"),
    *[
        Case(f"sees that a .{name} is cut off", f"a.{name}", pack(TEXT)[:-9], f"is cut off: its {what} data ends …")
        for name, what, pack in [
            ("gz", "gzip", gzip.compress),
            ("bz2", "bzip2", bz2.compress),
            ("xz", "xz", lzma.compress),
        ]
    ],
    Case(
        "compares the checksum of a .gz",
        "a.gz",
        gzip.compress(TEXT)[:-8] + b"\0\0\0\0" + gzip.compress(TEXT)[-4:],
        "is damaged: its gzip data does not unpack: CRC check failed…",
    ),
    Case("sees that nothing is packed", "a.xz", lzma.compress(b""), "is blank: nothing is in it", NOT_BLANK),
    *[
        Case(
            f"reads a tar archive in a .{name}",
            f"a.{name}",
            pack(tarred([("a.txt", b"x")])),
            None,
            NOT_BLANK,
            {"members": 1},
        )
        for name, pack in {
            "tar.bz2": bz2.compress,
            "tbz2": bz2.compress,
            "tar.xz": lzma.compress,
            "txz": lzma.compress,
        }.items()
    ],
    Case(
        "sees that there is no tar archive in it",
        "a.tar.xz",
        lzma.compress(TEXT),
        "is not a tar archive packed by xz: there is no tar archive in its xz data",
    ),
    Case(
        "says what a PNG named .tar.xz is", "a.tar.xz", PNG, "is not a tar archive packed by xz: it is a PNG image"
    ),
]

ARRAY = np.arange(12, dtype="float32").reshape(3, 4)
ARRAYS = [
    Case("reads an array", "a.npy", npy(ARRAY), None, NOT_BLANK, {"shape": ["3", "4"]}),
    Case(
        "reads an array of records",
        "a.npy",
        npy(np.zeros(3, dtype=[("größe", "i4"), ("b", "U7")])),
        facts={"shape": ["3"]},
    ),
    Case("reads a single number", "a.npy", npy(np.float64(1.5)), None, NOT_BLANK, {"shape": []}),
    Case("does not unpickle an array of objects", "a.npy", npy(np.array([{}, 1], dtype=object))[:-1] + b"\xff"),
    Case(
        "sees an array that is cut off",
        "a.npy",
        npy(ARRAY)[:-1],
        "is cut off: its header asks for 48 bytes of data, it has 47",
    ),
    Case(
        "sees an array that is too long", "a.npy", npy(ARRAY) + b"x", "is damaged: its header asks for 48 bytes …"
    ),
    Case("refuses text named .npy", "a.npy", b"1,2,3", "is not a NumPy array: it starts with '1,2,3'"),
    Case("sees that an array is blank", "a.npy", npy(np.empty((0, 4))), "is blank: it has no element", NOT_BLANK),
    Case(
        "does not believe a shape of a quintillion",
        "a.npy",
        npy_of_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000,)}"),
        "is cut off: its header asks for 8,000,000,000,000,000,000 bytes of data, it has 0",
    ),
    *[
        Case(
            f"refuses the header {header[:40]}",
            "a.npy",
            npy_of_header(header),
            "is damaged: its header cannot be read",
        )
        for header in (
            "__import__('os')",
            "{}",
            "[1]",
            "{'descr': '<f8', 'shape': (-1,)}",
            "{'descr': 'odd', 'shape': ()}",
            "{'descr': '<f8', 'shape': 3}",
            "(" * 100,
        )
    ],
    Case(
        "refuses a header of a gigabyte",
        "a.npy",
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30),
        "has a header of …",
    ),
    Case(
        "refuses a header without its length",
        "a.npy",
        b"\x93NUMPY\x01\x00",
        "could not be opened as a NumPy array: …",
    ),
    Case("reads an archive of arrays", "a.npz", npz(x=ARRAY, y=ARRAY), None, NOT_BLANK, {"arrays": 2}),
    Case("refuses text named .npz", "a.npz", b"junk", "is not an archive of NumPy arrays: it starts with 'junk'"),
    Case(
        "refuses a ZIP archive without an array",
        "a.npz",
        zipped({"a": b"x"}),
        "is not an archive of NumPy arrays: it …",
    ),
    Case("names the array that is none", "a.npz", zipped({"x.npy": b"x"}), "the array 'x' is not a NumPy array"),
    Case(
        "names the array that is cut off",
        "a.npz",
        zipped({"x.npy": npy(ARRAY)[:-4]}),
        "the array 'x' is cut off: …",
    ),
    Case("refuses a ZIP bomb named .npz", "a.npz", zipped({"x.npy": bytes(200_000_000)}), "unpacks to …"),
]


def box(kind, content=b""):
    return struct.pack(">I", 8 + len(content)) + kind + content


def film(*boxes):
    return box(b"ftyp", b"isom\0\0\2\0isom") + b"".join(boxes)


def wav(seconds=0.1):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(b"\1\2" * int(8_000 * seconds))
    return out.getvalue()


MP3 = (b"\xff\xfb\x90\x00" + bytes(413)) * 3  # 128 kbit/s at 44.1 kHz: frames of 417 bytes
MEDIA = [
    Case("reads an MP4", "a.mp4", film(box(b"moov"), box(b"mdat", b"x" * 99)), None, NOT_BLANK),
    Case("reads an MP4 in fragments", "a.m4a", film(box(b"moof"), box(b"mdat", b"x"))),
    Case(
        "reads an MP4 with a large box",
        "a.mp4",
        film(box(b"moov"), b"\0\0\0\1mdat" + struct.pack(">Q", 20) + b"abcd"),
    ),
    Case("reads an MP4 whose last box goes to the end", "a.mp4", film(box(b"moov"), b"\0\0\0\0mdat" + b"x" * 9)),
    Case("reads an old QuickTime film", "a.mov", box(b"moov") + box(b"mdat", b"x")),
    Case(
        "refuses text named .mp4", "a.mp4", b"a film of text", "is not an MP4 file: it starts with 'a film of text'"
    ),
    Case(
        "sees that an MP4 is cut off",
        "a.mp4",
        film(box(b"moov"), box(b"mdat", b"x" * 99))[:-1],
        "is cut off or damaged: …",
    ),
    Case(
        "sees that a film was not finished", "a.mp4", film(box(b"mdat", b"x")), "is cut off: it has no moov box, …"
    ),
    Case(
        "sees a box of no length", "a.mp4", film(b"\0\0\0\2moov"), "is cut off or damaged: the box at offset 20 …"
    ),
    Case(
        "sees a film of nothing",
        "a.mp4",
        film(box(b"moov")),
        "is blank: it holds no sound and no picture",
        NOT_BLANK,
    ),
    Case("answers for a million boxes", "a.mp4", film(box(b"free") * 1_000_000), "has more than 100,000 boxes, …"),
    Case("reads a WAV", "a.wav", wav(), None, NOT_BLANK),
    Case(
        "reads a WAV of floating-point numbers",
        "a.wav",
        wav().replace(b"fmt \x10\0\0\0\1\0", b"fmt \x10\0\0\0\3\0"),
    ),
    Case("refuses text named .wav", "a.wav", b"la la la", "is not a WAV file: it starts with 'la la la'"),
    Case(
        "sees that a WAV is cut off",
        "a.wav",
        wav()[:-1],
        "is cut off: a part claims 1,600 bytes, and 1,599 are left",
    ),
    Case("sees that a WAV has no sound", "a.wav", wav()[:36], "is damaged: its part data is missing"),
    Case("sees a WAV of nothing", "a.wav", wav(0), "is blank: it holds no sound and no picture", NOT_BLANK),
    Case("reads an AVI", "a.avi", b"RIFF\x10\0\0\0AVI LIST\4\0\0\0abcd"),
    Case("tells a WAV from an AVI", "a.avi", wav(), "is not an AVI film: it starts …"),
    Case("reads an MP3", "a.mp3", MP3, None, NOT_BLANK),
    Case("reads an MP3 behind a tag", "a.mp3", b"ID3\4\0\0\0\0\1\2" + bytes(130) + MP3),
    Case("refuses text named .mp3", "a.mp3", b"la la la", "is not an MP3 file: it starts with 'la la la'"),
    Case(
        "sees a tag without sound", "a.mp3", b"ID3\4\0\0\0\0\0\2ab" + TEXT, "is damaged: no sound follows its tag"
    ),
    Case("does not take two bytes for a frame", "a.mp3", b"\xff\xfb\x90\x00" + TEXT, "is not an MP3 file: …"),
    Case("reads the head of a FLAC", "a.flac", b"fLaC\0\0\0\x22" + bytes(34), None, NOT_BLANK),
    Case("reads the head of an Ogg", "a.ogg", b"OggS" + bytes(40)),
    Case("reads the head of a WebM", "a.webm", b"\x1a\x45\xdf\xa3\x93\x42\x82\x84webm" + bytes(40)),
    Case(
        "tells a Matroska from a WebM",
        "a.mkv",
        b"\x1a\x45\xdf\xa3\x93\x42\x82\x84webm",
        "is not a Matroska film: its …",
    ),
    *[
        Case(f"refuses text named .{name}", f"b.{name}", b"junk", "is not a…")
        for name in ("flac", "ogg", "webm", "mkv", "avi")
    ],
]

CONTAINER = (
    b'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    b'<rootfile full-path="OEBPS/b.opf"/></rootfiles></container>'
)
PACKAGE = (
    b'<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
    b'<item href="p.xhtml" media-type="application/xhtml+xml"/></manifest></package>'
)
PAGE = b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body>%b</body></html>'
BOOK = zipped(
    {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/b.opf": PACKAGE,
        "OEBPS/p.xhtml": PAGE % b"<p>Words</p>",
    }
)
BOMB = b'<!DOCTYPE a [<!ENTITY b "c">]>'
BOOKS = [
    Case("reads a book", "a.epub", BOOK, None, NOT_BLANK),
    Case(
        "refuses a ZIP archive named .epub",
        "a.epub",
        zipped({"a": b"x"}),
        "is not an EPUB book: it is a ZIP archive …",
    ),
    Case("refuses text named .epub", "a.epub", b"a book", "is not an EPUB book: it starts with 'a book'"),
    Case(
        "refuses another type",
        "a.epub",
        rezipped(BOOK, {"mimetype": lambda _: b"x"}),
        "is not an EPUB book: its type is 'x'",
    ),
    Case(
        "sees that the container is missing",
        "a.epub",
        rezipped(BOOK, {"META-INF/container.xml": None}),
        "is damaged: …",
    ),
    Case(
        "sees that the package is missing",
        "a.epub",
        rezipped(BOOK, {"OEBPS/b.opf": None}),
        "is damaged: the part …",
    ),
    Case(
        "sees that there is no page",
        "a.epub",
        rezipped(BOOK, {"OEBPS/b.opf": lambda _: b"<a/>"}),
        "is not an EPUB …",
    ),
    Case(
        "sees that a book is blank",
        "a.epub",
        rezipped(BOOK, {"OEBPS/p.xhtml": lambda _: PAGE % b"<p> </p>"}),
        "is blank: none of its pages has text",
        NOT_BLANK,
    ),
    Case(
        "refuses entities in a book",
        "a.epub",
        rezipped(BOOK, {"OEBPS/b.opf": lambda part: BOMB + part}),
        "the part …",
    ),
]


def open_document(kind, body):
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    content = f'<o:document-content xmlns:o="{office}"><o:body>{body}</o:body></o:document-content>'
    return zipped(
        {"mimetype": f"application/vnd.oasis.opendocument.{kind}".encode(), "content.xml": content.encode()}
    )


ODT = open_document("text", "<p>Words</p>")
OPEN = [
    *[
        Case(f"reads an .{name}", f"a.{name}", open_document(kind, "<p>Words</p>"), None, NOT_BLANK)
        for name, kind in {"odt": "text", "ods": "spreadsheet", "odp": "presentation"}.items()
    ],
    Case(
        "tells an .ods from an .odt",
        "a.ods",
        ODT,
        "is not an OpenDocument spreadsheet: its type is 'application/vnd…",
    ),
    Case("refuses text named .odt", "a.odt", b"text", "is not an OpenDocument text: it starts with 'text'"),
    Case(
        "refuses content that is no XML", "a.odt", rezipped(ODT, {"content.xml": lambda _: b"<a>"}), "is damaged: …"
    ),
    Case(
        "sees that the content is missing", "a.odt", rezipped(ODT, {"content.xml": None}), "is damaged: the part …"
    ),
    Case(
        "sees that a text is blank",
        "a.odt",
        open_document("text", "<p/>"),
        "is blank: its body has neither …",
        NOT_BLANK,
    ),
    Case(
        "refuses entities",
        "a.odt",
        rezipped(ODT, {"content.xml": lambda part: BOMB + part}),
        "the part 'content.xml' …",
    ),
]
RTF = rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0 Gr\'fc\'dfe \{x\}\par}"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1_016)


def stream(name):
    return name.encode("utf-16-le").ljust(64, b"\0")


OLD = [
    Case("reads RTF", "a.rtf", RTF, None, NOT_BLANK),
    Case("refuses text named .rtf", "a.rtf", b"words", "is not an RTF document: it starts with 'words'"),
    Case("sees that RTF is cut off", "a.rtf", RTF[:-1], "is cut off or damaged: a group of it is not closed"),
    Case(
        "sees that RTF is blank",
        "a.rtf",
        rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0\par }",
        "is blank: it has …",
        NOT_BLANK,
    ),
    *[
        Case(f"reads the head of a .{name}", f"a.{name}", OLE + stream(part))
        for name, part in {"doc": "WordDocument", "xls": "Workbook", "ppt": "PowerPoint Document"}.items()
    ],
    Case(
        "tells a .doc from an .xls", "a.xls", OLE + stream("WordDocument"), "is not an old Excel workbook: it has …"
    ),
    Case(
        "refuses a page named .xls",
        "a.xls",
        b"<table></table>",
        "is not an old Excel workbook: it starts with '<table>…",
    ),
    Case(
        "sees that only a header is there", "a.doc", OLE[:600], "is cut off: only the header of the file is there"
    ),
]


def database(*statements):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        with closing(sqlite3.connect(path)) as opened:
            for statement in statements:
                opened.execute(statement)
            opened.commit()
        return path.read_bytes()


ROWS = database('CREATE TABLE "a""b" (x)', *['INSERT INTO "a""b" VALUES (hex(randomblob(500)))'] * 50)
DATABASES = [
    *[
        Case(f"reads a .{name}", f"a.{name}", ROWS, None, NOT_BLANK, {"tables": ['a"b']})
        for name in ("sqlite", "sqlite3", "db")
    ],
    Case("refuses text named .db", "a.db", b"rows", "is not an SQLite database: it starts with 'rows'"),
    Case("sees that a database is cut off", "a.db", ROWS[:8_192], "is damaged: …"),
    Case("sees a damaged page", "a.db", ROWS[:4_096] + bytes(200) + ROWS[4_296:], "is damaged: …"),
    Case("refuses a head of a database alone", "a.db", b"SQLite format 3\0" + bytes(900), "is damaged: …"),
    Case(
        "sees a database without rows",
        "a.db",
        database("CREATE TABLE a (x)"),
        "is blank: no table has a row",
        NOT_BLANK,
    ),
    Case(
        "runs no view of a database",
        "a.db",
        database(
            "CREATE TABLE a (x)",
            "CREATE VIEW b AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
        ),
    ),
]
TTF = (Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf").read_bytes()
FONTS = [
    Case("reads a font", "a.ttf", TTF),
    Case("reads a web font", "a.woff2", b"wOF2\0\1\0\0" + struct.pack(">I", 60) + bytes(48)),
    Case(
        "sees that a font is cut off",
        "a.ttf",
        TTF[:-500],
        "is cut off: a table of it lies behind the end of the file",
    ),
    Case("sees that a directory is cut off", "a.otf", TTF[:40], "is cut off: its directory of tables is not whole"),
    Case(
        "sees that a web font is cut off",
        "a.woff",
        b"wOFF\0\1\0\0" + struct.pack(">I", 60),
        "is cut off or damaged: …",
    ),
    *[
        Case(f"refuses text named .{name}", f"c.{name}", b"junk", "is not a…")
        for name in ("ttf", "otf", "woff", "woff2")
    ],
]
CASES = [*PACKED, *ARRAYS, *MEDIA, *BOOKS, *OPEN, *OLD, *DATABASES, *FONTS]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_packed(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected


@pytest.mark.parametrize(("name", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_a_bomb_is_unpacked_no_further_than_the_bound(name, pack, tmp_path):
    bomb = Case(
        "bomb", f"a.{name}", pack(bytes(50_000_000)), "unpacks to more than 1,000,000 bytes, the most that …"
    )
    actual, expected = compared(verdicts_of([bomb], tmp_path, unpacked_bytes_max=1_000_000)["bomb"], bomb)
    assert actual == expected
