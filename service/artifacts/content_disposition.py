"""The Content-Disposition (RFC 6266) and Content-Type headers of a file."""

import re
from urllib.parse import quote

from proofbox.contracts.media_types import OCTET_STREAM, is_mime
from proofbox.service.visible_text import without_hidden

# Control characters end a header; quotes and backslashes end its text; % is read as an escape by some browsers.
_NOT_PLAIN = re.compile(r'[^\x20-\x7e]|["\\%]')
# RFC 8187's attr-char; what stands here besides letters and digits may stay as it is.
_ATTR_CHARS = "!#$&+-.^_`|~"


def media_type(mime: str) -> str:
    """A media type that can stand in a header: the given one if it is one."""
    return mime if is_mime(mime) else OCTET_STREAM


def content_disposition(name: str) -> str:
    """``attachment`` with a file name (RFC 6266): an ASCII one for old clients, the real one beside it."""
    shown = without_hidden(name, "_")  # a shown name must not read as another one
    plain = _NOT_PLAIN.sub("_", shown)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(shown, safe=_ATTR_CHARS)}"
