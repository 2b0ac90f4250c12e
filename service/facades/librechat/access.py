"""Authentication: an API key in one of three headers, LibreChat's token, or nothing where no key is required."""

import base64
import binascii

from starlette.datastructures import Headers

from proofbox.service.access.authenticator import Authenticator, Caller, RequestCredentials
from proofbox.service.access_errors import NotAuthenticatedError
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.tokens import TokenVerifier, is_token


class Access:
    """Determines the caller of a request.

    Args:
        authenticator: verifies API keys, and knows whether one is required.
        verifier: verifies tokens; None: the operator has given no public key.
    """

    def __init__(self, authenticator: Authenticator, verifier: TokenVerifier | None) -> None:
        self._authenticator = authenticator
        self._verifier = verifier

    async def authenticate(self, headers: Headers) -> Caller:
        """Return the caller of a request.

        Raises:
            RefusedError: the request has credentials in two headers.
            NotAuthenticatedError: a key is required and missing, or the key or token is not valid.
            WrongTenantError: a header names a tenant or project of another caller.
            StoreFailedError: the keys cannot be read.
        """
        given = [_secret(value) for value in headers.getlist("authorization")] + headers.getlist("x-api-key")
        if len(given) > 1:
            raise RefusedError("credentials: two headers have some (limit 1); send Authorization or X-API-Key")
        secret = given[0].strip() if given else None
        if secret is not None and is_token(secret):
            if self._verifier is None:
                raise NotAuthenticatedError(
                    "Authorization: this service has no public key to verify a token of LibreChat; set "
                    "PROOFBOX_LIBRECHAT_KEY_FILE, or send an API key",
                    was_given=True,
                )
            return self._verifier.caller_of(secret)
        authorization = () if secret is None else (f"Bearer {secret}",)
        tenant, project = headers.get("Proofbox-Tenant"), headers.get("Proofbox-Project")
        return await self._authenticator.authenticate(RequestCredentials(authorization, tenant, project))


def _secret(authorization: str) -> str:
    """Return the key or token in a header: a bearer token, or the user of basic authentication."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user = password = ""
        if user and not password:
            return user
    raise NotAuthenticatedError(
        "Authorization: neither a bearer token nor basic authentication with the key as user and no password; "
        "send 'Bearer <key>', or write the URL as https://<key>@host/librechat/v1",
        was_given=True,
    )
