"""A rule: one leaf of a schema, and what is said about it (interface §2.7 to §2.9)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PROJECT_ACCESS: Final = "projectAccess"  # the part of private_data that holds what is assigned in projects
# Never the first segment of a path: list_short and check would read it as a section (R5, checklist RO-22).
RESERVED_SEGMENTS: Final = frozenset({PROJECT_ACCESS, "private_data", "public_data", "secret_data"})


class RuleSection(StrEnum):
    PRIVATE = "private_data"
    PUBLIC = "public_data"


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    section: RuleSection
    path: str  # "user.kick"; segments hold no dot, so the text is unambiguous

    def __str__(self) -> str:
        return f"{self.section}.{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDefinition:
    """What an application's schema says of a rule."""

    value: bool = False
    protected: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """When something ends. `ttl` wins over `expired`, which then counts for nothing (interface §2.7)."""

    expired: int = 0  # Unix seconds; 0 is no end
    ttl: int = 0  # seconds from the moment a list is made; the thing itself never ends by it

    def is_past(self, now: int) -> bool:
        return not self.ttl and 0 < self.expired <= now

    def ends_at(self, now: int) -> int:
        """The end a list made now tells of, 0 for none."""
        return now + self.ttl if self.ttl else self.expired


NO_END: Final = End()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEntry:
    """What a role, or a user's own record, says of a rule."""

    value: bool
    params: tuple[str, ...] = ()
    end: End = NO_END
