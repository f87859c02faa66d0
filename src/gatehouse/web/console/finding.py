"""Finding a person to give something to.

Whoever administers the installation searches among everybody. Others find those who have something in the project
already; of anybody else they have to know the id, or, where they manage the whole project, the address.
"""

from collections.abc import Collection, Sequence

from gatehouse.accounts.logins import login_key
from gatehouse.admin.model.names import NamedPerson, NameStore
from gatehouse.admin.model.paging import SEARCH_LONGEST
from gatehouse.web.console.desk import AdminRequest


class PersonFinder:
    def __init__(self, names: NameStore) -> None:
        self._names = names

    async def find(
        self, admin: AdminRequest, text: str, *, known_ids: Collection[str], by_email: bool
    ) -> Sequence[NamedPerson]:
        """`known`: ids of those he may find by a part of their names. `by_address`: anybody by the whole address."""
        wanted = text.strip()[:SEARCH_LONGEST]
        if not wanted:
            return ()
        if admin.visibility.everything:
            return await self._names.find_people(wanted)
        exact = await self._names.find_person_exactly(wanted, login_key(wanted) if by_email else "")
        near = await self._names.find_people(wanted, known_ids)
        return list({one.user_id: one for one in (*exact, *near)}.values())
