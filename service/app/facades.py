"""Builds the facades that the operator has switched on."""

from proofbox.service.api.facade import Facade
from proofbox.service.api.services import Services
from proofbox.service.app.auth_policy import StartRefusedError
from proofbox.service.app.settings import Settings


def build_facades(settings: Settings, services: Services) -> list[Facade]:
    """Build the facades. Each is imported only if it is used.

    Raises:
        StartRefusedError: a public key cannot be read.
    """
    return [_build_librechat(settings, services)] if settings.librechat else []


def _build_librechat(settings: Settings, services: Services) -> Facade:
    from proofbox.service.facades.librechat.access import Access  # noqa: PLC0415
    from proofbox.service.facades.librechat.routes import LibreChat  # noqa: PLC0415
    from proofbox.service.facades.librechat.tokens import TokenVerifier, read_public_keys  # noqa: PLC0415

    verifier = None
    if settings.librechat_key_file is not None:
        try:
            keys = read_public_keys(settings.librechat_key_file)
        except (OSError, ValueError) as exc:
            raise StartRefusedError(f"PROOFBOX_LIBRECHAT_KEY_FILE: {exc}") from exc
        issuer, audience = settings.librechat_issuer, settings.librechat_audience
        verifier = TokenVerifier(keys, issuer, audience, settings.project)
    return LibreChat(services, Access(services.authenticator, verifier))
