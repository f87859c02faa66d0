"""What is stored of one user in one application (interface §2.9, R5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gatehouse.permissions.model.rule import NO_END, End
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.model.scope import ROOT, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    role: str  # its key, Role.key
    end: End = NO_END


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeHoldings:
    """What is written for one scope: roles in the order they were given, and direct entries."""

    roles: tuple[Assignment, ...] = ()
    private_data: Tree = field(default_factory=dict)
    public_data: Tree = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.roles or self.private_data or self.public_data)


NO_HOLDINGS: Final = ScopeHoldings()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    application_id: int
    user_id: str
    login: Tree = field(default_factory=dict)
    secret_data: Tree = field(default_factory=dict)
    scopes: Mapping[Scope, ScopeHoldings] = field(default_factory=dict)  # none of them empty
    version: int = 0  # grows by one with every change; 0 when nothing was ever written

    @property
    def root(self) -> ScopeHoldings:
        return self.scopes.get(ROOT, NO_HOLDINGS)
