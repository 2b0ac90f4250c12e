"""Password and permissions of a PDF: it is encrypted with AES-256 once it is written."""

import io
import secrets
from pathlib import Path
from typing import Any

from pypdf import PdfWriter
from pypdf.constants import UserAccessPermissions
from render.model import RenderError

_BITS = {
    "print": UserAccessPermissions.PRINT | UserAccessPermissions.PRINT_TO_REPRESENTATION,
    "copy": UserAccessPermissions.EXTRACT,
    "modify": UserAccessPermissions.MODIFY,
    "annotate": UserAccessPermissions.ADD_OR_MODIFY,
    "fill_forms": UserAccessPermissions.FILL_FORM_FIELDS,
    "assemble": UserAccessPermissions.ASSEMBLE_DOC,
}
PASSWORD_CHARACTERS_MAX = 127


def protect(path: str, options: dict[str, Any], variant: str) -> None:
    """Encrypt a PDF in place if its request has a password or permissions.

    Programs that read aloud may always take its text, as PDF/UA wants. The password that would lift the permissions
    is random and nobody's.

    Raises:
        RenderError: ``invalid_option``: the variant is one for archives, or a permission is none.
    """
    password, permissions = options.get("password") or "", options.get("permissions")
    if not password and permissions is None:
        return
    if variant.startswith("pdf/a"):
        raise RenderError("invalid_option", f"{variant} is never encrypted; leave password and permissions out.")
    allowed = set(_BITS) if permissions is None else {str(name) for name in permissions}
    if not allowed <= set(_BITS):
        raise RenderError("invalid_option", f"permissions are some of {', '.join(_BITS)}.")
    flags = UserAccessPermissions.all()
    for name, bits in _BITS.items():
        if name not in allowed:
            flags &= ~bits
    writer = PdfWriter(clone_from=io.BytesIO(Path(path).read_bytes()))
    owner = secrets.token_urlsafe(32)
    writer.encrypt(str(password)[:PASSWORD_CHARACTERS_MAX], owner, permissions_flag=flags, algorithm="AES-256")
    writer.write(path)
