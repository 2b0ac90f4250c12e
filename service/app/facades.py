"""The facades that the settings switch on; a part of the composition root."""

from proofbox.service.api.facade import Facade
from proofbox.service.api.services import Services
from proofbox.service.app.auth_policy import StartRefusedError
from proofbox.service.app.bootstrap import Service
from proofbox.service.app.settings import Settings


def build_facades(service: Service, services: Services) -> list[Facade]:
    """Build the APIs of other products that the operator has switched on.

    Raises:
        StartRefusedError: a public key cannot be read.
    """
    facades: list[Facade] = []
    if service.settings.librechat:
        facades.append(_build_librechat(service.settings, services))
    if service.settings.gotenberg:
        facades.append(_build_gotenberg(service, services))
    return facades


def _build_gotenberg(service: Service, services: Services) -> Facade:
    # Imported only where it is used.
    from proofbox.service.facades.gotenberg.facade import GotenbergFacade  # noqa: PLC0415

    return GotenbergFacade(services, service.one_shot, service.settings.body_bytes_max)


def _build_librechat(settings: Settings, services: Services) -> Facade:
    # Imported only where it is used.
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
