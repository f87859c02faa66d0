"""What the scope `profile` tells about a person (OpenID Connect Core 1.0 §5.1, R9)."""

from collections.abc import Callable
from itertools import compress
from operator import attrgetter
from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import CLAIM_FIELDS, AccountKind, User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.profile_fields import username_candidates
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.images.model import image_url

CLAIM_NAMES: Final = (
    *("name", "preferred_username", "nickname", "picture", "locale", "updated_at"),
    *(claim_field.field.claim for claim_field in CLAIM_FIELDS),
)
field_values: Final[Callable[[User], tuple[object, ...]]] = attrgetter(
    *(claim_field.path for claim_field in CLAIM_FIELDS)
)
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


class ProfileClaims(Struct, kw_only=True, eq=False):
    store: OwnAccountStore
    recorder: Recorder
    base_url: str

    async def claims_of(self, user: User) -> dict[str, object]:
        """Return the claims that are known; a person without a user name gets one first."""
        values = (
            user.name or " ".join(filter(None, (user.given_name, user.family_name))) or user.nick,
            user.username or await self.username_of(user),
            user.nick,
            image_url(self.base_url, user.picture),
            user.lang,
            user.updated_at or user.reg_time,
            *field_values(user),
        )
        return dict(compress(zip(CLAIM_NAMES, values, strict=True), values))

    async def username_of(self, user: User) -> str | None:
        """Return the user name; the first one is made from the nick and stored, and can be changed at once."""
        if user.username is not None or user.kind is AccountKind.SERVICE:
            return user.username
        candidates = username_candidates(user.nick)
        entry = self.recorder.record(
            AuditEvent.PROFILE_CHANGED, SERVICE_ORIGIN, subject=user.user_id, details={"field": "username"}
        )
        return await self.store.generate_username(user.user_id, candidates, entry)
