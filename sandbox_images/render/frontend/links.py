"""Which addresses a link of a file may have: the web, mail, telephones, and places beside the document."""

import re

SCHEMES = frozenset({"http", "https", "mailto", "tel"})
"""Anything else starts a program of the reader's computer (``ms-word:``), or opens a file of it."""

_BLANKS = re.compile("[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+")
_SCHEME = re.compile(r"([^/?#:]*):")


def safe_link(href: str) -> str | None:
    """The address as it may stand in a file; None if it must not.

    ``//host/x`` becomes ``https://host/x``: from a file on a disk it would lead to a Windows share.
    """
    bare = _BLANKS.sub("", href)
    if bare.startswith(("\\", "/\\")):
        return None
    if bare.startswith("//"):
        return f"https:{bare}"
    scheme = _SCHEME.match(bare)
    if scheme is None:
        return href.strip()
    return href.strip() if scheme[1].lower() in SCHEMES else None
