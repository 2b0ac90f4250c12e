"""Names of hosted files: key, resource name and URI, as pure functions.

Two layouts meet here. The *key* is the protocol's. The *hosted name* is where the local store puts the file below
its folder of hosted files: the key behind ``<namespace>/<depth>/``. The namespace keeps a file and an attachment
apart that have one key; the depth (segments below the namespace) lets ``a`` be a file now and a folder later: all
files of one tree are equally deep, so that none of its folders can stand where another of its files goes.
"""

import hashlib
import re
import unicodedata
from urllib.parse import quote, unquote

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.identity import ConversationKey

# A segment of a path may have 255 bytes; a longer one has its beginning and a hash.
_PART_BYTES_MAX = 200
_HEAD_BYTES = 120
_HASH_HEX = 32
# The host of the file URI. No machine has this name, so no client opens the rest as a local path.
_SCHEME = "file://"
_PLACE = "proofbox/hosted/"
_CUT_ESCAPE = re.compile(r"%.?$")


def key_of(scope: ConversationKey, path: FilePath) -> str:
    """The key: ``cb/tenants/…/<turn>/<path below the namespace>``.

    What the operator named (tenant, project, user type, user) and the conversation are percent-encoded but for
    ``A-Z a-z 0-9 _ . @ -``, so each of them is exactly one safe segment.
    """
    who = scope.principal
    owner = f"cb/tenants/{_segment(who.tenant)}/projects/{_segment(who.project)}"
    spoken = f"{_segment(who.user_type)}/{_segment(who.user)}/{_segment(scope.conversation_id)}"
    return f"{owner}/attachments/{spoken}/{path.turn_id}/{path.rel}"


def rn_of(scope: ConversationKey, path: FilePath) -> str:
    """The resource name: ``ef:<tenant>:…:artifact:<path>``, a colon inside a part as ``%3A``."""
    who = scope.principal
    kind = "attachment" if path.namespace is Namespace.ATTACHMENTS else "file"
    parts = (
        "ef",
        who.tenant,
        who.project,
        "chatbot",
        kind,
        who.user,
        scope.conversation_id,
        path.turn_id,
        "artifact",
        path.rel,
    )
    return ":".join(part.replace(":", "%3A") for part in parts)


def hosted_name(scope: ConversationKey, path: FilePath) -> str:
    """Where the local store hosts the file, below its folder of hosted files."""
    depth = path.rel.count("/") + 1
    return f"{path.namespace.value}/{depth}/{key_of(scope, path)}"


def hosted_uri(name: str) -> str:
    """The URI of a hosted name: where the store's folder lies on the machine does not show in it."""
    return f"{_SCHEME}{_PLACE}{quote(name)}"


def hosted_name_in(uri: str) -> str | None:
    """Return the hosted name in a URI of this store, or None.

    The name is compared with stored names and never opened as a path; no stored name has ``..``.
    """
    if not uri.startswith(_SCHEME + _PLACE) or "?" in uri or "#" in uri:
        return None
    try:
        name = unquote(uri.removeprefix(_SCHEME + _PLACE), errors="strict")
    except UnicodeDecodeError:
        return None
    return unicodedata.normalize("NFC", name)


def _segment(text: str) -> str:
    encoded = quote(text, safe="@").replace("~", "%7E")
    if encoded in {"", ".", ".."}:
        # A lone percent sign cannot come out of the encoding, so an empty part has a unique name.
        return encoded.replace(".", "%2E") or "%"
    if len(encoded) <= _PART_BYTES_MAX:
        return encoded
    head = _CUT_ESCAPE.sub("", encoded[:_HEAD_BYTES])
    return f"{head}~{hashlib.sha256(text.encode()).hexdigest()[:_HASH_HEX]}"
