"""Accounts created, edited and blocked by an administrator, and the first administrator."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from gatehouse.accounts.errors import SetupLinkDead, UserChanged
from gatehouse.accounts.field_checks import check_labels, check_nick, check_tags
from gatehouse.accounts.model import (
    ACCOUNT_FIELDS,
    ADDRESS_CHANGED,
    JOINED_KEY,
    SetupLink,
    User,
    check_login,
)
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.profile_fields import AccountChanges, apply_changes, date_profile
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import changed_names
from gatehouse.fields.model import Kind
from gatehouse.images.loading import NewImage
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret, new_user_id
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail

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
        checked_login, checked_nick = check_login(login), check_nick(nick)
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


# Fields of an account, edited by an administrator: one save, one version, one audit record per kind of change.


class AccountEditor:
    def __init__(self, *, store: OwnAccountStore, composer: Composer, recorder: Recorder) -> None:
        self._store = store
        self._composer = composer
        self._recorder = recorder

    async def save(self, user: User, changes: AccountChanges, origin: AuditOrigin, *, version: int) -> None:
        """Save these fields if the account has this version; a save without changes records nothing.

        Raises BadAccount, UserChanged, LoginTaken and UsernameTaken. The 30 days of a user name do not apply.
        """
        if version != user.version:
            raise UserChanged
        after = with_address_origin(user, apply_changes(user, changes))
        changed = changed_names(user, after, ACCOUNT_FIELDS)
        if changed:
            moved = after.login_key != user.login_key
            mails = tuple(self._old_address_notice(user, origin)) if moved else ()
            entries = tuple(self._audit_records(after, changed, origin))
            dated = date_profile(user, after, entries[0].at)
            picture: NewImage = changes.get("picture")
            await self._store.change_account(dated, entries, mails, ends_links=moved, picture=picture or None)

    def _audit_records(self, after: User, changed: Sequence[str], origin: AuditOrigin) -> Iterator[AuditRecord]:
        """Yield the general event, and the specific one for tags and purchases."""
        described = [one for one in ACCOUNT_FIELDS if one.name in changed]
        yield self._recorder.record(
            AuditEvent.USER_CHANGED,
            origin,
            subject=after.user_id,
            details={"fields": ", ".join(changed)},
            personal={one.name: one.value_of(after) or "" for one in described if one.field.is_personal},
        )
        labels = {one.name: ", ".join(sorted(one.value_of(after))) for one in described if one.kind is Kind.LABELS}
        if labels:
            yield self._recorder.record(AuditEvent.USER_TAGS_SAVED, origin, subject=after.user_id, details=labels)

    def _old_address_notice(self, user: User, origin: AuditOrigin) -> Iterator[OutboxMail]:
        """Yield the email that tells the old address about the change, as when the owner changes it."""
        if user.login is not None:
            yield self._composer.compose(
                MailTemplate.EMAIL_CHANGED_OLD, to=user.login, lang=user.lang, address=origin.address, device=""
            )


def with_address_origin(user: User, after: User) -> User:
    """Return the account after a change by an administrator, who vouches for an address that they set (R10).

    An address that no one proved by email before stays one, whatever they say about it in between.
    """
    is_withdrawn = user.email_verified and not after.email_verified
    if after.login_key == user.login_key and (after.unproved_origin or not is_withdrawn):
        return after
    return replace(after, meta={**after.meta, JOINED_KEY: ADDRESS_CHANGED})


# The first administrator, created once through a one-time link; there is no default password (S-28).


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
