"""What the structure tree of a PDF needs for PDF/UA-1 that WeasyPrint's doesn't have: levels without gaps, list bodies."""

import re

import pydyf

_HEADING = re.compile(r"/H([1-6])")
_REFERENCE = re.compile(rb"(\d+) 0 R")


def mend_tags(pdf: pydyf.PDF) -> None:
    """Mends the tags of a PDF that is about to be written."""
    elements = [
        item for item in pdf.objects if isinstance(item, pydyf.Dictionary) and item.get("Type") == "/StructElem"
    ]
    _close_gaps(elements)
    for element in elements:
        if element["S"] == "/LI":
            _give_bodies(pdf, element)


def _close_gaps(elements: list[pydyf.Dictionary]) -> None:
    """Headings start at level 1 and skip none on the way down; elements are in the order of the document."""
    last = 0
    for element in elements:
        found = _HEADING.fullmatch(element["S"])
        if found:
            last = min(int(found[1]), last + 1)
            element["S"] = f"/H{last}"


def _give_bodies(pdf: pydyf.PDF, item: pydyf.Dictionary) -> None:
    """Puts what a list item holds beside its label into a body: other children are not allowed."""
    kids: list[bytes] = []
    body: pydyf.Dictionary | None = None
    for kid in item["K"]:
        match = _REFERENCE.fullmatch(kid) if isinstance(kid, bytes) else None
        child = pdf.objects[int(match[1])] if match else None
        if child is None or child.get("Type") != "/StructElem" or child["S"] in {"/Lbl", "/LBody"}:
            kids.append(kid)
            body = None
            continue
        if body is None:
            body = pydyf.Dictionary({**item, "S": "/LBody", "K": pydyf.Array([]), "P": item.reference})
            pdf.add_object(body)
            kids.append(body.reference)
        body["K"].append(kid)
        child["P"] = body.reference
    item["K"] = pydyf.Array(kids)
