"""Accounts, sessions, JWTs and bans, as the model has them.

People are known by their names. Each has one password, one browser, one device, one app for codes and one identity at
each provider.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from gatehouse.kernel.times import HOUR
from tests.fuzz.account_life.installation import OTHER, SANCTION, SHOP

Name: TypeAlias = str

GUEST: Final = "guest"  # the provider of device keys
PASSWORD: Final = "password"  # what a session can have proved
TOTP: Final = "totp"
REGISTERED: Final = "registered"  # how an account was made; no mark for any other way
IMPORTED: Final = "imported"
PROVED: Final = "proved"  # its owner proved the address by email
CHANGED: Final = "changed"  # its address was set by an administrator
UNPROVED_ORIGINS: Final = (REGISTERED, IMPORTED)

RESET: Final = "reset"  # what a mailed link does
CONFIRM: Final = "confirm"

INSTALLATION: Final = "installation"  # scopes of bans beside the applications
IN_PROJECT: Final = "project"
SCOPES: Final = (INSTALLATION, IN_PROJECT, SHOP, OTHER)

FRESH_SECONDS: Final = 600
SESSION_SECONDS: Final = 12 * HOUR


class Identity(NamedTuple):
    provider: str
    person: Name


Key: TypeAlias = Identity | str  # an identity or an address: what a ban finds a person by


@dataclass(eq=False, kw_only=True)
class Account:
    user_id: str
    made_at: int
    joined: str = ""
    login: str | None = None
    verified: bool = False
    password: Name = ""  # whose it is
    browser: Name = ""  # in whose browser it was chosen, at the registration
    identities: set[Identity] = field(default_factory=set)
    totp: Name = ""  # whose app has the secret
    tags: set[str] = field(default_factory=set)  # set by an administrator
    labels: dict[Identity, set[str]] = field(default_factory=dict)  # tags and purchases that a provider said
    sanctions: set[Identity] = field(default_factory=set)  # whose provider said so; they stay when it goes
    has_role: bool = False
    is_denied: bool = False  # a false entry for the rule of the role
    is_manager: bool = False  # of the project
    was_used: bool = False  # signed in to an application or game, ever
    took_over: bool = False  # a guest or an account, whose ID is an alias of this one
    devices: set[Name] = field(default_factory=set)  # at sign-ins of games
    blocked: bool = False
    lost: bool = False  # its only way in, with an address that was not proved
    gone: bool = False
    rev: int = 0
    owners: frozenset[Name] | None = None  # who may have a way in; None until an address was proved

    @property
    def address_is_settled(self) -> bool:
        """False as long as a stranger may have registered the address, here or where the account came from."""
        return not self.login or self.verified or self.joined not in UNPROVED_ORIGINS

    @property
    def needs_factor_for_address(self) -> bool:
        return self.joined == CHANGED and bool(self.totp)

    @property
    def is_guest(self) -> bool:
        return any(one.provider == GUEST for one in self.identities)

    @property
    def all_labels(self) -> set[str]:
        return self.tags.union(*self.labels.values(), {SANCTION} if self.sanctions else ())

    @property
    def keys(self) -> set[Key]:
        """What a ban finds the account by."""
        return {*self.identities, *([self.login] if self.login and self.verified else [])}

    @property
    def entrants(self) -> set[Name]:
        """Who has a credential that opens the account, apart from the reader of its mailbox."""
        with_password = {self.password} if self.password and self.login else set()
        return with_password | {one.person for one in self.identities}


@dataclass(kw_only=True)
class Session:
    account: Account
    rev: int
    since: int
    proved: set[str | Identity]
    by_provider: bool = False
    has_second_factor: bool = False


@dataclass(kw_only=True)
class KeptLink:
    """A mailed link that its reader opens later."""

    does: str
    account: Account
    address: str
    reader: Name
    text: str
    session: Session | None = None  # that asked to change the address


@dataclass(frozen=True, kw_only=True)
class Token:
    """What a sign-in left on a device or in an application: a JWT or a grant."""

    account: Account
    rev: int

    @property
    def is_live(self) -> bool:
        return self.rev == self.account.rev and not (self.account.gone or self.account.blocked)


@dataclass(eq=False, kw_only=True)
class Ban:
    account: Account
    scope: str
    by_moderator: bool
    until: int  # 0 for no end
    devices: frozenset[Name]
    keys: set[Key] = field(default_factory=set)  # that accounts with this ban gave up
    seen: set[Key] = field(default_factory=set)  # that accounts ever had while they had this ban
    copies: dict[Account, bool] = field(default_factory=dict)  # False: that account is exempt
    lifted: bool = False

    def is_active(self, now: int) -> bool:
        return not self.lifted and (self.until == 0 or now < self.until)

    def is_about(self, application: str) -> bool:
        """Whether it counts in the application or IN_PROJECT; without either, for the installation."""
        return self.scope in (INSTALLATION, application) or (self.scope == IN_PROJECT and application == SHOP)

    def is_on(self, account: Account) -> bool:
        return account is self.account or self.copies.get(account, False)

    @property
    def accounts_with_copy(self) -> list[Account]:
        return [account for account, counts in self.copies.items() if counts and not account.gone]

    def could_be_on(self, account: Account) -> bool:
        """Never on someone whom its author could not ban."""
        return not (self.by_moderator and account.is_manager)
