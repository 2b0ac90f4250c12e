"""Download links: each is its own key to one version of one file, for a while and for one method.

A link carries a number, a time and a signature. What is signed is more than what is carried: method, tenant,
project, user, conversation, path and version, as the store has them under that number. So a link shows nobody
whose file it is, and a number that was changed names a file that was not signed.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proofbox.service.access_errors import LinkRefusedError
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.identity import ConversationKey

METHOD = "GET"


@dataclass(frozen=True, slots=True)
class LinkKey:
    """A key that signs links; the newest signs, all of them check.

    Attributes:
        id: stands in the links that it has signed.
        secret: 32 random bytes.
    """

    id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Link:
    """What stands in a link.

    Attributes:
        number: the version of a file, by the store's own count.
        expires: until when it works, in seconds since 1970.
        key: which key has signed it.
        signature: the signature, in hex.
    """

    number: int
    expires: int
    key: str
    signature: str


class DownloadLinks:
    """Makes and checks links.

    Args:
        keys: gives the keys that are in use, the newest first; never none.
        link_s: how long a link works.
        now: the time of day, in seconds since 1970: links outlive the process.
    """

    def __init__(self, keys: Callable[[], Sequence[LinkKey]], link_s: int, now: Callable[[], float]) -> None:
        self._keys = keys
        self._link_s = link_s
        self._now = now

    def make(self, scope: ConversationKey, artifact: StoredArtifact, number: int) -> Link:
        """A link to a version of a file."""
        key = self._keys()[0]
        expires = int(self._now()) + self._link_s
        return Link(number, expires, key.id, _signature(key, METHOD, scope, artifact, number, expires))

    def check(self, link: Link, method: str, scope: ConversationKey, artifact: StoredArtifact) -> None:
        """Lets a link pass that was made for this file and works now.

        Raises:
            LinkRefusedError: it was not, or no longer does.
        """
        for key in self._keys():
            if key.id == link.key:
                signature = _signature(key, method, scope, artifact, link.number, link.expires)
                if not hmac.compare_digest(signature.encode(), link.signature.encode()):
                    break
                if self._now() >= link.expires:
                    raise LinkRefusedError("the link has expired; ask for a new one")
                return
        raise LinkRefusedError(
            "the link is none that this service made, or was made for another method; ask for a new one"
        )


def _signature(
    key: LinkKey, method: str, scope: ConversationKey, artifact: StoredArtifact, number: int, expires: int
) -> str:
    who = scope.principal
    # A JSON list: no two different ones have the same text, whatever stands in the names.
    signed = json.dumps(
        [
            "proofbox link 1",
            method,
            who.tenant,
            who.project,
            who.user_type,
            who.user,
            scope.conversation_id,
            artifact.path.logical,
            artifact.version,
            artifact.sha256,
            number,
            expires,
        ]
    )
    return hmac.new(key.secret, signed.encode(), hashlib.sha256).hexdigest()
