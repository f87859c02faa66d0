"""A role (interface §2.7)."""

from dataclasses import dataclass, field
from enum import StrEnum

from gatehouse.permissions.model.condition import Condition
from gatehouse.permissions.model.schema import Tree


class ConditionMode(StrEnum):
    GRANT = "grant"  # the role applies to everyone for whom the condition holds
    REQUIRE = "require"  # the condition gates assignments


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    application_id: int
    name: str
    description: str = ""
    protected: bool = False
    default: bool = False
    condition: Condition | None = None
    condition_mode: ConditionMode = ConditionMode.GRANT
    user_limit: int = 0
    params: str = ""
    meta: Tree = field(default_factory=dict)
    version: int = 1

    @property
    def key(self) -> str:
        """Names are unique ignoring case (R5); they are ASCII, so lower() is exact."""
        return self.name.lower()
