"""Accounts created, edited and blocked by an administrator, and the first administrator."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from gatehouse.accounts.errors import BadAccount, SetupLinkDead, UserChanged
from gatehouse.accounts.model import (
    MAX_NICK_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS,
    SYSTEM_TAGS,
    AccountKind,
    SetupLink,
    User,
    check_login,
    is_service_tag,
)
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.profile_fields import (
    PROFILE_FIELDS,
    check_name,
    check_username,
    check_zoneinfo,
    date_profile,
)
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.images.loading import NewImage
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret, new_user_id
from gatehouse.kernel.text import is_plain_line, nfc
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail
from gatehouse.tokens.claims import MAX_TAG_BYTES, json_length

MAX_CUSTOM_TAG_BYTES: Final = MAX_TAG_BYTES - 128  # the rest is for system tags
LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
COUNTRY_CODE: Final = re.compile(r"([A-Z]{2})?", re.ASCII)
# Generated ids have ten digits (R1); those of files may be shorter or longer.
USER_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


def check_user_id(text: str) -> str:
    if not USER_ID.fullmatch(text):
        raise BadAccount("must be 1 to 19 digits, not starting with 0").on_screen("user_id_digits")
    return text


def check_nick(text: str) -> str:
    nick = nfc(text.strip())
    if not nick or len(nick) > MAX_NICK_LENGTH or not is_plain_line(nick):
        raise BadAccount(f"the nick must be 1 to {MAX_NICK_LENGTH} visible characters on one line").on_screen(
            "nick", max_nick_length=MAX_NICK_LENGTH
        )
    return nick


def check_lang(text: str) -> str:
    if not LANGUAGE_TAG.fullmatch(text):
        raise BadAccount("must be a language tag such as en or pt-BR").on_screen("language_tag")
    return text


def check_country(text: str) -> str:
    if not COUNTRY_CODE.fullmatch(text):
        raise BadAccount("must be two capital letters such as DE").on_screen("country")
    return text


def check_tags(tags: frozenset[str]) -> frozenset[str]:
    own = {tag for tag in tags if tag in SYSTEM_TAGS or is_service_tag(tag)}
    if own:
        raise BadAccount(f"{', '.join(sorted(own))}: managed automatically, cannot be set").on_screen(
            "tags_managed", names=", ".join(sorted(own))
        )
    if any("," in tag for tag in tags):
        raise BadAccount("a tag cannot contain a comma").on_screen(
            "tag_comma"
        )  # tags are sent joined by commas (R2, claim tgs)
    if json_length(",".join(check_labels(tags))) > MAX_CUSTOM_TAG_BYTES:
        raise BadAccount(f"all tags together are limited to {MAX_CUSTOM_TAG_BYTES} bytes").on_screen(
            "tag_bytes", max_custom_tag_bytes=MAX_CUSTOM_TAG_BYTES
        )
    return tags


def check_labels(words: frozenset[str]) -> frozenset[str]:
    if len(words) > MAX_TAGS:
        raise BadAccount(f"at most {MAX_TAGS} entries").on_screen("entries_tags", max_tags=MAX_TAGS)
    for word in words:
        if not 0 < len(word) <= MAX_TAG_LENGTH or word != word.strip() or not is_plain_line(word):
            raise BadAccount(f"each entry must be 1 to {MAX_TAG_LENGTH} visible characters on one line").on_screen(
                "tag_length", max_tag_length=MAX_TAG_LENGTH
            )
    return words


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
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> User:
        """Create an account; `more`: fields of AccountDraft. Raises BadAccount and LoginTaken."""
        user = await self.new_user(login=login, nick=nick, password=password, lang=lang)
        user = apply_draft(user, replace(unchanged_draft(user), **more))
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


LABEL_FIELDS: Final = ("tags", "purchases")
EDITABLE_FIELDS: Final = (
    "nick",
    "login",
    "email_verified",
    "lang",
    "country",
    *PROFILE_FIELDS,
    "picture",
    *LABEL_FIELDS,
)
PERSONAL_FIELDS: Final = ("nick", "login", *PROFILE_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDraft:
    """The fields as submitted; `version` is the version of the account the form was made from."""

    nick: str
    login: str
    email_verified: bool
    lang: str
    country: str
    tags: frozenset[str]
    purchases: frozenset[str]
    name: str
    given_name: str
    family_name: str
    username: str  # empty for none
    zoneinfo: str
    version: int
    picture: NewImage = UNSET


def unchanged_draft(user: User) -> AccountDraft:
    """A save that would change nothing."""
    return AccountDraft(
        nick=user.nick,
        login=user.login or "",
        email_verified=user.email_verified,
        lang=user.lang,
        country=user.country,
        tags=user.tags,
        purchases=user.purchases,
        name=user.name,
        given_name=user.given_name,
        family_name=user.family_name,
        username=user.username or "",
        zoneinfo=user.zoneinfo,
        version=user.version,
    )


class AccountEditor:
    def __init__(self, *, store: OwnAccountStore, composer: Composer, recorder: Recorder) -> None:
        self._store = store
        self._composer = composer
        self._recorder = recorder

    async def save(self, user: User, draft: AccountDraft, origin: AuditOrigin) -> None:
        """Save the draft; a save without changes records nothing.

        Raises BadAccount, UserChanged, LoginTaken and UsernameTaken. The 30 days of a user name do not apply.
        """
        if draft.version != user.version:
            raise UserChanged
        after = apply_draft(user, draft)
        changed = [name for name in EDITABLE_FIELDS if getattr(after, name) != getattr(user, name)]
        if changed:
            moved = after.login_key != user.login_key
            mails = tuple(self._old_address_notice(user, origin)) if moved else ()
            entries = tuple(self._audit_records(after, changed, origin))
            dated = date_profile(user, after, entries[0].at)
            await self._store.change_account(dated, entries, mails, ends_links=moved, picture=draft.picture or None)

    def _audit_records(self, after: User, changed: Sequence[str], origin: AuditOrigin) -> Iterator[AuditRecord]:
        """Yield the general event, and the specific one for tags and purchases."""
        personal = {name: str(getattr(after, name) or "") for name in PERSONAL_FIELDS if name in changed}
        yield self._recorder.record(
            AuditEvent.USER_CHANGED,
            origin,
            subject=after.user_id,
            details={"fields": ", ".join(changed)},
            personal=personal,
        )
        labels = {name: ", ".join(sorted(getattr(after, name))) for name in LABEL_FIELDS if name in changed}
        if labels:
            yield self._recorder.record(AuditEvent.USER_TAGS_SAVED, origin, subject=after.user_id, details=labels)

    def _old_address_notice(self, user: User, origin: AuditOrigin) -> Iterator[OutboxMail]:
        """Yield the email that tells the old address about the change, as when the owner changes it."""
        if user.login is not None:
            yield self._composer.compose(
                MailTemplate.EMAIL_CHANGED_OLD, to=user.login, lang=user.lang, address=origin.address, device=""
            )


def new_username(text: str) -> str | None:
    """Return the user name that a draft asks for; empty for none. Raises BadAccount."""
    return check_username(text) if text.strip() else None


def apply_draft(user: User, draft: AccountDraft) -> User:
    """Return the account with the checked fields of the draft."""
    return replace(
        user,
        nick=check_nick(draft.nick),
        login=check_login(draft.login) if user.kind is AccountKind.PERSON else user.login,
        email_verified=draft.email_verified if user.kind is AccountKind.PERSON else user.email_verified,
        lang=check_lang(draft.lang),
        country=check_country(draft.country),
        tags=check_tags(draft.tags),
        purchases=check_labels(draft.purchases),
        name=check_name(draft.name),
        given_name=check_name(draft.given_name),
        family_name=check_name(draft.family_name),
        username=user.username if draft.username == (user.username or "") else new_username(draft.username),
        zoneinfo=check_zoneinfo(draft.zoneinfo),
        picture=user.picture if draft.picture is UNSET else "" if draft.picture is None else draft.picture.image_id,
    )


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
        secret = new_secret()
        now = self._clock.now()
        link = SetupLink(digest=sha256(secret), created_at=now, expires_at=now + SETUP_LINK_LIFETIME)
        record = self._recorder.record(AuditEvent.SETUP_LINK_MADE, origin, subject="installation")
        await self._store.put_setup_link(link, record)
        return secret

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
