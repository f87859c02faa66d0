"""Tags and purchases of accounts, which conditions test (R1)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from gatehouse.accounts.administration import Administration
from gatehouse.accounts.errors import BadAccount, UserNotFound
from gatehouse.accounts.model import User
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed, PersonNotFound
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.store import ProjectStore

SaveLabels: TypeAlias = Callable[[str, frozenset[str], AuditOrigin], Awaitable[User]]


class UserLabelCommands(Struct, kw_only=True, eq=False):
    accounts: AccountStore
    administration: Administration
    projects: ProjectStore

    async def count_projects(self, user_id: str) -> int:
        """How many projects the user created that are not removed (interface §4.5)."""
        return await self.projects.count_authored_projects(user_id)

    async def get(self, actor: Actor, user_id: str) -> User:
        require_operation(actor.rights, Operation.ADMINISTER)
        try:
            return await self.accounts.user(grammar.check_user_id(user_id, "data.user_id"))
        except UserNotFound:
            raise PersonNotFound from None

    async def save_tags(self, actor: Actor, user_id: str, tags: Sequence[object]) -> User:
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self._save(self.administration.set_tags, actor, user_id, read_labels(tags, "data.tags"))

    async def save_purchases(self, actor: Actor, user_id: str, purchases: Sequence[object]) -> User:
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self._save(
            self.administration.set_purchases, actor, user_id, read_labels(purchases, "data.purchases")
        )

    async def _save(self, put: SaveLabels, actor: Actor, user_id: str, labels: frozenset[str]) -> User:
        try:
            return await put(grammar.check_user_id(user_id, "data.user_id"), labels, actor.origin)
        except UserNotFound:
            raise PersonNotFound from None
        except BadAccount as error:
            refusal = Malformed(error.detail or error.public)
            raise refusal.on_screen(error.screen_key, **error.screen_values) from error


def read_labels(document: Sequence[object], place: str) -> frozenset[str]:
    labels = frozenset(element for element in document if isinstance(element, str))
    if len(labels) != len(document):
        raise Malformed(f"{place}: must be distinct strings")
    return labels
