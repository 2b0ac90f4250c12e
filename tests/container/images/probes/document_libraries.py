"""Does one small job with each library for documents and pages and prints what comes out."""
# ruff: noqa: T201 -- what a probe prints is its answer

import json
import struct

import docx
import docxtpl
import jinja2
import pdfplumber
import requests
import xlrd
from bs4 import BeautifulSoup
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table


def made_and_read_pdf() -> list[object]:
    style = getSampleStyleSheet()["Normal"]
    page = [
        Paragraph("Total: 42", style),
        Table([["a", "b"], ["1", "2"]], style=[("GRID", (0, 0), (-1, -1), 1, "black")]),
    ]
    SimpleDocTemplate("/out/a.pdf", pagesize=A4).build(page)
    with pdfplumber.open("/out/a.pdf") as pdf:
        return [pdf.pages[0].extract_text().splitlines()[0], pdf.pages[0].extract_table()]


def filled_template() -> str:
    document = docx.Document()
    document.add_paragraph("Dear {{ name }}")
    document.save("/out/template.docx")
    template = docxtpl.DocxTemplate("/out/template.docx")
    template.render({"name": "Ada"})
    template.save("/out/letter.docx")
    return docx.Document("/out/letter.docx").paragraphs[0].text


def request_without_network() -> str:
    """A program that is ready for a missing network catches this class."""
    try:
        requests.get("https://example.com", timeout=5)
    except requests.exceptions.ConnectionError:
        return "ConnectionError"
    return "answered"


def old_workbook() -> float:
    """A sheet of Excel 2 with one whole number in its first cell: records of type, length and content."""
    begin, number, end = struct.pack("<2H", 2, 16), struct.pack("<2H3xH", 0, 0, 42), b""
    records = ((0x09, begin), (0x02, number), (0x0A, end))
    content = b"".join(struct.pack("<2H", kind, len(data)) + data for kind, data in records)
    return xlrd.open_workbook(file_contents=content).sheet_by_index(0).cell_value(0, 0)


print(
    json.dumps(
        {
            "pdf": made_and_read_pdf(),
            "docx": filled_template(),
            "html": [link["href"] for link in BeautifulSoup("<a href='/x'>x</a>", "lxml").find_all("a")],
            "template": jinja2.Template("{% for n in range(3) %}{{ n }};{% endfor %}").render(),
            "requests": request_without_network(),
            "xls": old_workbook(),
        }
    )
)
