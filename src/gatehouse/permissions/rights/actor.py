"""Whoever carries a change out: his rights, and how the audit log will name him."""

from dataclasses import dataclass

from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.rights.rights import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    rights: Rights
    origin: AuditOrigin

    @property
    def user_id(self) -> str:
        return self.rights.user_id
