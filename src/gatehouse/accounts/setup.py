"""The first administrator, created once through a one-time link; there is no default password (S-28)."""

from typing import Final

from gatehouse.accounts.administration import Administration
from gatehouse.accounts.errors import SetupLinkDead
from gatehouse.accounts.model import SetupLink, User
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret

SETUP_LINK_LIFETIME: Final = 1_800  # seconds a setup link can be used


class Setup:
    def __init__(
        self, *, store: AccountStore, administration: Administration, recorder: Recorder, clock: Clock
    ) -> None:
        self._store = store
        self._administration = administration
        self._recorder = recorder
        self._clock = clock

    async def is_closed(self) -> bool:
        return await self._store.setup_is_closed()

    async def new_link(self, origin: AuditOrigin) -> str:
        """Return the secret of a new link, which lets its reader become administrator. Raises SetupClosed."""
        secret, link, record = self._make_link(origin)
        await self._store.put_setup_link(link, record)
        return secret

    async def new_link_if_none(self, origin: AuditOrigin) -> str | None:
        """Return the secret of a new link; None if an unused one exists. Raises SetupClosed."""
        secret, link, record = self._make_link(origin)
        return secret if await self._store.put_setup_link(link, record, keep_unused=True) else None

    def _make_link(self, origin: AuditOrigin) -> tuple[str, SetupLink, AuditRecord]:
        secret = new_secret()
        now = self._clock.now()
        link = SetupLink(digest=sha256(secret), created_at=now, expires_at=now + SETUP_LINK_LIFETIME)
        return secret, link, self._recorder.record(AuditEvent.SETUP_LINK_MADE, origin, subject="installation")

    async def refuse_dead_link(self, secret: str) -> None:
        if not await self._store.setup_link_is_open(sha256(secret), self._clock.now()):
            raise SetupLinkDead

    async def complete(self, secret: str, *, login: str, nick: str, password: str, origin: AuditOrigin) -> User:
        await self.refuse_dead_link(secret)  # before the costly hash: a dead link costs nothing
        user = await self._administration.new_user(login=login, nick=nick, password=password)
        records = {
            "created": self._recorder.record(
                AuditEvent.USER_CREATED,
                origin,
                subject=user.user_id,
                details={"administrator": True},
                personal={"login": login, "nick": user.nick},
            ),
            "closed": self._recorder.record(AuditEvent.SETUP_CLOSED, origin, subject="installation"),
        }
        await self._store.complete_setup(sha256(secret), user, records, self._clock.now())
        return user
