"""What the resolver prints when it finds no wheels, as an error for who asked."""

import re

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import PackageIndexError, ServiceError
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.target import Target

_NOISE = re.compile(r"[\u00d7\u2500-\u257f\u25b6]+")
_BLANKS = re.compile(r"\s+")
_URL = re.compile(r"https?://[^\s`'\"]+")
_AWAY = re.compile(
    r"Failed to fetch|error sending request|Request failed|timed? ?out|Connection refused|dns error|"
    r"status (?:server error|code)|HTTP status|client error \((?:Connect|Request)|invalid peer certificate|"
    r"Could not connect|unauthenticated|forbidden",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"was not found in the|not found in the package registry|were not found", re.IGNORECASE)
_NO_WHEEL = re.compile(
    r"no (?:usable )?wheels|no wheels with|has no (?:usable|matching) (?:wheels|distributions)|"
    r"building from source is disabled|only wheels are available|no source distribution|"
    r"is disabled for|no-build|requires a? ?build|Python>=|current Python|Requires-Python",
    re.IGNORECASE,
)
_SENTENCE_CHARS = 420


def refuse_resolution(stderr: str, index: str, target: Target) -> "PackageRefusedError | ServiceError":
    """The error for what the resolver printed; the address of the index is not in it."""
    text = _sentence(stderr, index)
    is_conflict = "No solution found" in text
    if not is_conflict and _AWAY.search(text):
        return PackageIndexError(f"packages: the package index does not answer ({text}); call again later")
    if _UNKNOWN.search(text) or (is_conflict and "there are no versions" in text):
        return PackageRefusedError(
            ContractCode.PACKAGE_NOT_FOUND, f"{text}; check the name and the version at the package index"
        )
    if _NO_WHEEL.search(text):
        return PackageRefusedError(
            ContractCode.PACKAGE_WITHOUT_WHEEL,
            f"{text}; only wheels for Python {target.python} on {target.machine} Linux are installed: "
            "ask for another version",
        )
    if is_conflict:
        return PackageRefusedError(
            ContractCode.PACKAGE_CONFLICT,
            f"{text}; the libraries of the image keep their versions unless the call asks for another one of them",
        )
    return PackageRefusedError(ContractCode.PACKAGE_REFUSED, f"{text}; ask for another version or package")


def _sentence(stderr: str, index: str) -> str:
    """The lines of the error, as one short line without addresses."""
    text = stderr.replace(index, "the package index")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("warning:", "hint:"))]
    line = _BLANKS.sub(" ", _NOISE.sub(" ", _URL.sub("the package index", " ".join(lines)))).strip()
    line = line.removeprefix("error: ")
    return line if len(line) <= _SENTENCE_CHARS else f"{line[:_SENTENCE_CHARS]}…"
