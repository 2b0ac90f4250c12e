"""What installing the packages of one call may use: the operator's limits, made less by those of its API key."""

from dataclasses import dataclass, replace

from proofbox.contracts.codes import ContractCode
from proofbox.service.access.quotas import PackageAllowance
from proofbox.service.packages.refusal import PackageRefusedError, too_large


@dataclass(frozen=True, slots=True)
class InstallLimits:
    """What installing the packages of one call may use.

    Attributes:
        time_s: wall clock of one installation as a whole, and the longest wait for a place.
        bytes_max: of the unpacked packages; the downloads may have as many.
        files_max: files and folders of the unpacked packages.
        count_max: packages, with what they need.
    """

    time_s: float
    bytes_max: int
    files_max: int
    count_max: int

    def narrowed(self, own: PackageAllowance) -> "InstallLimits":
        """These limits for a caller, which has at most as much."""
        return replace(
            self,
            time_s=min(self.time_s, own.time_s or self.time_s),
            bytes_max=min(self.bytes_max, own.bytes_max or self.bytes_max),
            count_max=min(self.count_max, own.count_max or self.count_max),
        )

    def require_count(self, count: int) -> None:
        """Refuses more packages than may be.

        Raises:
            PackageRefusedError: ``packages_too_large``.
        """
        if count > self.count_max:
            raise PackageRefusedError(
                ContractCode.PACKAGES_TOO_LARGE,
                f"{count} packages would be installed, {self.count_max} may (package_count of the API key, or "
                "PROOFBOX_PACKAGE_CALL_COUNT_MAX); ask for fewer",
            )

    def require_bytes(self, size_bytes: int) -> None:
        """Refuses packages that take more bytes than may be.

        Raises:
            PackageRefusedError: ``packages_too_large``.
        """
        if size_bytes > self.bytes_max:
            raise too_large(self.bytes_max, self.files_max)
