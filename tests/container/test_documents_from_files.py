"""House templates and appended documents through the service: found in the conversation, used, or refused."""

import io
import json

import docx
import pptx
import pypdf
import pytest
from test_rendering_tools import Renderer

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

FILES = """
import docx, pptx
from docx.shared import RGBColor
from reportlab.pdfgen import canvas
d = docx.Document(); d.styles['Heading 1'].font.color.rgb = RGBColor(11, 110, 79)
d.sections[0].header.paragraphs[0].text = 'Larkfield'; d.add_paragraph('Old words')
d.save('files/House Style.docx')
p = pptx.Presentation(); p.slides.add_slide(p.slide_layouts[0]).shapes.title.text = 'Old words'
p.save('files/house.pptx')
c = canvas.Canvas('files/costs.pdf', pagesize=(420, 300)); c.drawString(80, 200, 'Cost page'); c.save()
from PIL import Image; Image.new('RGB', (40, 30), (0, 128, 0)).save('files/near.png')
open('files/part.md', 'w').write('# Appendix\\n\\n![near](near.png) see [[S:1]]')
"""
NAMES = ["House Style.docx", "house.pptx", "costs.pdf", "near.png", "part.md"]
SOURCE = {"sid": 1, "source_type": "web", "title": "The figures", "url": "https://figures.example/q"}


@pytest.fixture
def render(service):
    return Renderer(service)


async def made(render, call):
    call.conversation = render.conversation
    await call(FILES, NAMES, turn_id="turn_1")


@pytest.mark.parametrize("path", ["fi:turn_1.files/House Style.docx", "turn_1/files/House Style.docx"])
async def test_a_docx_has_the_looks_of_a_template_of_the_conversation(render, call, path):
    await made(render, call)
    response = await render("docx", "# Report\n\ntext", template=path)
    assert response.ret["warnings"] == []
    assert [line.physical_path for line in response.rehosted] == ["turn_1/files/House Style.docx"]
    document = docx.Document(io.BytesIO(await render.bytes_of(response)))
    assert [item.text for item in document.paragraphs if item.text] == ["Report", "text"]
    assert str(document.styles["Heading 1"].font.color.rgb) == "0B6E4F"
    assert document.sections[0].header.paragraphs[0].text == "Larkfield"


async def test_a_deck_has_the_size_and_layouts_of_a_template(render, call):
    await made(render, call)
    response = await render("pptx", "## One\n\n- a", format="markdown", template="turn_1/files/house.pptx")
    deck = pptx.Presentation(io.BytesIO(await render.bytes_of(response)))
    assert (deck.slide_width, len(deck.slide_layouts), len(deck.slides)) == (9_144_000, 11, 1)
    assert deck.slides[0].slide_layout.name == "Title and Content"


async def test_a_pdf_is_made_of_several_documents_with_their_pictures_and_sources(render, call):
    await made(render, call)
    merge = ["turn_1/files/costs.pdf", "fi:turn_1.files/part.md"]
    response = await render("pdf", "# Report", merge=merge, request={"sources_pool": [SOURCE]})
    assert response.ret["warnings"] == []
    assert response.ret["facts"]["pages"] == 3
    assert {"turn_1/files/near.png", "turn_1/files/part.md"} <= {line.physical_path for line in response.rehosted}
    reader = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response)))
    pages = [page.extract_text() for page in reader.pages]
    assert [word in text for word, text in zip(["Report", "Cost page", "Appendix"], pages, strict=True)] == [
        True
    ] * 3
    assert ("The figures" in pages[2], len(reader.pages[2].images)) == (True, 1)
    assert json.loads(response.blocks[1].text)["sources_used"] == [1]


async def test_documents_alone_need_no_content(render, call):
    await made(render, call)
    response = await render("pdf", "", merge=["turn_1/files/costs.pdf"] * 2)
    assert (response.ok, response.ret["facts"]["pages"]) == (True, 2)


@pytest.mark.parametrize(
    ("output", "params", "code", "words"),
    [
        (
            "docx",
            {"template": "turn_1/files/none.docx"},
            "invalid_template",
            "none.docx is not in the conversation",
        ),
        ("docx", {"template": "turn_1/files/house.pptx"}, "invalid_template", "is not a Word document"),
        ("pptx", {"template": "turn_1/files/House Style.docx"}, "invalid_template", "is not a PowerPoint file"),
        ("docx", {"merge": ["turn_1/files/costs.pdf"]}, "invalid_part", "merge[0]: costs.pdf is a PDF"),
        ("pdf", {"merge": ["turn_1/files/near.png"]}, "invalid_part", "merge[0]: near.png is neither Markdown"),
        ("pptx", {"slide_size": "9:1"}, "invalid_slide_size", "slide_size: '9:1' is not a size of slides"),
    ],
)
async def test_what_cannot_be_used_is_an_error_that_names_it(render, call, output, params, code, words):
    await made(render, call)
    response = await render(output, "# Report", **params)
    assert (response.ok, response.error.code, response.artifacts) == (False, code, [])
    assert words in response.error.message
