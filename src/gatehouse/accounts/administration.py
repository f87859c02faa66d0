"""Accounts created and blocked by an administrator or the operator."""

from types import MappingProxyType

from gatehouse.accounts.field_checks import check_labels, check_nick, check_tags
from gatehouse.accounts.model import User, check_new_login
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.profile_fields import AccountChanges, apply_changes
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.images.loading import NewImage
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_user_id

# Accounts created and blocked by an administrator or the operator.


class Administration:
    def __init__(
        self, *, store: AccountStore, passwords: Passwords, rules: PasswordRules, recorder: Recorder, clock: Clock
    ) -> None:
        self._store = store
        self._passwords = passwords
        self._rules = rules
        self._recorder = recorder
        self._clock = clock

    async def create(
        self,
        *,
        login: str,
        nick: str,
        password: str | None,
        origin: AuditOrigin,
        administrator: bool = False,
        lang: str = "en",
        more: AccountChanges = MappingProxyType({}),
    ) -> User:
        """Create an account with `more` fields. Raises BadAccount and LoginTaken."""
        user = await self.new_user(login=login, nick=nick, password=password, lang=lang)
        user = apply_changes(user, more)
        record = self._recorder.record(
            AuditEvent.USER_CREATED,
            origin,
            subject=user.user_id,
            details={"administrator": administrator},
            personal={"login": login, "nick": user.nick},
        )
        picture: NewImage = more.get("picture")
        await self._store.create_user(user, record, administrator=administrator, picture=picture or None)
        return user

    async def new_user(self, *, login: str, nick: str, password: str | None, lang: str = "en") -> User:
        """Check every field and hash the password, without storing anything."""
        checked_login, checked_nick = check_new_login(login), check_nick(nick)
        if password is not None:
            await self._rules.check(password, checked_login, checked_nick)
        return User(
            user_id=new_user_id(),
            login=checked_login,
            nick=checked_nick,
            password_hash=None if password is None else await self._passwords.hash(password),
            lang=lang,
            reg_time=self._clock.now(),
        )

    async def block(self, user_id: str, origin: AuditOrigin, *, even_last_administrator: bool = False) -> User:
        """Block the account. Raises UserNotFound and LastAdministrator."""
        record = self._recorder.record(AuditEvent.USER_BLOCKED, origin, subject=user_id)
        return await self._store.set_blocked(
            user_id,
            record,
            blocked=True,
            now=self._clock.now(),
            even_last_administrator=even_last_administrator,
        )

    async def unblock(self, user_id: str, origin: AuditOrigin) -> User:
        record = self._recorder.record(AuditEvent.USER_UNBLOCKED, origin, subject=user_id)
        return await self._store.set_blocked(user_id, record, blocked=False, now=self._clock.now())

    async def set_tags(self, user_id: str, tags: frozenset[str], origin: AuditOrigin) -> User:
        """Replace the tags that people set; system tags are not affected."""
        words = check_tags(tags)
        record = self._recorder.record(
            AuditEvent.USER_TAGS_SAVED, origin, subject=user_id, details={"tags": ", ".join(sorted(words))}
        )
        return await self._store.set_labels(user_id, record, tags=words)

    async def set_purchases(self, user_id: str, purchases: frozenset[str], origin: AuditOrigin) -> User:
        words = check_labels(purchases)
        record = self._recorder.record(
            AuditEvent.USER_TAGS_SAVED, origin, subject=user_id, details={"purchases": ", ".join(sorted(words))}
        )
        return await self._store.set_labels(user_id, record, purchases=words)
