"""Why packages cannot be had."""

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import ContractCode
from proofbox.service.visible_text import visible_line

_SHOWN_CHARS = 600


class PackageRefusedError(ContractError):
    """The call has to ask for other packages; nothing was run."""

    def __init__(self, code: ContractCode, message: str) -> None:
        text = visible_line(message)
        shown = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
        super().__init__(code, f"packages: {shown}")


def broken_wheel(filename: str, why: str) -> PackageRefusedError:
    """The refusal of a wheel that is not as a wheel has to be."""
    return PackageRefusedError(
        ContractCode.PACKAGE_REFUSED, f"the wheel {filename} of the index {why}; ask for another version or package"
    )


def too_large(bytes_max: int, files_max: int) -> PackageRefusedError:
    """The refusal of packages that take more bytes or files than a call may have."""
    return PackageRefusedError(
        ContractCode.PACKAGES_TOO_LARGE,
        f"they take more than {bytes_max} bytes (package_bytes of the API key, or PROOFBOX_PACKAGE_CALL_BYTES_MAX) "
        f"or {files_max} files (PROOFBOX_PACKAGE_CALL_FILES_MAX); ask for fewer or smaller ones",
    )
