"""From an entry of a file to an account that can be stored, by the rules of registration and `apply`."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from gatehouse.accounts.errors import MAX_IDENTITIES, BadAccount
from gatehouse.accounts.field_checks import (
    MAX_NICK_LENGTH,
    check_labels,
    check_name,
    check_nick,
    check_tags,
    check_user_id,
    check_username,
)
from gatehouse.accounts.identities import MAX_LABEL_LENGTH
from gatehouse.accounts.importing.hashes import imported_hash, parse_hash
from gatehouse.accounts.importing.model import (
    IMPORT_KEY,
    AccountCandidate,
    EmailState,
    FileRow,
    ImportEntry,
    RefusedRow,
)
from gatehouse.accounts.model import (
    IMPORTED_ACCOUNT,
    JOINED_KEY,
    OWN_FIELDS,
    Identity,
    User,
    check_login,
    check_new_login,
)
from gatehouse.accounts.phones.numbers import check_phone
from gatehouse.accounts.second_factors.codes import check_totp
from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.ids import new_user_id
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.text import is_plain_line

T = TypeVar("T")


ENTRY_FIELDS: Final = frozenset(field.name for field in fields(ImportEntry))
# Taken as the entry has them; the others depend on each other.
IMPORTED_FIELDS: Final = tuple(field for field in OWN_FIELDS if field.name in ENTRY_FIELDS - {"nick"})
MAX_SUBJECT_LENGTH: Final = 255
MAX_SOURCE_ID: Final = 256  # characters that a report shows
MAX_NAME_SHOWN: Final = 40  # of a provider that a file names


class ProviderIssuer(Struct, frozen=True):
    provider_id: str
    issuer: str  # of its identities; empty if it has several


class RowChecker(Struct, frozen=True, kw_only=True):
    sealer: SecretSealer
    recorder: Recorder
    origin: AuditOrigin
    source: str  # the format of the file
    import_id: str
    now: int
    issuers: Mapping[str, ProviderIssuer]  # by the names that the file may use
    emails: EmailState  # what addresses are if the row does not say

    def check(self, row: FileRow) -> AccountCandidate | RefusedRow:
        if row.problem:
            return RefusedRow(row.number, row.entry.title, row.problem)
        try:
            return self._candidate(row.number, row.entry)
        except BadAccount as error:
            return RefusedRow(row.number, row.entry.title, str(error))

    def _candidate(self, number: int, entry: ImportEntry) -> AccountCandidate:
        user = self._user(entry)
        identities, left_out = self._identities(entry, user.user_id)
        if user.login is None and not identities:
            raise BadAccount("; ".join(("has no login and no identity", *left_out)))
        record = self.recorder.record(
            AuditEvent.USER_IMPORTED,
            self.origin,
            subject=user.user_id,
            details={"source": self.source, "import": self.import_id},
            personal={"login": user.login or "", "nick": user.nick},
        )
        return AccountCandidate(
            number=number,
            title=entry.title,
            source_id=(entry.source_id or entry.user_id)[:MAX_SOURCE_ID],
            user=user,
            record=record,
            identities=identities,
            left_out=left_out,
            has_own_id=bool(entry.user_id),
            hash_kind=parse_hash(entry.password_hash).kind if entry.password_hash else "",
        )

    def _user(self, entry: ImportEntry) -> User:
        user_id = check_field("user_id", check_user_id, entry.user_id) if entry.user_id else new_user_id()
        name = check_field("name", check_name, entry.name)
        username = check_field("username", check_username, entry.username) if entry.username else None
        user = User(
            user_id=user_id,
            # Only a person who has an ID had an account before, perhaps with an address that is refused to new ones.
            login=check_field("login", check_login if entry.user_id else check_new_login, entry.login)
            if entry.login
            else None,
            nick=check_field(
                "nick", check_nick, entry.nick or username or name[:MAX_NICK_LENGTH] or f"Player {user_id}"
            ),
            password_hash=imported_hash(entry.password_hash) if entry.password_hash else None,
            reg_time=self.now,
            email_verified=bool(entry.login) and self._is_verified(entry),
            phone=check_field("phone", check_phone, entry.phone),
            phone_verified=self._phone_is_verified(entry),
            blocked=entry.blocked,
            meta={JOINED_KEY: IMPORTED_ACCOUNT, IMPORT_KEY: self.import_id},
            tags=check_field("tags", check_tags, entry.tags),
            purchases=check_field("purchases", check_labels, entry.purchases),
            sealed_totp=self._sealed_totp(user_id, entry.totp_secret),
            username=username,
        )
        others: dict[str, Any] = {
            field.name: check_field(field.name, field.field.check or str, getattr(entry, field.name))
            for field in IMPORTED_FIELDS
        }
        return replace(user, **others)

    def _phone_is_verified(self, entry: ImportEntry) -> bool:
        if entry.phone_verified and not entry.phone.strip():
            raise BadAccount("phone_verified needs a phone")
        return entry.phone_verified

    def _is_verified(self, entry: ImportEntry) -> bool:
        return self.emails is EmailState.VERIFIED if entry.email_verified is None else entry.email_verified

    def _identities(self, entry: ImportEntry, user_id: str) -> tuple[tuple[Identity, ...], tuple[str, ...]]:
        """Return the identities at known providers, and why the others are left out."""
        identities, left_out = [], []
        for identity in entry.identities[:MAX_IDENTITIES]:
            known = self.issuers.get(identity.provider)
            if known is None:
                left_out.append(f"identity at {identity.provider[:MAX_NAME_SHOWN]}: no such provider is configured")
            elif not known.issuer:
                left_out.append(f"identity at {identity.provider}: the provider needs the ID of one tenant")
            else:
                subject = check_field("subject", check_subject, identity.subject)
                identities.append(
                    Identity(
                        issuer=known.issuer,
                        subject=subject,
                        user_id=user_id,
                        provider=known.provider_id,
                        label=subject[:MAX_LABEL_LENGTH],  # the login is ours, and may be a stranger's
                        created_at=self.now,
                        used_at=0,
                    )
                )
        if len(entry.identities) > MAX_IDENTITIES:
            left_out.append(f"more than {MAX_IDENTITIES} identities")
        return tuple(identities), tuple(left_out)

    def _sealed_totp(self, user_id: str, secret: str) -> bytes | None:
        if not secret:
            return None
        checked = check_field("totp_secret", check_totp, secret)
        return self.sealer.seal(checked.encode(), purpose=totp_sealing_purpose(user_id))


def check_field(field: str, check: Callable[[Any], T], value: object) -> T:
    """Check a field; an error says which one it is."""
    try:
        return check(value)
    except BadAccount as error:
        raise BadAccount(f"{field}: {error}") from None


def check_subject(text: str) -> str:
    if not 0 < len(text) <= MAX_SUBJECT_LENGTH or not is_plain_line(text):
        raise BadAccount(f"must be 1 to {MAX_SUBJECT_LENGTH} visible characters on one line")
    return text
