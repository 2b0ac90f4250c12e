"""The fields of operations on PDFs, as steps of the program that carries them out."""

import re
import secrets
from typing import Any

from proofbox.service.facades.gotenberg.fields import FieldReader

_PERMISSIONS = (
    "allowPrinting",
    "allowCopying",
    "allowModifying",
    "allowAnnotating",
    "allowFillingForms",
    "allowAssembling",
)
_PASSWORD_CHARS_MAX = 127
_METADATA_MAX = 100
_METADATA_CHARS_MAX = 1_000
_BOOKMARKS_MAX = 10_000
_BOOKMARK_DEPTH_MAX = 16
_METADATA_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_TRAPPED = ("True", "False", "Unknown")
_NO_MARKS = "this service puts no watermark or stamp on PDFs"
_NO_NETWORK = "this service has no outgoing network"
Step = dict[str, Any]


def refuse_unsupported(reader: FieldReader) -> None:
    """Refuses what no route carries out: watermarks, stamps, Factur-X, optimisation, downloads."""
    for kind in ("watermark", "stamp"):
        for part in ("Source", "Expression", "Pages", "Options"):
            reader.refuse_if_given(f"{kind}{part}", _NO_MARKS)
    for name in ("facturxConformanceLevel", "facturxDocumentType", "facturxVersion"):
        reader.refuse_if_given(name, "this service makes no Factur-X invoices")
    for name in ("optimizeImages", "imageQuality", "linearize"):
        reader.refuse_if_given(name, "this service does not optimise PDFs", "false")
    reader.refuse_if_given("embedsMetadata", "embedded files have no metadata here", "{}")
    reader.refuse_if_given("downloadFrom", _NO_NETWORK, "[]")
    for file in reader.form.files:
        if file.field in {"watermark", "stamp", "facturxXml"}:
            reader.refuse(f"form file '{file.field}' is invalid (this service does not use it; leave it out)")


def refuse_standards(reader: FieldReader) -> None:
    """Refuses what would make a PDF/A or PDF/UA of a finished PDF."""
    why = "only documents that are converted from HTML or Markdown can be PDF/A or PDF/UA"
    reader.refuse_if_given("pdfa", why)
    reader.refuse_if_given("pdfua", why, "false")


def changing_steps(reader: FieldReader) -> list[Step]:
    """The steps after the operation of a route, in their order."""
    steps = [
        *([{"do": "flatten"}] if reader.boolean("flatten") else []),
        *rotating_steps(reader, required=False),
        *metadata_steps(reader, required=False),
        *([{"do": "embed"}] if reader.embeds() else []),
    ]
    return steps + encrypting_steps(reader, required=False)


def splitting_steps(reader: FieldReader, *, required: bool) -> list[Step]:
    """The step of ``splitMode``."""
    mode = reader.choice("splitMode", "", ("intervals", "pages"), required=required)
    unify = reader.boolean("splitUnify")
    if not mode:
        if required:
            reader.require_field("splitSpan")
        elif reader.text("splitSpan"):
            reader.refuse("form field 'splitSpan' is invalid (it needs 'splitMode'; send both)")
        return []
    if not reader.require_field("splitSpan"):
        return []
    if mode == "intervals":
        return [{"do": "split", "mode": mode, "span": reader.integer("splitSpan", 1, 1, 999_999), "unify": False}]
    return [{"do": "split", "mode": mode, "span": reader.text("splitSpan")[:1_000], "unify": unify}]


def rotating_steps(reader: FieldReader, *, required: bool) -> list[Step]:
    """The step of ``rotateAngle``."""
    pages = reader.text("rotatePages")[:1_000]
    if required and not reader.require_field("rotateAngle"):
        return []
    angle = reader.choice("rotateAngle", "", ("90", "180", "270"))
    return [{"do": "rotate", "angle": int(angle), "pages": pages}] if angle else []


def encrypting_steps(reader: FieldReader, *, required: bool) -> list[Step]:
    """The step of ``userPassword``, ``ownerPassword`` and the permissions."""
    user, owner = reader.text("userPassword"), reader.text("ownerPassword")
    permissions = {name: reader.boolean(name, default=True) for name in _PERMISSIONS}
    if required:
        reader.require_field("userPassword")
    for name, password in (("userPassword", user), ("ownerPassword", owner)):
        if len(password) > _PASSWORD_CHARS_MAX:
            reader.refuse(f"form field '{name}' is invalid (it has more than {_PASSWORD_CHARS_MAX} characters)")
    if not user and not owner:
        for name in (name for name, allowed in permissions.items() if not allowed):
            reader.refuse(f"form field '{name}' is invalid (it needs 'userPassword' or 'ownerPassword'; send one)")
        return []
    if not owner and not all(permissions.values()):
        owner = secrets.token_urlsafe(32)  # or the password that opens the PDF would lift its permissions too
    return [{"do": "encrypt", "user": user, "owner": owner, "permissions": permissions}]


def metadata_steps(reader: FieldReader, *, required: bool) -> list[Step]:
    """The step of ``metadata``."""
    values = read_metadata(reader, required=required)
    return [{"do": "metadata", "metadata": values}] if values else []


def read_metadata(reader: FieldReader, *, required: bool = False) -> dict[str, Any]:
    """The metadata of the form; empty if there are none or they are wrong."""
    if required and not reader.require_field("metadata"):
        return {}
    values: dict[str, Any] | None = reader.json("metadata", (dict,), 'an object such as {"Title": "Report"}')
    if values is None:
        return {}
    if len(values) > _METADATA_MAX:
        reader.refuse(f"form field 'metadata' is invalid (it has more than {_METADATA_MAX} names; send fewer)")
    for name, value in values.items():
        if _METADATA_NAME.fullmatch(name) is None:
            reader.refuse(f"form field 'metadata' is invalid ('{name[:64]}' is not a name of letters and digits)")
        elif name == "Trapped" and value not in _TRAPPED:
            reader.refuse("form field 'metadata' is invalid (Trapped is 'True', 'False' or 'Unknown')")
        elif not _is_plain(value):
            reader.refuse(
                f"form field 'metadata' is invalid ({name} is not a text, number, boolean or list of texts of at "
                f"most {_METADATA_CHARS_MAX} characters)"
            )
    return values


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value) and sum(map(len, value)) <= _METADATA_CHARS_MAX
    return isinstance(value, str | int | float | bool) and len(str(value)) <= _METADATA_CHARS_MAX


def bookmark_steps(reader: FieldReader, *, required: bool) -> list[Step]:
    """The step of ``bookmarks``."""
    given = read_bookmarks(reader, required=required)
    return [] if given is None else [{"do": "bookmarks", "bookmarks": given}]


def read_bookmarks(reader: FieldReader, *, required: bool) -> Any:
    """The bookmarks of the form: a list, or lists by file name; None if there are none or they are wrong."""
    if required and not reader.require_field("bookmarks"):
        return None
    given = reader.json("bookmarks", (list, dict), 'a list such as [{"title": "Index", "page": 1}]')
    if given is None:
        return None
    lists = given.values() if isinstance(given, dict) else [given]
    left = [_BOOKMARKS_MAX]
    if not all(_are_bookmarks(rows, left, 0) for rows in lists):
        reader.refuse(
            "form field 'bookmarks' is invalid (each bookmark is an object with 'title', a text, 'page', a number "
            f"from 1, and optionally 'children'; at most {_BOOKMARKS_MAX}, {_BOOKMARK_DEPTH_MAX} deep)"
        )
        return None
    return given


def _are_bookmarks(rows: Any, left: list[int], depth: int) -> bool:
    if rows is None:
        return True
    if not isinstance(rows, list) or depth > _BOOKMARK_DEPTH_MAX:
        return False
    left[0] -= len(rows)
    return left[0] >= 0 and all(
        isinstance(row, dict)
        and isinstance(row.get("title"), str)
        and isinstance(row.get("page"), int)
        and _are_bookmarks(row.get("children"), left, depth + 1)
        for row in rows
    )
