"""Whether an application lets a user in (R5), as the application's schema says.

Roles and records of single users join in with the evaluation of permissions; until then the defaults of
the schema decide for everyone alike.
"""

from collections.abc import Sequence

from gatehouse.kernel.digests import sha256
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.store import PermissionStore


class LoginRules:
    def __init__(self, store: PermissionStore) -> None:
        self._store = store

    async def may_log_in(self, _user: object, application_ids: Sequence[int]) -> bool:
        sections = [await self._store.login_section(number) for number in application_ids]
        return all(section is not None and lets_in(section) for section in sections)

    async def shares_email(self, application_id: int, secret: str) -> bool:
        # Found by its digest: comparing the secret itself would tell by its time how much of a guess was right.
        return await self._store.knows_email_secret(application_id, sha256(secret))


def lets_in(login: Tree) -> bool:
    """`cannot` wins over `can`; whatever is not plainly true or false lets nobody in (S-22)."""
    return _value(login, "can") is True and _value(login, "cannot") is False


def _value(login: Tree, rule: str) -> object:
    leaf = login.get(rule)
    return leaf.get("value") if isinstance(leaf, dict) else None
