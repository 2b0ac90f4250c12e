"""The tokens of this service that are no API keys, as requests carry them: ``Authorization: Bearer <prefix>…``."""

SPACE_PREFIX = "pbs_"
"""How tokens of spaces begin."""
CALLBACK_PREFIX = "pbt_"
"""How tokens begin with which a service answers one call that waits."""


def find_bearer_token(authorization: str, prefix: str) -> str | None:
    """Return the token of a header ``Authorization``; None if it has another credential than one of this prefix."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(prefix) else None
