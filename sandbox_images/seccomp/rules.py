"""The rules of a seccomp profile: system calls that share one reason."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """One comparison of a call's argument; a call has to meet all conditions of a rule.

    `mask` is None for plain equality, otherwise only the masked bits are compared. `at_most` compares for less or
    equal in place of equality.
    """

    argument: int
    value: int
    mask: int | None = None
    at_most: bool = False

    def as_json(self) -> dict[str, Any]:
        """The comparison in the form that container runtimes read; for a masked one `value` is the mask."""
        if self.mask is None:
            operator = "SCMP_CMP_LE" if self.at_most else "SCMP_CMP_EQ"
            return {"index": self.argument, "value": self.value, "op": operator}
        return {
            "index": self.argument,
            "value": self.mask,
            "valueTwo": self.value,
            "op": "SCMP_CMP_MASKED_EQ",
        }


@dataclass(frozen=True)
class Family:
    """System calls that share one reason.

    `conditions` narrows an allowed family. `errno` makes it a refusal with that error in place of EPERM.
    """

    name: str
    reason: str
    syscalls: str
    conditions: tuple[Condition, ...] = ()
    errno: int | None = None

    @property
    def names(self) -> list[str]:
        """The calls of the family, sorted."""
        return sorted(self.syscalls.split())

    def as_json(self) -> dict[str, Any]:
        """The family as one rule of the profile."""
        rule: dict[str, Any] = {"names": self.names}
        if self.errno is None:
            rule["action"] = "SCMP_ACT_ALLOW"
        else:
            rule |= {"action": "SCMP_ACT_ERRNO", "errnoRet": self.errno}
        rule["args"] = [condition.as_json() for condition in self.conditions]
        rule["comment"] = f"{self.name}: {self.reason}"
        return rule
