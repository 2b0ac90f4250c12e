"""Pictures in headers and footers, as large as a logo."""

import pypdf
from docx_reading import png, written
from page_looks import codes, rendered, shows

LINE = {"left": "![Acme](logo.png) Acme {page}", "right": "right"}


def test_a_picture_of_a_header_is_on_each_page_of_a_pdf(tmp_path):
    (tmp_path / "logo.png").write_bytes(png(400, 100))
    source = "one\n\n\\newpage\n\ntwo"
    answer, file = rendered(tmp_path, source, source_format="markdown", options={"header": LINE})
    assert (codes(answer), shows(file, "#3366aa", 0), shows(file, "#3366aa", 1)) == ([], True, True)
    assert "Acme 2" in " ".join(pypdf.PdfReader(file).pages[1].extract_text().split())


def test_a_drawing_of_a_footer_is_shown(tmp_path):
    square = '<rect width="40" height="40" fill="#0b6e4f"/>'
    (tmp_path / "a.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40">{square}</svg>')
    _, file = rendered(tmp_path, "one", source_format="markdown", options={"footer": "![](a.svg)"})
    assert shows(file, "#0b6e4f")


def test_a_picture_of_a_header_is_in_the_part_of_a_docx(tmp_path):
    (tmp_path / "logo.png").write_bytes(png(400, 100))
    made = written("one", tmp_path, options={"header": LINE})
    header = made.opened.sections[0].header
    (shape,) = header._element.xpath(".//wp:extent")
    assert (round(int(shape.get("cx")) / 9525), round(int(shape.get("cy")) / 9525)) == (120, 30)
    assert "".join(header._element.xpath(".//w:t/text()")).startswith(" Acme ")
    assert made.result["images"] == 0


def test_a_picture_that_cannot_be_had_leaves_its_words_and_a_warning(tmp_path):
    answer, file = rendered(tmp_path, "one", source_format="markdown", options={"header": "![Gone](no.png)!"})
    assert ("Gone!" in pypdf.PdfReader(file).pages[0].extract_text(), codes(answer)) == (True, ["missing_asset"])
    made = written("one", tmp_path, options={"header": "![Gone](no.png)!"})
    assert made.opened.sections[0].header.paragraphs[0].text == "Gone!"
