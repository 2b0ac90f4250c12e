"""Conversations for the views: messages, files in versions, documents, and names that attack a page."""

import io
from typing import Any
from urllib.parse import quote

import docx
import httpx
import openpyxl
import pptx

from tests.console.served import Served

HOSTILE_ID = '<img src=x onerror="window.hit=1">'
HOSTILE_NAME = '"><svg onload=window.hit=1>\u202egpj.csv'
HOSTILE_HTML = (
    "<h1>Report</h1><script>window.hit=1;top.hit=1</script><img src=x onerror='parent.hit=1'>"
    "<iframe srcdoc='<script>top.hit=1</script>'></iframe>"
)


class Seeder:
    """Fills a service over its API."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def say(self, conversation: str, text: str, turn: str = "turn_1") -> None:
        block = {"type": "user.prompt", "author": "user", "turn_id": turn, "text": text, "mime": "text/markdown"}
        self._sent("POST", f"{_path(conversation)}/timeline", json={"blocks": [block]})

    def attach(self, conversation: str, name: str, content: bytes) -> None:
        where = f"{_path(conversation)}/turns/turn_1/attachments/{quote(name, safe='')}"
        self._sent("PUT", where, content=content)

    def run(self, conversation: str, call: str, code: str, *promises: str) -> None:
        contract = [{"filename": name, "description": f"The file {name}"} for name in promises]
        params: dict[str, Any] = {"contract": contract} if contract else {"explore": True}
        self._served.call(code, conversation, call, **params)

    def _sent(self, method: str, path: str, **options: Any) -> None:
        key = self._served.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        answer = httpx.request(
            method, self._served.url + path, headers=headers, timeout=120, trust_env=False, **options
        )
        answer.raise_for_status()


def _path(conversation: str) -> str:
    return f"/v1/conversations/{quote(conversation, safe='')}"


def docx_of(text: str) -> bytes:
    document, written = docx.Document(), io.BytesIO()
    document.add_heading(text, 1)
    document.save(written)
    return written.getvalue()


def pptx_of(*titles: str) -> bytes:
    deck, written = pptx.Presentation(), io.BytesIO()
    for title in titles:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    deck.save(written)
    return written.getvalue()


def xlsx_of(*sheets: str) -> bytes:
    book, written = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name in sheets:
        book.create_sheet(name).append([f"cell of {name}", 12])
    book.save(written)
    return written.getvalue()
