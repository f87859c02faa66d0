"""Where somebody may hold something: in which applications, and by which conditions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.model.names import NamedApplication
from gatehouse.permissions.model.condition import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalGrant:
    """A role that its condition gives, or one that a group gets whose members are told by conditions."""

    application: NamedApplication
    conditions: tuple[Condition, ...]  # any of them is enough


class OwnPermissionsStore(Protocol):
    async def applications_of_user(self, user_id: str, most: int) -> Sequence[NamedApplication]:
        """The first applications by name that may give him something, application 1 last.

        Something is written there about him or for a group that lists him, or they are connected to his account.
        """

    async def conditional_grants(self, most: int) -> Sequence[ConditionalGrant]:
        """What is given to whoever meets a condition: so many by roles and so many by groups, by application."""
