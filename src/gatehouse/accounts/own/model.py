"""What is kept about a person beside the account itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from gatehouse.accounts.logins import login_key
from gatehouse.accounts.model import Session, User
from gatehouse.accounts.second_factors.model import Factor, FactorOverview, Passkey
from gatehouse.audit.model import AuditOrigin, AuditRecord

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
