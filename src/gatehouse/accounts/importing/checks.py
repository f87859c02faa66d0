"""From an entry of a file to an account that can be stored, by the rules of registration and `apply`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from gatehouse.accounts.administration import check_labels, check_nick, check_tags, check_user_id
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.hashes import imported_hash, parse_hash
from gatehouse.accounts.importing.model import IMPORT_KEY, AccountCandidate, FileRow, ImportEntry, RefusedRow
from gatehouse.accounts.model import IMPORTED_ACCOUNT, JOINED_KEY, MAX_NICK_LENGTH, User, check_login
from gatehouse.accounts.profile_fields import check_name, check_username
from gatehouse.accounts.second_factors.codes import check_totp
from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.ids import new_user_id
from gatehouse.kernel.sealing import SecretSealer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChecker:
    sealer: SecretSealer
    recorder: Recorder
    origin: AuditOrigin
    source: str  # the format of the file
    import_id: str
    now: int

    def check(self, row: FileRow) -> AccountCandidate | RefusedRow:
        if row.problem:
            return RefusedRow(row.number, row.entry.title, row.problem)
        try:
            return self._candidate(row.number, row.entry)
        except BadAccount as error:
            return RefusedRow(row.number, row.entry.title, str(error))

    def _candidate(self, number: int, entry: ImportEntry) -> AccountCandidate:
        user = self._user(entry)
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
            user=user,
            record=record,
            has_own_id=bool(entry.user_id),
            hash_kind=parse_hash(entry.password_hash).kind if entry.password_hash else "",
        )

    def _user(self, entry: ImportEntry) -> User:
        if not entry.login:
            raise BadAccount("has no login")
        user_id = check_field("user_id", check_user_id, entry.user_id) if entry.user_id else new_user_id()
        name = check_field("name", check_name, entry.name)
        username = check_field("username", check_username, entry.username) if entry.username else None
        return User(
            user_id=user_id,
            login=check_field("login", check_login, entry.login),
            nick=check_field(
                "nick", check_nick, entry.nick or username or name[:MAX_NICK_LENGTH] or f"Player {user_id}"
            ),
            password_hash=imported_hash(entry.password_hash) if entry.password_hash else None,
            reg_time=self.now,
            email_verified=entry.email_verified,
            blocked=entry.blocked,
            meta={JOINED_KEY: IMPORTED_ACCOUNT, IMPORT_KEY: self.import_id},
            tags=check_field("tags", check_tags, entry.tags),
            purchases=check_field("purchases", check_labels, entry.purchases),
            sealed_totp=self._sealed_totp(user_id, entry.totp_secret),
            name=name,
            given_name=check_field("given_name", check_name, entry.given_name),
            family_name=check_field("family_name", check_name, entry.family_name),
            username=username,
        )

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
