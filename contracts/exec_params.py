"""The parameters of the exec tools besides the contract: what a program is given when it starts."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from proofbox.contracts.bounded_text import limit_utf8
from proofbox.contracts.packages.requirements import PACKAGES_MAX, RequirementText
from proofbox.contracts.paths import (
    Namespace,
    UnsafePathError,
    is_turn_id,
    relative_path,
    unquoted,
    without_output_place,
)

TIMEOUT_S_DEFAULT = 600
STDIN_BYTES_MAX = 1024 * 1024
ARGS_MAX = 256
ENV_MAX = 64
VALUES_BYTES_MAX = 64 * 1024
"""All of ``args`` together, and all names and values of ``env`` together, as UTF-8."""
NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"

_NAME = re.compile(NAME_PATTERN)
_RESERVED = frozenset(
    {
        *("PATH", "HOME", "LANG", "TMPDIR", "OUT_DIR", "OUTPUT_DIR", "TURN_ID", "PWD", "OLDPWD", "SHLVL", "_"),
        *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "GLIBC_TUNABLES", "NODE_OPTIONS", "NODE_PATH"),
    }
)
# Folders of a sandbox that are not below OUT_DIR; what a program writes there is lost.
_ELSEWHERE = re.compile(r"(?:sandbox:)?(?:/+|(?:~|/tmp|(?:\$\{?|\{)(?:HOME|TMPDIR)\}?)(?:/.*)?)", re.DOTALL)
_RESERVED_PREFIXES = ("LD_", "PYTHON", "BASH_FUNC_")


def _sendable(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise ValueError("it holds a lone surrogate, which is no Unicode text") from exc
    return text


def _args_within_bounds(args: list[str]) -> list[str]:
    _refuse_over(sum(len(arg.encode()) for arg in args), VALUES_BYTES_MAX)
    return args


def check_variable_name(name: str) -> str:
    """Returns the name of a variable that a program may be given.

    Raises:
        ValueError: it is no name, or one that the sandbox sets.
    """
    if not _NAME.match(name) or name.endswith("\n"):
        raise ValueError(f"{name[:80]!a} is no name of a variable: {NAME_PATTERN}")
    if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
        raise ValueError(f"{name} is set by the sandbox or changes how programs start; use another name")
    return name


def _env_within_bounds(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        check_variable_name(name)
    _refuse_over(sum(len(name) + len(value.encode()) for name, value in env.items()), VALUES_BYTES_MAX)
    return env


def _refuse_over(size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(f"it has {size:,} bytes as UTF-8, and at most {limit:,} are taken")


def _folder(text: str) -> str:
    working_folder(text, "turn_1")
    return text


Value = Annotated[str, AfterValidator(_sendable)]


class ExecParams(BaseModel):
    """Parameters of ``exec_tools.execute_code_*``; the code travels beside them."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    contract: Any = None
    """Promised files; required without ``explore``."""
    prog_name: Annotated[str, Field(max_length=255)] = "main"
    """Name of the program in tracebacks."""
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = TIMEOUT_S_DEFAULT
    """Wall-clock limit in seconds."""
    explore: bool = False
    """In place of a contract: only to look; files stay internal."""
    stdin: Annotated[Value, AfterValidator(limit_utf8(STDIN_BYTES_MAX))] | None = None
    """Standard input, 1 MiB at most."""
    args: Annotated[list[Value], Field(max_length=ARGS_MAX), AfterValidator(_args_within_bounds)] = []
    """Command-line arguments."""
    env: Annotated[dict[str, Value], Field(max_length=ENV_MAX), AfterValidator(_env_within_bounds)] = {}
    """Further environment variables."""
    cwd: Annotated[str, Field(max_length=1_024), AfterValidator(_folder)] | None = None
    """Working directory below ``files/``."""
    workspace: Literal["full", "read", "none"] = "full"
    """``full``: all files come, and changes last; ``read``: they come; ``none``: only files that the call names."""
    packages: Annotated[list[RequirementText], Field(max_length=PACKAGES_MAX)] = []
    """Further Python packages to install before the run, such as scikit-image==0.25.*."""

    @model_validator(mode="after")
    def _contract_or_explore(self) -> Self:
        if self.explore and self.contract not in (None, "", []):
            raise ValueError("contract and explore: true exclude each other; give one of them")
        return self


def working_folder(text: str, turn_id: str) -> str:
    """The folder that ``cwd`` names, relative to OUT_DIR; empty for OUT_DIR itself.

    A bare path and one below ``files/`` are folders of the current turn; a physical path may name another turn's.
    ``/out`` is OUT_DIR, and ``/mnt/data`` is ``files/``; other folders outside of OUT_DIR are refused.

    Raises:
        UnsafePathError: it is no path below OUT_DIR.
    """
    given = unquoted(text.strip())
    if given in {"", ".", "./"}:
        return ""
    if _ELSEWHERE.fullmatch(given):
        raise UnsafePathError(
            f"the folder {given[:80]!a} lies outside of OUT_DIR; give a folder relative to files/, such as work"
        )
    stripped = without_output_place(f"{given}/").rstrip("/")
    if stripped in {"", "."}:
        return f"{turn_id}/{Namespace.FILES}" if "/mnt/" in given else ""
    path = relative_path(stripped)
    head, _, rest = path.partition("/")
    if is_turn_id(head) and (not rest or rest.partition("/")[0] in set(Namespace)):
        return path
    below = rest if head == Namespace.FILES else path
    return f"{turn_id}/{Namespace.FILES}/{below}".rstrip("/")
