"""What an import reads, stores and reports (R10)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Struct

from gatehouse.accounts.model import Identity, User
from gatehouse.audit.model import AuditRecord
from gatehouse.fields.secrets import HIDDEN, SecretRecord, SecretText
from gatehouse.kernel.errors import BadInput

IMPORT_KEY: Final = "import"  # in `meta`: the ID of the import that created the account
MAX_IMPORT_ID: Final = 64  # characters


class EmailState(StrEnum):
    """What an import takes the addresses for that the file says nothing about (R10)."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"


class ImportFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    KEYCLOAK = "keycloak"
    AUTH0 = "auth0"
    FIREBASE = "firebase"


class BadImportFile(BadInput):
    """The file as a whole cannot be read: no header, unknown columns, not JSON."""


class ForeignIdentity(Struct, frozen=True):
    """A person at a provider, as a file names both."""

    provider: str
    subject: str


class ImportEntry(SecretRecord, frozen=True, kw_only=True):
    """One account as a file describes it; nothing is checked yet."""

    login: str = ""
    nick: str = ""
    name: str = ""
    given_name: str = ""
    family_name: str = ""
    username: str = ""
    phone: str = ""
    phone_verified: bool = False
    password_hash: SecretText = ""
    totp_secret: SecretText = ""
    tags: frozenset[str] = frozenset()
    purchases: frozenset[str] = frozenset()
    email_verified: bool | None = None  # None if the file does not say
    blocked: bool = False
    user_id: str = ""
    source_id: str = ""  # the account's ID in the other system, if it is not kept as user_id
    identities: tuple[ForeignIdentity, ...] = ()

    @property
    def title(self) -> str:
        """What a report names the account by."""
        return self.login or self.username or self.user_id


class FileRow(Struct, frozen=True):
    """One row of a file: its line, or its number in a JSON document, and its entry or what is wrong with it."""

    number: int
    entry: ImportEntry
    problem: str = ""


class RefusedRow(Struct, frozen=True):
    """A row that was not imported, or a part of one."""

    number: int
    title: str
    reason: str


class ImportedId(Struct, frozen=True, kw_only=True):
    """An account in the other system and here."""

    number: int
    title: str
    source_id: str
    user_id: str


class AccountCandidate(SecretRecord, frozen=True, kw_only=True):
    """A checked account, ready to be stored."""

    number: int
    title: str
    source_id: str = ""
    user: Annotated[User, HIDDEN]
    record: AuditRecord
    identities: tuple[Identity, ...] = ()
    left_out: tuple[str, ...] = ()  # why parts of the row are not imported
    has_own_id: bool  # the file names its user_id
    hash_kind: str  # empty without a password


class ExistingAccount(Struct, frozen=True, kw_only=True):
    user_id: str
    login_key: str | None
    import_id: str  # empty unless an import created it


class ImportOutcome(StrEnum):
    IMPORTED = "imported"
    KNOWN = "known"  # by an earlier, interrupted run of the same import
    REFUSED = "refused"
    ID_USED = "id_used"  # the generated ID is taken: try another one


class Verdict(Struct, frozen=True):
    outcome: ImportOutcome
    reason: str = ""
    user_id: str = ""  # of a known account


NEW: Final = Verdict(ImportOutcome.IMPORTED)
ID_USED: Final = Verdict(ImportOutcome.ID_USED)


class StoredNames(Struct, frozen=True, kw_only=True):
    """What is stored of the names in a batch."""

    by_id: Mapping[str, ExistingAccount]
    by_login: Mapping[str, ExistingAccount]
    by_identity: Mapping[tuple[str, str], ExistingAccount]  # by issuer and subject
    used_ids: frozenset[str]  # by existing and by deleted accounts
    username_owners: Mapping[str, str]  # the user ID, or empty for a deleted account
    phone_owners: Mapping[str, str] = msgspec.field(default_factory=dict)  # the user ID, of verified numbers
    banned: Mapping[str, str] = msgspec.field(
        default_factory=dict
    )  # candidates of people banned under another account

    def judge(self, candidate: AccountCandidate, import_id: str) -> Verdict:
        """Decide about one account: nothing that exists is ever changed."""
        user = candidate.user
        with_login = self.by_login.get(user.login_key or "")
        with_identity = next(filter(None, map(self._owner, candidate.identities)), None)
        account = with_login or (self.by_id.get(user.user_id) if candidate.has_own_id else with_identity)
        if account is not None and self._is_same(account, candidate, import_id):
            return Verdict(ImportOutcome.KNOWN, user_id=account.user_id)
        reason = self._refusal(candidate, with_login, with_identity)
        if reason:
            return refusal_verdict(reason)
        return ID_USED if user.user_id in self.used_ids else NEW

    def _refusal(
        self, candidate: AccountCandidate, with_login: ExistingAccount | None, with_identity: ExistingAccount | None
    ) -> str:
        user = candidate.user
        if candidate.has_own_id and user.user_id in self.used_ids:
            return f"the user ID {user.user_id} is in use or was used before"
        if with_login is not None:
            return f"the login belongs to user {with_login.user_id}"
        if user.username is not None and user.username in self.username_owners:
            return f"the user name {user.username} belongs to another account, or did before"
        if with_identity is not None:
            return f"an identity of it belongs to user {with_identity.user_id}"
        if user.user_id in self.banned:
            return f"the person is banned from this installation: ban {self.banned[user.user_id]}"
        return self._phone_refusal(user)

    def _phone_refusal(self, user: User) -> str:
        user_id = self.phone_owners.get(user.phone) if user.phone_verified else None
        if user_id is None:
            return ""
        return f"the phone number is verified for user {user_id}"

    def _owner(self, identity: Identity) -> ExistingAccount | None:
        return self.by_identity.get((identity.issuer, identity.subject))

    def _is_same(self, account: ExistingAccount, candidate: AccountCandidate, import_id: str) -> bool:
        """Whether this import created the account from this row."""
        same_id = not candidate.has_own_id or account.user_id == candidate.user.user_id
        return account.import_id == import_id and account.login_key == candidate.user.login_key and same_id


def refusal_verdict(reason: str) -> Verdict:
    return Verdict(ImportOutcome.REFUSED, reason)


# What the storage does with a batch of one import, by its ID: it says what it would do with each account, or stores
# the new ones with their audit records in one transaction. Storing raises Conflict, and stores nothing, when another
# process took one of the names meanwhile.
BatchFunction: TypeAlias = Callable[[Sequence[AccountCandidate], str], Awaitable[Sequence[Verdict]]]
