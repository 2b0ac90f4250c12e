"""The tokens with which LibreChat signs requests: a JWT for each user, verified with LibreChat's public key."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from proofbox.service.access.api_keys import USUAL_PERMISSIONS
from proofbox.service.access.authenticator import Caller
from proofbox.service.access.quotas import Allowances
from proofbox.service.access_errors import NotAuthenticatedError
from proofbox.service.identity import Principal

CLOCK_SKEW_S = 30
LIFETIME_S_MAX = 300
TENANT_DEFAULT = "legacy"
USER_TYPE = "librechat"
_REQUIRED = ["iss", "aud", "sub", "iat", "nbf", "exp", "jti"]
_JTI_CHARS_MAX = 256
_RSA_BITS_MIN = 2048
_NAME = re.compile(r"[A-Za-z0-9_.@:+-]{1,128}")
_SEGMENTS = 3
PublicKey = Ed25519PublicKey | RSAPublicKey


def is_token(secret: str) -> bool:
    """Whether a bearer token has the form of a JWT; an API key has no dots."""
    return secret.count(".") == _SEGMENTS - 1


@dataclass(frozen=True, slots=True)
class TokenVerifier:
    """Verifies tokens.

    Attributes:
        keys: the public keys by their ids; the empty id: a key for tokens of any id.
        issuer: the issuer of valid tokens.
        audience: their audience.
        project: the project of their users.
    """

    keys: Mapping[str, PublicKey]
    issuer: str
    audience: str
    project: str

    def caller_of(self, token: str) -> Caller:
        """Return the caller that a token names: its tenant and its user.

        Raises:
            NotAuthenticatedError: the token is not valid.
        """
        try:
            claims = self._claims(token)
        except jwt.PyJWTError as exc:
            raise _refused(f"{exc}") from exc
        tenant, user = claims.get("tenant_id") or TENANT_DEFAULT, claims["sub"]
        for name, value in (("tenant_id", tenant), ("sub", user)):
            if not isinstance(value, str) or _NAME.fullmatch(value) is None:
                raise _refused(f"{name} is not 1 to 128 characters of A-Z a-z 0-9 _ . @ : + -")
        # In place of a key's id: limits and turns are those of the user. No name has a slash.
        counted_as = f"{USER_TYPE}:{tenant}/{user}"
        return Caller(Principal(tenant, self.project, USER_TYPE, user, counted_as), USUAL_PERMISSIONS, Allowances())

    def _claims(self, token: str) -> dict[str, Any]:
        key_id = jwt.get_unverified_header(token).get("kid", "")
        key = self.keys.get(key_id) or self.keys.get("")
        if key is None:
            raise _refused("no public key has the id of its header 'kid'")
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            # The key decides: a token must not choose how it is verified.
            algorithms=["RS256" if isinstance(key, RSAPublicKey) else "EdDSA"],
            issuer=self.issuer,
            audience=self.audience,
            leeway=CLOCK_SKEW_S,
            options={"require": _REQUIRED},
        )
        times = (claims["iat"], claims["exp"])
        if any(isinstance(time, bool) or not isinstance(time, (int, float)) for time in times):
            raise _refused("iat and exp are not numbers")
        if not 0 < claims["exp"] - claims["iat"] <= LIFETIME_S_MAX:
            raise _refused(f"its lifetime is not 1 to {LIFETIME_S_MAX} s")
        if not isinstance(claims["jti"], str) or not 0 < len(claims["jti"]) <= _JTI_CHARS_MAX:
            raise _refused(f"jti is not 1 to {_JTI_CHARS_MAX} characters")
        return claims


def _refused(reason: str) -> NotAuthenticatedError:
    return NotAuthenticatedError(
        f"Authorization: the token of LibreChat is not valid: {reason}; compare its CODEAPI_JWT_ settings with "
        "PROOFBOX_LIBRECHAT_KEY_FILE, PROOFBOX_LIBRECHAT_ISSUER and PROOFBOX_LIBRECHAT_AUDIENCE",
        was_given=True,
    )


def read_public_keys(file: Path) -> dict[str, PublicKey]:
    """Read public keys, a PEM file or a JSON Web Key Set.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has no public key of type Ed25519 or RSA.
    """
    text = file.read_text(encoding="utf-8").strip()
    try:
        if not text.startswith("{"):
            return {"": _usable(load_pem_public_key(text.encode()), file)}
        found = json.loads(text)
        listed = found.get("keys", [found])
        # As public keys: of a private one, its public half.
        return {str(entry.get("kid", "")): _usable(_public(jwt.PyJWK(entry).key), file) for entry in listed}
    except (jwt.PyJWTError, KeyError, TypeError, AttributeError, ValueError) as exc:
        raise ValueError(
            f"{file}: not the public key of LibreChat ({exc}); give a PEM file of an Ed25519 or RSA public key, or "
            "a JSON Web Key Set"
        ) from exc


def _public(key: Any) -> Any:
    return key.public_key() if hasattr(key, "public_key") else key


def _usable(key: object, file: Path) -> PublicKey:
    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, RSAPublicKey) and key.key_size >= _RSA_BITS_MIN:
        return key
    raise ValueError(f"{file.name} has a key that is neither Ed25519 nor RSA of {_RSA_BITS_MIN} bits or more")
