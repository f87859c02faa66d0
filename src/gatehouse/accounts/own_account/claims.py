"""What the scope `profile` tells about a person (OpenID Connect Core 1.0 §5.1, R9)."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import CLAIM_FIELDS, AccountKind, User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.profile_fields import username_candidates
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.images.model import image_url

SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


class ProfileClaims(Struct, kw_only=True, eq=False):
    store: OwnAccountStore
    recorder: Recorder
    base_url: str

    async def claims_of(self, user: User) -> Mapping[str, object]:
        """Return the claims that are known; a person without a user name gets one first."""
        claims: Mapping[str, object] = {
            "name": user.name or " ".join(filter(None, (user.given_name, user.family_name))) or user.nick,
            "preferred_username": await self.username_of(user),
            "nickname": user.nick,
            "picture": image_url(self.base_url, user.picture),
            "locale": user.lang,
            "updated_at": user.updated_at or user.reg_time,
            **{one.field.claim: one.value_of(user) for one in CLAIM_FIELDS},
        }
        return {name: value for name, value in claims.items() if value}

    async def username_of(self, user: User) -> str | None:
        """Return the user name; the first one is made from the nick and stored, and can be changed at once."""
        if user.username is not None or user.kind is AccountKind.SERVICE:
            return user.username
        candidates = username_candidates(user.nick)
        entry = self.recorder.record(
            AuditEvent.PROFILE_CHANGED, SERVICE_ORIGIN, subject=user.user_id, details={"field": "username"}
        )
        return await self.store.generate_username(user.user_id, candidates, entry)
