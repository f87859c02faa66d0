"""Fields of an account, changed by an administrator: one save, one version, on record field by field."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from gatehouse.accounts.administration import check_nick
from gatehouse.accounts.errors import UserChanged
from gatehouse.accounts.labels import check_country, check_labels, check_lang, check_tags
from gatehouse.accounts.logins import check_login
from gatehouse.accounts.model import AccountKind, User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail

LABEL_FIELDS: Final = ("tags", "purchases")
EDITABLE_FIELDS: Final = ("nick", "login", "email_verified", "lang", "country", *LABEL_FIELDS)
PERSONAL_FIELDS: Final = ("nick", "login")


class EditStore(Protocol):
    async def change_account(
        self, user: User, entries: Sequence[AuditRecord], mails: Sequence[OutboxMail], *, ends_links: bool
    ) -> None:
        """Replace the account whose version is still that one, all or nothing. Raises UserChanged, LoginTaken.

        With `ends_links` no link that was mailed before opens anything any more.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDraft:
    """As it was typed; `version` is that of the account it was made from."""

    nick: str
    login: str
    email_verified: bool
    lang: str
    country: str
    tags: frozenset[str]
    purchases: frozenset[str]
    version: int


class AccountEditor:
    def __init__(self, *, store: EditStore, composer: Composer, recorder: Recorder) -> None:
        self._store = store
        self._composer = composer
        self._recorder = recorder

    async def save(self, user: User, draft: AccountDraft, origin: AuditOrigin) -> None:
        """Raises BadAccount, UserChanged and LoginTaken; a save that changes nothing leaves no trace."""
        if draft.version != user.version:
            raise UserChanged
        after = apply_draft(user, draft)
        changed = [name for name in EDITABLE_FIELDS if getattr(after, name) != getattr(user, name)]
        if changed:
            moved = after.login_key != user.login_key
            mails = tuple(self._old_address_notice(user, origin)) if moved else ()
            entries = tuple(self._audit_records(after, changed, origin))
            await self._store.change_account(after, entries, mails, ends_links=moved)

    def _audit_records(self, after: User, changed: Sequence[str], origin: AuditOrigin) -> Iterator[AuditRecord]:
        """The general event, and the one that people look for by name."""
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
        """Whoever reads the old mailbox is told, as with a change of his own."""
        if user.login is not None:
            yield self._composer.compose(
                MailTemplate.EMAIL_CHANGED_OLD, to=user.login, lang=user.lang, address=origin.address, device=""
            )


def apply_draft(user: User, draft: AccountDraft) -> User:
    """The account as it is to be, every field in the spelling that is kept."""
    return replace(
        user,
        nick=check_nick(draft.nick),
        login=check_login(draft.login) if user.kind is AccountKind.PERSON else user.login,
        email_verified=draft.email_verified if user.kind is AccountKind.PERSON else user.email_verified,
        lang=check_lang(draft.lang),
        country=check_country(draft.country),
        tags=check_tags(draft.tags),
        purchases=check_labels(draft.purchases),
    )
