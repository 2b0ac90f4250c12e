"""The facades that the settings switch on; a part of the composition root."""

from proofbox.service.api.facade import Facade
from proofbox.service.api.services import Services
from proofbox.service.app.bootstrap import Service


def build_facades(service: Service, services: Services) -> list[Facade]:
    """Build the APIs of other products that the operator has switched on."""
    facades: list[Facade] = []
    if service.settings.gotenberg:
        # Imported only where it is used.
        from proofbox.service.facades.gotenberg.facade import GotenbergFacade  # noqa: PLC0415

        facades.append(GotenbergFacade(services, service.one_shot, service.settings.body_bytes_max))
    return facades
