"""What an exec tool needs of packages; nothing here needs the libraries of the extra ``packages``."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.operations import AllowedPackages
from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tools import Language
from proofbox.service.calls.invalid_params import InvalidParamsError
from proofbox.service.calls.validation import field_name, refusal
from proofbox.service.errors import PackagesNotAllowedError
from proofbox.service.identity import Principal
from proofbox.service.sandbox.port import PackageFolder

_NAMED_MAX = 8
_LANGUAGES = frozenset({Language.PYTHON, Language.BASH})


@dataclass(frozen=True, slots=True)
class InstalledPackages:
    """What the program of a call finds.

    Attributes:
        folder: where they are inside of its sandbox; empty if the image has all of them.
        packages: what was installed for it.
        present: name and version of what the call asks for and the image has.
        replaces: whether a library of the image is there in another version.
    """

    folder: str
    packages: tuple[InstalledPackage, ...]
    present: tuple[str, ...] = ()
    replaces: bool = False

    @property
    def folder_of_job(self) -> PackageFolder | None:
        """What the job of the program gets."""
        return PackageFolder(self.folder, self.replaces) if self.folder else None

    @property
    def note(self) -> str:
        """One line for the model."""
        named = [f"{package.name} {package.version}" for package in self.packages]
        more = len(named) - _NAMED_MAX
        shown = ", ".join(named[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        parts = [f"installed {shown}"] if named else []
        parts += [f"the image has {', '.join(self.present)}"] if self.present else []
        return f"Packages: {'; '.join(parts)}"


class InstallObserver(Protocol):
    """Gets what is done for the metrics; quick, and never raises."""

    def packages_installed(self, *, ok: bool, seconds: float) -> None:
        """An installation has ended; ``seconds`` are without the wait for a place."""

    def packages_found(self) -> None:
        """A call has found what it asks for: nothing had to be installed."""


class NoInstallObserver:
    """Ignores all."""

    def packages_installed(self, *, ok: bool, seconds: float) -> None:
        """See `InstallObserver.packages_installed`."""

    def packages_found(self) -> None:
        """See `InstallObserver.packages_found`."""


class Packages(Protocol):
    """Installs the packages of calls.

    Attributes:
        observer: gets what is done.
    """

    observer: InstallObserver

    @property
    def preparing(self) -> int:
        """Calls that wait for their packages now."""

    def open(self) -> None:
        """Makes the folders, before a sandbox is started.

        Raises:
            StoreFailedError: they cannot be made, or another process has them.
        """

    async def close(self) -> None:
        """Ends what is under way."""

    def find_mistakes(self, requirements: Sequence[str], caller: str) -> list[tuple[int, str]]:
        """Requirements that a caller cannot have whatever the index has: their numbers, and why."""

    def describe(self, caller: str) -> AllowedPackages:
        """What the calls of a caller may ask for."""

    def use(
        self,
        requirements: Sequence[str],
        principal: Principal,
        pinned: Sequence[InstalledPackage] | None = None,
    ) -> AbstractAsyncContextManager[InstalledPackages]:
        """Installs packages if they are not there, and keeps them for the block.

        Args:
            requirements: names, extras and versions.
            principal: who asks: the places to install are shared by tenants, and within a tenant by callers.
            pinned: what has to be installed in place of what the index has now: that of an earlier call.

        Raises:
            PackageRefusedError: the call has to ask for others.
            PackageIndexError, EngineUnavailableError, QueueFullError, QueueTimeoutError, StoreFullError: not now.
        """


def check_packages(
    request: ToolCallRequest, params: ExecParams, language: Language, packages: Packages | None, caller: str
) -> None:
    """Refuses a call whose packages its caller may not have.

    Raises:
        PackagesNotAllowedError: of the request: with every entry that is refused, and why.
        InvalidParamsError: of the parameters: the same.
    """
    if found := _mistakes(request.packages, language, packages, caller):
        raise refusal(
            PackagesNotAllowedError,
            [{"loc": ("packages", *at), "type": "packages_not_allowed", "msg": text} for at, text in found],
        )
    both = [*request.packages, *params.packages] if params.packages else []
    if found := _mistakes(both, language, packages, caller):
        before = len(request.packages)
        errors = [
            {"field": field_name(("params", "packages", *(number - before for number in at))), "message": text}
            for at, text in found
        ]
        raise InvalidParamsError(errors, len(errors))


def _mistakes(
    requirements: Sequence[str], language: Language, packages: Packages | None, caller: str
) -> list[tuple[tuple[int, ...], str]]:
    """What is wrong with requirements: at which entry, nowhere for all, and why."""
    if not requirements:
        return []
    if packages is None:
        return [((), "the operator has set no package index (PROOFBOX_PACKAGE_INDEX); leave it out")]
    if language not in _LANGUAGES:
        return [((), f"programs in {language} find no Python packages; leave it out")]
    return [((number,), text) for number, text in packages.find_mistakes(requirements, caller)]
