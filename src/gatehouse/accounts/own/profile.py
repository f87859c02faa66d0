"""The name others see, the language, and everything the account page shows."""

from gatehouse.accounts.administration import check_nick
from gatehouse.accounts.model import User
from gatehouse.accounts.own.model import AccountDetails
from gatehouse.accounts.own.store import ProfileStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock


class AccountProfile:
    def __init__(self, *, store: ProfileStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def load_details(self, user: User) -> AccountDetails:
        return await self._store.account_details(user.user_id, self._clock.now())

    async def rename(self, user: User, nick: str, origin: AuditOrigin) -> None:
        """Raises BadAccount."""
        checked = check_nick(nick)
        entry = self._recorder.record(
            AuditEvent.PROFILE_CHANGED,
            origin,
            subject=user.user_id,
            details={"field": "nick"},
            personal={"nick": checked},
        )
        await self._store.set_nick(user.user_id, checked, entry)

    async def set_language(self, user: User, lang: str, origin: AuditOrigin) -> None:
        """Pages and letters come in this language from now on; its caller knows that there is such a one."""
        entry = self._recorder.record(
            AuditEvent.PROFILE_CHANGED, origin, subject=user.user_id, details={"field": "lang", "lang": lang}
        )
        await self._store.set_lang(user.user_id, lang, entry)
