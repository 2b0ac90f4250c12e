"""What PDF/UA and PDF/A ask for and WeasyPrint's tagged PDF lacks; validators look at whole files elsewhere."""

import re
import zlib
from pathlib import Path

import pydyf
import pypdf
from PIL import Image
from pypdf.generic import DictionaryObject
from render.__main__ import render
from render.paged.pdf_ua import mend
from render.request import request_of


def tags(tmp_path: Path, content: str, source_format="markdown", **fields):
    """The reader of the PDF, and its tags with their children, in order."""
    request = {"output": "pdf", "source_format": source_format, "content": content, "root": str(tmp_path)}
    answer = render(request_of({**request, "target": "a.pdf", **fields}))
    assert answer["ok"], answer
    reader = pypdf.PdfReader(tmp_path / "a.pdf")
    found = []

    def walk(element):
        children = [child.get_object() for child in element.get("/K", [])]
        found.append((element, [child for child in children if isinstance(child, DictionaryObject)]))
        for child in found[-1][1]:
            walk(child)

    walk(reader.root_object["/StructTreeRoot"]["/K"][0].get_object())
    return reader, found


def test_a_list_item_holds_a_label_and_a_body_whatever_is_in_it(tmp_path):
    _, found = tags(
        tmp_path, "1. a\n\n   b\n\n2. c\n   - d\n\ntext[^1]\n\n[^1]: e [f](https://f.example)\n\n    g\n"
    )
    items = [[child["/S"] for child in children] for element, children in found if element.get("/S") == "/LI"]
    assert items == [["/Lbl", "/LBody"]] * 4


def test_the_parent_of_every_tag_is_the_one_that_holds_it(tmp_path):
    _, found = tags(tmp_path, "1. a\n\n   b\n\n2. c\n\ntext[^1]\n\n[^1]: d\n")
    wrong = [
        child["/S"]
        for element, children in found
        for child in children
        if "/S" in child and child["/P"].get_object() is not element
    ]
    assert wrong == []


def test_the_annotation_of_a_link_is_in_the_tag_of_a_link(tmp_path):
    content = '<p><a href="https://a.example/">b <span style="display:inline-block">c</span></a></p>'
    _, found = tags(tmp_path, content, "html")
    holders = [element["/S"] for element, children in found for child in children if child.get("/Type") == "/OBJR"]
    assert holders == ["/Link", "/Link"]


def test_every_glyph_has_a_character(tmp_path):
    reader, _ = tags(tmp_path, "हिन्दी दुनिया")
    maps = [font.get_object()["/ToUnicode"].get_data() for font in reader.pages[0]["/Resources"]["/Font"].values()]
    assert (b"<2060>" in b"".join(maps), [mapped for mapped in maps if b"<>" in mapped]) == (True, [])


def test_a_drawing_has_its_label_as_alternative_text_and_decoration_is_no_figure(tmp_path):
    Image.new("RGB", (8, 8), "red").save(tmp_path / "dot.png")
    shape = '<rect width="9" height="9"/>'
    _, found = tags(
        tmp_path,
        f'<p><svg width="9" height="9" aria-label="A leaf">{shape}</svg><svg width="9" height="9">{shape}</svg>'
        '<img src="dot.png" alt=""><img src="dot.png" alt="A dot"></p>',
        source_format="html",
    )
    assert [element["/Alt"] for element, _ in found if element.get("/S") == "/Figure"] == ["A leaf", "A dot"]


def test_pictures_of_an_archive_are_not_smoothed(tmp_path):
    reader, _ = tags(tmp_path, "rocket 🚀", options={"pdf_variant": "pdf/a-2b"})
    images = [image.get_object() for image in reader.pages[0]["/Resources"]["/XObject"].values()]
    assert [image.get("/Interpolate") for image in images if image["/Subtype"] == "/Image"] == [False]


def test_no_stream_of_an_archive_ends_as_a_line_does():
    pdf = pydyf.PDF()
    # The last byte of compressed data is that of a sum of the content: for a form feed it is a return.
    stream = pydyf.Stream([b"\f"], compress=True)
    pdf.add_object(stream)
    before = stream.data.endswith(b"\r\nendstream")
    mend(pdf, archive=True)
    body = stream.data.split(b"\nstream\n", 1)[1].removesuffix(b"\nendstream")
    length = int(re.search(rb"/Length (\d+)", stream.data)[1])
    assert (before, body.endswith(b"\r"), length, zlib.decompressobj().decompress(body)) == (
        True,
        False,
        len(body),
        b"\f",
    )
