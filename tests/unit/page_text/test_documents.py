"""The program that takes the text out of office documents and PDFs, as the sandbox runs it."""

import datetime as dt
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import docx
import openpyxl
import pypdf
import pypdfium2
import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

PROGRAMS = Path(__file__).parents[3] / "sandbox_images"


def read(tmp_path, kind, data, *, characters_max=10_000, seconds=30.0):
    """What the program says of a document."""
    (tmp_path / "document").write_bytes(data)
    rows = [{"path": "document", "kind": kind}]
    request = tmp_path / "request.json"
    limits = {"characters_max": characters_max, "seconds_per_page": seconds}
    request.write_text(json.dumps({"pages": rows, "target": "out.json", **limits}))
    subprocess.run(
        [sys.executable, "-m", "page_text", str(request)],
        cwd=PROGRAMS,
        env={**os.environ, "OUT_DIR": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    [answer] = json.loads((tmp_path / "out.json").read_text())["pages"]
    return answer


def saved(document) -> bytes:
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def pdf(*pages: str) -> bytes:
    """A PDF of one line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, text in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents {5 + 2 * n} 0 R "
            "/Resources << /Font << /F 3 0 R >> >> >>"
        )
        drawn = f"BT /F 12 Tf 20 200 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    body = b"%PDF-1.4\n"
    starts = []
    for number, text in enumerate(objects, start=1):
        starts.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{start:010} 00000 n \n" for start in starts)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    return body + f"{end}<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n".encode()


def test_a_docx_gives_headings_lists_and_tables_in_their_order(tmp_path):
    document = docx.Document()
    document.add_heading("Report", 0)
    document.add_paragraph("All went well.")
    document.add_heading("Figures", 2)
    document.add_paragraph("one", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ["Name", "a|b", "Ann\nLee", "2"], strict=True):
        cell.text = text
    document.add_paragraph("The end.")

    answer = read(tmp_path, "docx", saved(document))

    assert answer["text"] == (
        "# Report\n\nAll went well.\n\n## Figures\n\n- one\n\n"
        "| Name | a\\|b |\n|---|---|\n| Ann Lee | 2 |\n\nThe end."
    )
    assert answer["truncated"] is False


def test_a_cell_that_covers_columns_is_shown_once(tmp_path):
    document = docx.Document()
    table = document.add_table(rows=1, cols=3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(0, 2).text = "x"

    assert "| wide | x |" in read(tmp_path, "docx", saved(document))["text"]


def test_a_workbook_gives_its_sheets_as_rows_and_formulas_without_a_value_as_they_are(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    sheet.append(["day", "amount", "note"])
    sheet.append([dt.date(2026, 1, 2), 1.5, None])
    sheet.append(
        [
            dt.datetime(2026, 1, 3, 4, 5),  # noqa: DTZ001 - a cell has no time zone
            "=B2*2",
            "two\nlines",
        ]
    )
    sheet["A60"] = "last"
    book.create_sheet("Empty")

    answer = read(tmp_path, "xlsx", saved(book))

    assert answer["text"] == (
        "## Sheet Sales\n\nday\tamount\tnote\n2026-01-02\t1.5\n2026-01-03 04:05:00\t=B2*2\ttwo lines\n\nlast\n\n"
        "## Sheet Empty"
    )


def test_a_deck_gives_its_slides_with_tables_charts_and_notes(tmp_path):
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Plan"
    first.placeholders[1].text = "Start"
    first.placeholders[1].text_frame.add_paragraph().text = "Deeper"
    first.placeholders[1].text_frame.paragraphs[1].level = 1
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    table = second.shapes.add_table(1, 2, 0, 0, Inches(2), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("EU", (1, 2))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(2), Inches(2), data)

    text = read(tmp_path, "pptx", saved(deck))["text"]

    assert text.startswith("## Slide 1: Plan\n\nStart\n  - Deeper\n\nNotes: Speak slowly.\n\n## Slide 2\n\n")
    assert "| a | b |\n|---|---|\n" in text
    assert "|  | EU |\n|---|---|\n| Q1 | 1.0 |\n| Q2 | 2.0 |" in text


def test_a_pdf_gives_its_pages_and_names_one_without_text(tmp_path):
    answer = read(tmp_path, "pdf", pdf("First page.", "", "Third page."))

    assert answer["text"] == (
        "## Page 1\n\nFirst page.\n\n## Page 2\n\n(no text on this page: it may be a picture)\n\n"
        "## Page 3\n\nThird page."
    )


def test_a_protected_pdf_is_an_error_that_names_the_password(tmp_path):
    writer = pypdf.PdfWriter(io.BytesIO(pdf("Secret.")))
    writer.encrypt("pass", algorithm="RC4-128")
    target = io.BytesIO()
    writer.write(target)

    assert "password" in read(tmp_path, "pdf", target.getvalue())["error"].lower()


@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx", "pdf"])
@pytest.mark.parametrize("data", [b"", b"PK", b"%PDF-1.7", b"\x00" * 1_000])
def test_a_damaged_document_is_an_error_of_its_own(tmp_path, kind, data):
    assert list(read(tmp_path, kind, data)) == ["error"]


def test_what_is_too_long_is_cut(tmp_path):
    book = openpyxl.Workbook()
    for number in range(3_000):
        book.active.append([f"row {number}", "x" * 20])

    answer = read(tmp_path, "xlsx", saved(book), characters_max=1_000)

    assert (len(answer["text"]) <= 1_000, answer["truncated"]) == (True, True)


def test_a_bomb_costs_its_time_and_no_more(tmp_path):
    source = io.BytesIO(saved(openpyxl.Workbook()))
    target = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            if item.filename != "xl/worksheets/sheet1.xml":
                new.writestr(item, old.read(item))
        row = "<row><c><v>1</v></c></row>" * 1_000
        with new.open("xl/worksheets/sheet1.xml", "w") as sheet:
            sheet.write(b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>')
            for _ in range(2_000):
                sheet.write(row.encode())
            sheet.write(b"</sheetData></worksheet>")

    assert read(tmp_path, "xlsx", target.getvalue(), characters_max=10**9, seconds=1) == {
        "error": "it could not be read within 1 s"
    }


def test_pdfium_reads_what_the_helper_writes():
    assert len(pypdfium2.PdfDocument(pdf("a", "b"))) == 2
