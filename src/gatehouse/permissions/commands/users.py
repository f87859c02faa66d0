"""Tags and purchases of accounts, which conditions look at (R1)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from gatehouse.accounts.administration import Administration
from gatehouse.accounts.errors import BadAccount, UserNotFound
from gatehouse.accounts.model import User
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import Origin
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed, PersonNotFound
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.permissions.store import ProjectStore

Put: TypeAlias = Callable[[str, frozenset[str], Origin], Awaitable[User]]


class People:
    def __init__(self, *, accounts: AccountStore, administration: Administration, projects: ProjectStore) -> None:
        self._accounts = accounts
        self._administration = administration
        self._projects = projects

    async def projects(self, user_id: str) -> int:
        """How many projects somebody made that are not removed (interface §4.5)."""
        return await self._projects.authored(user_id)

    async def get(self, actor: Actor, user_id: str) -> User:
        require(actor.rights, Operation.ADMINISTER)
        try:
            return await self._accounts.user(grammar.check_user_id(user_id, "data.user_id"))
        except UserNotFound:
            raise PersonNotFound from None

    async def save_tags(self, actor: Actor, user_id: str, tags: Sequence[object]) -> User:
        require(actor.rights, Operation.ADMINISTER)
        return await self._saved(self._administration.put_tags, actor, user_id, words(tags, "data.tags"))

    async def save_purchases(self, actor: Actor, user_id: str, purchases: Sequence[object]) -> User:
        require(actor.rights, Operation.ADMINISTER)
        return await self._saved(
            self._administration.put_purchases, actor, user_id, words(purchases, "data.purchases")
        )

    async def _saved(self, put: Put, actor: Actor, user_id: str, given: frozenset[str]) -> User:
        try:
            return await put(grammar.check_user_id(user_id, "data.user_id"), given, actor.origin)
        except UserNotFound:
            raise PersonNotFound from None
        except BadAccount as error:
            raise Malformed(error.detail or error.public) from error


def words(given: Sequence[object], place: str) -> frozenset[str]:
    found = frozenset(one for one in given if isinstance(one, str))
    if len(found) != len(given):
        raise Malformed(f"{place}: must be distinct strings")
    return found
