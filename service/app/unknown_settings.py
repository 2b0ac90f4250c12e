"""Environment variables that look like settings and are none: a mistyped one would be ignored."""

from collections.abc import Mapping
from dataclasses import dataclass

from proofbox.service.app.config.names import nearest_name
from proofbox.service.app.config.secret_files import file_settings
from proofbox.service.app.config.sources import CONFIG_VARIABLE, PREFIX
from proofbox.service.app.settings import Settings
from proofbox.service.errors import ServiceError

OTHER_NAMES = frozenset({CONFIG_VARIABLE, "PROOFBOX_URL", "PROOFBOX_API_KEY", "PROOFBOX_BASE_IMAGE"})
"""Variables that name the configuration file, and those of the clients and of the image build."""
_TESTS_PREFIX = "PROOFBOX_TEST_"
# Kubernetes sets such variables for a service that is called proofbox.
_OF_KUBERNETES = ("PROOFBOX_SERVICE_", "PROOFBOX_PORT_")


class UnknownSettingsError(ServiceError):
    """An environment variable begins as settings do and names none."""


@dataclass(frozen=True, slots=True)
class UnknownSetting:
    """A variable that names no setting.

    Attributes:
        name: its name.
        nearest: the setting that it resembles; empty if it resembles none.
    """

    name: str
    nearest: str

    @property
    def hint(self) -> str:
        """What to do about it."""
        if self.name.upper().startswith(_OF_KUBERNETES):
            return "set by Kubernetes for a service of this name: use enableServiceLinks: false"
        return f"did you mean {self.nearest}?" if self.nearest else "docs/settings.md lists the settings"


def find_unknown_settings(environment: Mapping[str, str]) -> list[UnknownSetting]:
    """List the variables that begin with ``PROOFBOX_`` and name no setting, in the order of their names."""
    known = {PREFIX + name.upper() for name in (*Settings.model_fields, *file_settings(Settings))}
    names = sorted(name for name in environment if name.upper().startswith(PREFIX))
    unknown = [
        name
        for name in names
        if name.upper() not in known | OTHER_NAMES and not name.upper().startswith(_TESTS_PREFIX)
    ]
    return [UnknownSetting(name, _nearest(name.upper(), known)) for name in unknown]


def refuse_unknown_settings(environment: Mapping[str, str]) -> None:
    """Refuse to start with a variable that names no setting.

    Raises:
        UnknownSettingsError: there is one; the message names each with its remedy.
    """
    if unknown := find_unknown_settings(environment):
        listed = "; ".join(f"{setting.name} ({setting.hint})" for setting in unknown)
        raise UnknownSettingsError(f"not a setting: {listed}. Correct or unset it")


def _nearest(name: str, known: set[str]) -> str:
    # Without the prefix, which all have in common.
    found = nearest_name(name.removeprefix(PREFIX), {setting.removeprefix(PREFIX) for setting in known})
    return f"{PREFIX}{found}" if found else ""
