"""Upload links: each stores one version of one attachment of one conversation, for a while, up to a size.

A link is an encrypted and authenticated token (AES-256-GCM), so it shows nobody whose conversation it is, and the
service stores nothing until the file arrives.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import astuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from proofbox.service.access.quotas import Allowances
from proofbox.service.access_errors import LinkRefusedError
from proofbox.service.artifacts.attachments import UploadTarget, parse_attachment_path
from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.identity import ConversationKey, Principal

_PURPOSE = b"proofbox upload link 2"
_NONCE_BYTES = 12
_TOKEN_CHARS_MAX = 4_096


class UploadLinks:
    """Creates and reads the tokens of upload links.

    Args:
        keys: returns the keys that are in use, the newest first; never empty.
        link_s: how long a link works.
        now: the time of day, in seconds since 1970: links outlive the process.
    """

    def __init__(self, keys: Callable[[], Sequence[LinkKey]], link_s: int, now: Callable[[], float]) -> None:
        self._keys = keys
        self.link_s = link_s
        self._now = now

    def make(self, target: UploadTarget) -> str:
        """Return the token of a new link.

        Raises:
            UnsafeNameError: the name is not allowed.
        """
        parse_attachment_path(target.turn_id, target.name)
        key = self._keys()[0]
        who = target.scope.principal
        fields = [
            int(self._now()) + self.link_s,
            *(who.tenant, who.project, who.user_type, who.user, who.key_id),
            *(target.scope.conversation_id, target.turn_id, target.name),
            *(target.bytes_max, target.stored_bytes_max, target.replaces, astuple(target.own)),
        ]
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = _cipher(key).encrypt(nonce, json.dumps(fields).encode(), key.id.encode())
        return f"{key.id}.{_encode(nonce + sealed)}"

    def check(self, token: str) -> UploadTarget:
        """Return what a token lets its holder store.

        Raises:
            LinkRefusedError: it was not made by this service, was changed, or has expired.
        """
        key_id, _, text = token.partition(".")
        if len(token) <= _TOKEN_CHARS_MAX:
            for key in self._keys():
                if hmac.compare_digest(key.id.encode(), key_id.encode()):
                    return self._opened(key, text)
        raise _refused()

    def _opened(self, key: LinkKey, text: str) -> UploadTarget:
        try:
            sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            if _encode(sealed) != text:  # the last character has bits that no byte uses
                raise _refused()
            opened = _cipher(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], key.id.encode())
        except (binascii.Error, InvalidTag, ValueError) as exc:
            raise _refused() from exc
        expires, tenant, project, user_type, user, key_id, conversation, turn_id, name, *sizes, own = json.loads(
            opened
        )
        if self._now() >= expires:
            raise LinkRefusedError("link: it has expired; request a new one")
        scope = ConversationKey(Principal(tenant, project, user_type, user, key_id), conversation)
        size, stored, replaces = sizes
        return UploadTarget(scope, turn_id, name, size, stored, replaces, Allowances(*own))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _refused() -> LinkRefusedError:
    return LinkRefusedError("link: invalid upload link; request a new one")


def _cipher(key: LinkKey) -> AESGCM:
    """The cipher of upload links: its key is derived, so that no signature of a download link opens one."""
    return AESGCM(hmac.new(key.secret, _PURPOSE, hashlib.sha256).digest())
