"""Every rendered file is opened by programs that know nothing of our renderer, and compared with its source."""

import itertools
from collections import Counter

import pytest
import pytest_asyncio
from PIL import Image

from tests.container.golden_documents import DOCUMENTS, tokens
from tests.container.office_structure import docx_structure, pptx_structure, slide_places
from tests.container.page_pictures import differences, reference, sheet
from tests.container.pdf_structure import outline, pdf_structure
from tests.container.second_readers import ARCHIVED, ARCHIVES, FORMATS, WORKBOOK, rendered_and_read

# The first test waits for all renderings and all readers.
pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

EVERY = [f"{name}.{output}" for name in DOCUMENTS for output in FORMATS]
OFFICE = [name for name in EVERY if name.endswith((".docx", ".pptx"))]
PDFS = [name for name in EVERY if name.endswith(".pdf")]
DOCX = [name for name in EVERY if name.endswith(".docx")]
PPTX = [name for name in EVERY if name.endswith(".pptx")]
DECKS = [f"{name}.pptx" for name, document in DOCUMENTS.items() if document.slides]
# What stands ahead of list items and tasks; the source has its own signs for them.
MARKERS = frozenset("•◦▪✓☐☒☑")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def read(service, tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755)  # the readers' user comes through to its files
    return await rendered_and_read(service, folder)


def document_of(name):
    return DOCUMENTS[name.partition(".")[0]]


# ---- conformance ----


@pytest.mark.parametrize("name", [*OFFICE, WORKBOOK])
def test_the_open_xml_sdk_and_openxml_audit_find_nothing(read, name):
    assert read.found["ooxml"][name] == {"sdk": [], "audit": []}


@pytest.mark.parametrize("name", PDFS)
def test_a_pdf_conforms_to_pdf_ua_1(read, name):
    assert read.found["pdfua"][name] == []


@pytest.mark.parametrize("variant", ARCHIVES)
@pytest.mark.parametrize("name", ARCHIVED)
def test_a_pdf_conforms_to_pdf_a_on_request(read, name, variant):
    level = variant.removeprefix("pdf/a-")
    assert read.found["pdfa"][f"{name}.a-{level}.pdf"] == {"claims": level, "failures": []}


# ---- words ----


@pytest.mark.parametrize("name", [*PDFS, *OFFICE])
def test_second_readers_see_the_words_of_the_source_and_no_others(read, name):
    document = document_of(name)
    expected = tokens(document.text)
    lines = [f" {' '.join(tokens([line]))} " for line in document.text]
    seen = {reader: tokens([" ".join(read.words(name, reader))]) for reader in ("poppler", "pdfium")}
    streams = [f" {' '.join(words)} " for words in seen.values()]
    # A line is there if one of the two reads it in one piece: each of them has its trouble with some script.
    broken = [line for line in lines if not any(line in stream for stream in streams)]
    missing = min((Counter(expected) - Counter(words) for words in seen.values()), key=Counter.total)
    known = set(expected) | set(tokens([document.drawn])) | MARKERS
    extra = set.intersection(*({word for word in words if word not in known} for words in seen.values()))
    assert (broken, missing, {word for word in extra if not word.isdigit()}) == ([], Counter(), set())


# ---- structure ----


def items(found, document):
    """The list items that are the document's own: contents, notes and sources are lists in some formats."""
    texts = {text for _, _, text in document.lists}
    # The empty box of a task is drawn on a page, not written.
    return [(depth, marker or "o", text) for depth, marker, text in found.lists if text in texts]


def links(found):
    """A citation leads to its source at once or by way of the list of sources."""
    return sorted(set(found.links))


@pytest.mark.parametrize("name", DOCX)
def test_a_docx_has_the_structure_of_its_source(read, name):
    found, document = docx_structure(read.folder / name), document_of(name)
    assert (found.headings, found.tables) == (document.headings, document.tables)
    assert (items(found, document), links(found)) == (document.lists, document.links)
    assert found.formulas == document.formulas
    assert [alt for alt in found.alts if alt in document.alts] == document.alts


@pytest.mark.parametrize("name", PDFS)
def test_the_tags_of_a_pdf_have_the_structure_of_its_source(read, name):
    document = document_of(name)
    found = pdf_structure(read.folder / name, read.found["tags"][name])
    assert (found.headings, found.tables) == (document.headings, document.tables)
    assert (items(found, document), links(found)) == (document.lists, document.links)
    assert [alt for alt in found.alts if alt in document.alts] == document.alts
    assert "" not in found.alts


@pytest.mark.parametrize("name", PDFS)
def test_the_outline_of_a_pdf_is_its_headings(read, name):
    assert outline(read.folder / name) == document_of(name).headings


@pytest.mark.parametrize("name", PPTX)
def test_a_pptx_has_the_structure_of_its_source(read, name):
    found, document = pptx_structure(read.folder / name), document_of(name)
    assert (items(found, document), found.tables, links(found)) == (
        document.lists,
        document.tables,
        document.links,
    )
    assert [alt for alt in found.alts if alt in document.alts] == document.alts
    assert found.notes == document.notes


@pytest.mark.parametrize("name", DECKS)
def test_the_titles_of_a_deck_are_those_of_its_slides(read, name):
    assert pptx_structure(read.folder / name).slides == document_of(name).slides


def test_libreoffice_prints_every_cell_of_a_workbook(read):
    cells = [cell for table in document_of(WORKBOOK).tables for row in table for cell in row]
    seen = Counter(tokens([" ".join(read.words(WORKBOOK, "poppler"))]))
    assert Counter(tokens(cells)) - seen == Counter()


# ---- space ----


@pytest.mark.parametrize("name", PPTX)
def test_every_shape_lies_on_its_slide(read, name):
    (width, height), places = slide_places(read.folder / name)
    slack = 0.5
    outside = [
        place
        for place in places
        if place.box[0] < -slack
        or place.box[1] < -slack
        or place.box[2] > width + slack
        or place.box[3] > height + slack
    ]
    assert outside == []


@pytest.mark.parametrize("name", PPTX)
def test_as_libreoffice_draws_a_slide_no_word_leaves_its_shape_or_lies_on_another(read, name):
    _, places = slide_places(read.folder / name)
    # Fonts, hinting and line heights differ a little between programs.
    slack = 4
    astray, on_another = [], []
    for number, page in enumerate(read.found["convert"][name]["pages"]):
        homes = [place for place in places if place.slide == number]
        words = [(word, tuple(box)) for word, *box in page["boxes"]]
        for word, (left, top, right, bottom) in words:
            middle = (top + bottom) / 2
            inside = [
                place
                for place in homes
                if place.box[0] - slack <= left
                and right <= place.box[2] + slack
                and place.box[1] - slack <= middle <= place.box[3] + slack
            ]
            if not inside:
                astray.append((number + 1, word))
        on_another += [
            (number + 1, one, other)
            for (one, first), (other, second) in itertools.combinations(words, 2)
            if _shared(first, second) > 0.25
        ]
    assert (astray, on_another) == ([], [])


def _shared(one, other):
    """How much of the smaller box lies in the other one, from 0 to 1."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return max(width, 0) * max(height, 0) / smaller if smaller else 0


# ---- pictures ----


@pytest.mark.parametrize("name", [f"{name}.png" for name in DOCUMENTS])
def test_pillow_opens_a_png_of_the_asked_width_that_shows_something(read, name):
    with Image.open(read.folder / name) as picture:
        picture.load()
        width, height = picture.size
        darkest, lightest = picture.convert("L").getextrema()
    assert (width // 2 <= 1280 + 2 * 32, height > 400, lightest - darkest > 100) == (True, True, True)


def test_a_heading_that_vanishes_or_changes_its_colour_changes_the_picture(read):
    shown = sheet(read.folder / "report.pdf")
    without = shown.copy()
    without.paste("white", (20, 10, 140, 36))
    red = shown.copy()
    red.paste(
        Image.composite(
            Image.new("RGB", (120, 26), "#b03030"),
            shown.crop((20, 10, 140, 36)),
            shown.crop((20, 10, 140, 36)).convert("L").point(lambda light: 255 if light < 128 else 0),
        ),
        (20, 10),
    )
    assert (bool(differences(without, shown)), bool(differences(red, shown)), differences(shown, shown)) == (
        True,
        True,
        [],
    )


@pytest.mark.parametrize("name", [*EVERY, WORKBOOK])
def test_a_page_looks_as_its_golden_picture(read, name):
    shown = sheet(read.printed / f"{name}.pdf" if name in [*OFFICE, WORKBOOK] else read.folder / name)
    assert differences(reference(name, shown), shown) == []
