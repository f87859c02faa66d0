"""What screens offer to choose from: people by what one remembers of them, applications by name."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from gatehouse.admin.model.names import NamedApplication, NamedPerson
from gatehouse.admin.model.sight import Sight


class FindingStore(Protocol):
    async def people(self, search: str, limit: int, *, with_logins: bool) -> Sequence[NamedPerson]:
        """Whose nick, id or, `with_logins`, login begins so, ignoring case; the shortest nick first."""

    async def applications(self, application_ids: Collection[int]) -> Mapping[int, str]:
        """Names by id."""

    async def seen(self, sight: Sight, limit: int) -> Sequence[NamedApplication]:
        """The applications somebody sees, by name, that are not removed."""
