"""What the resolver prints when it finds no wheels, as an error for who asked."""

import re

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import PackageIndexError, ServiceError
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.target import Target

_BLANKS = re.compile(r"\s+")
_URL = re.compile(r"(?:git\+)?https?://[^\s`'\")]+")
_UNSOLVED = "No solution found when resolving dependencies"
_CONCLUSION = re.compile(r",? we can conclude that your requirements are unsatisfiable\.?")
_REQUIRED = re.compile(r"\. And because you require [^,.]+(?=$|, we can conclude that your requirements)")
_NO_ACCESS = re.compile(r"40[13] (?:Unauthorized|Forbidden)")
_GONE = re.compile(r"client error \((?:404|410)")
_AWAY = re.compile(
    r"Failed to fetch|error sending request|Request failed|timed? ?out|Connection refused|dns error|"
    r"HTTP status|client error|invalid peer certificate|Could not connect",
    re.IGNORECASE,
)
_NO_WHEEL = re.compile(r"no (?:usable )?wheels|is disabled for|Python>=|current Python|Requires-Python")
_UNKNOWN = re.compile(
    r"not found in the|there (?:are|is) no versions?|(?:is|are) available and you require|was yanked|were yanked",
    re.IGNORECASE,
)
_SENTENCE_CHARS = 420


def refuse_resolution(stderr: str, index: str, target: Target) -> "PackageRefusedError | ServiceError":
    """The error for what the resolver printed; the address of the index is not in it."""
    body, _, hint = stderr.partition("\nhint:")
    text = _sentence(body, index)
    is_unsolved = _UNSOLVED in body
    if _NO_ACCESS.search(hint) or (not is_unsolved and _AWAY.search(body) and not _GONE.search(body)):
        reason = "it refuses the login" if _NO_ACCESS.search(hint) else text
        return PackageIndexError(f"packages: the package index does not answer ({reason}); call again later")
    if _NO_WHEEL.search(text):
        return PackageRefusedError(
            ContractCode.PACKAGE_WITHOUT_WHEEL,
            f"{text}; only wheels for Python {target.python} on {target.machine} Linux are installed: "
            "ask for another version",
        )
    if _UNKNOWN.search(text) or _GONE.search(body):
        return PackageRefusedError(
            ContractCode.PACKAGE_NOT_FOUND, f"{text}; check the name and the version at the package index"
        )
    if is_unsolved and "invalid metadata" not in text:
        return PackageRefusedError(
            ContractCode.PACKAGE_CONFLICT,
            f"{text}; the libraries of the image keep their versions unless the call asks for another one of them",
        )
    return PackageRefusedError(ContractCode.PACKAGE_REFUSED, f"{text}; ask for another version or package")


def _sentence(body: str, index: str) -> str:
    """The lines of the error, as one short line without addresses."""
    text = _URL.sub("the package index", body.replace(index, "the package index"))
    lines = [line.strip().removeprefix("cause: ") for line in text.splitlines() if not line.startswith("warning:")]
    line = _BLANKS.sub(" ", " ".join(lines)).removeprefix("error: ").removeprefix(_UNSOLVED)
    line = _CONCLUSION.sub("", _REQUIRED.sub("", line)).strip().rstrip(".")
    return line if len(line) <= _SENTENCE_CHARS else f"{line[:_SENTENCE_CHARS]}…"
