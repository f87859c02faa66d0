"""The actor of a change: their rights, and their name in the audit log."""

from msgspec import Struct

from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.rights.rights import Rights


class Actor(Struct, frozen=True, kw_only=True):
    rights: Rights
    origin: AuditOrigin

    @property
    def user_id(self) -> str:
        return self.rights.user_id
