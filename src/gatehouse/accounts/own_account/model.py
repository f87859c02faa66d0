"""What can go wrong with one's own account."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import EmailLink, Session, SignInMethod, User, login_key
from gatehouse.accounts.second_factors.model import Factor, FactorOverview, Passkey
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.errors import Conflict, Refused
from gatehouse.mail.model import OutboxMail


class SameAddress(BadAccount):
    """The new address is the old one."""


class LastAdministrator(Conflict):
    public = "This is the last administrator. Make someone else an administrator first."


class SessionEnded(Refused):
    """Ended from elsewhere while its owner was proving himself."""

    public = "This session has ended; sign in again."


class NothingToProve(Refused):
    """An account that has neither a password nor a factor has no proof to repeat."""

    public = "This account has no password and no second factor. Set a password by email first."


# What is kept about a person beside the account itself.


MAX_ACTIVITY_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDetails:
    """Everything the account page shows, read at once."""

    overview: FactorOverview
    passkeys: Sequence[Passkey]  # the oldest first
    sessions: Sequence[Session]  # live ones, the last seen first
    records: Sequence[AuditRecord]  # about this account, the newest first
    pending_login: str  # a new address that waits for its proof


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedRole:
    application_id: int
    role: str
    project_id: str  # "" at the root
    ends_at: int  # 0 for no end


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentedClient:
    """What a person allowed a client of others to know."""

    client_id: str
    scopes: Sequence[str]
    given_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSignIn:
    """One sign-in to a client whose tokens may still be good, or were a short while ago."""

    client_id: str
    scopes: Sequence[str]
    created_at: int
    ends_at: int
    revoked_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationData:
    """What an application says it keeps about a person."""

    application_id: int
    application: str
    answered_at: int
    document: bytes  # JSON, as it came


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalRecords:
    """All that is kept about a person, for a copy of it."""

    details: AccountDetails
    roles: Sequence[AssignedRole]
    allowed: Sequence[ConsentedClient]
    sign_ins: Sequence[ClientSignIn]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailChange:
    """An address that an account gets once somebody proves to read that mailbox."""

    owner: User
    login: str

    @property
    def new_key(self) -> str:
        return login_key(self.login)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountActivity:
    """One line of the activity list."""

    at: int
    event: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReauthenticationMethods:
    """What a person is asked for to prove that it is still he: the same as at his sign-in."""

    password: bool
    factors: tuple[Factor, ...]  # one of them, if any

    @property
    def is_empty(self) -> bool:
        return not self.password and not self.factors

    @property
    def can_be_typed(self) -> bool:
        """False when a passkey is all there is beside the password: then the password alone proves nothing."""
        return not self.factors or any(factor is not Factor.PASSKEY for factor in self.factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReauthenticationInput:
    password: str = field(default="", repr=False)
    otp: str = field(default="", repr=False)
    credential: str = field(default="", repr=False)  # of a passkey, which is all that is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReauthenticationClient:
    """Who says that it is still he, and from where."""

    source: str  # as throttles count it
    device_cookie: str  # of the device, if the browser sent one
    browser: bytes  # digest of what only this browser has
    device: str  # "Firefox on Linux"
    origin: AuditOrigin


# What a person's dealings with his own account need kept.


class ProfileStore(Protocol):
    async def account_details(self, user_id: str, now: int) -> AccountDetails:
        """What is kept beside the account; the newest ACTS_SHOWN records only."""

    async def set_nick(self, user_id: str, nick: str, entry: AuditRecord) -> None:
        """Raises UserNotFound."""

    async def set_lang(self, user_id: str, lang: str, entry: AuditRecord) -> None:
        """Raises UserNotFound."""


class EmailChangeStore(Protocol):
    async def user_by_login(self, login_key: str) -> User | None:
        """Return the account whose login has this spelling."""

    async def save_email_change(
        self, owner: User, link: EmailLink, login: str, entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Keep the link, bound to the account, its present address and the new one; an older one dies with it."""

    async def find_email_change(self, digest: bytes, now: int) -> EmailChange | None:
        """What the link would change now; takes nothing.

        None when it was taken, replaced or never was, when it has expired, and when the account is gone, has
        another address than it had, or had its sessions ended: whoever is thrown out leaves no way back.
        """

    async def apply_email_change(
        self, digest: bytes, change: EmailChange, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> None:
        """Take the link and give the account its new address, confirmed, in one act; its other links die.

        Raises LinkDead, also when somebody else has that address by now. Of any number of callers one succeeds.
        """


class PasswordChangeStore(Protocol):
    async def set_password(
        self,
        user: User,
        password_hash: str,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        *,
        keep: bytes,
        now: int,
    ) -> None:
        """Replace the password and end every link, token and session but `keep`, in one act.

        Raises UserChanged when the account's sessions were ended since it was read: whoever was thrown out
        meanwhile sets no password.
        """


class ReauthenticationStore(Protocol):
    async def rotate_session_secret(
        self, digest: bytes, fresh: bytes, auth: SignInMethod, entry: AuditRecord, now: int
    ) -> bool:
        """Give a session another secret and note that its owner has just proved himself, in one act.

        False, and nothing recorded, when it has ended: a session that was ended is never revived.
        """


class ExportStore(Protocol):
    async def personal_records(self, user_id: str, now: int) -> PersonalRecords:
        """All of it, every record included, as it was at one moment."""

    async def add_record(self, record: AuditRecord) -> None:
        """Keep the record of an act that changes nothing else."""


class ApplicationDataSource(Protocol):
    async def collect(self, user_id: str) -> Sequence[ApplicationData]:
        """Hand over what applications have answered about the person since they were asked; each answer once."""


class ErasureStore(Protocol):
    async def erase_user(self, user_id: str, entry: AuditRecord, *, even_last_administrator: bool, now: int) -> None:
        """Remove the account and all that is kept of the person; its id stays spent.

        Applications that have addresses for it are told to do the same, from the same commit on (R6).
        Audit records about it stay, without their personal parts, and the chain still holds. Raises UserNotFound;
        and LastAdministrator, also when the last two go at the same moment.
        """
