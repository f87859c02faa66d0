"""Accounts, their sessions and the links sent to them (R1).

A login is an email address, stored as written and compared in one canonical spelling.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import BadAccount
from gatehouse.kernel.text import is_plain_line, nfc

MAX_LOGIN_LENGTH: Final = 254  # RFC 5321 §4.5.3.1.3, less the angle brackets
MAX_LOCAL_LENGTH: Final = 64
# Parts separated by dots, of characters that need no quoting (RFC 5322 §3.2.3) in any script.
LOCAL_PART: Final = re.compile(r"[^\s\"(),:;<>@\[\\\].]+(\.[^\s\"(),:;<>@\[\\\].]+)*")
DOMAIN_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
DOMAIN: Final = re.compile(rf"{DOMAIN_LABEL}(\.{DOMAIN_LABEL})*", re.ASCII)


def check_login(text: str) -> str:
    """Return the login in its stored form; a domain in another script must be given in ASCII. Raises BadAccount."""
    login = nfc(text.strip(" "))
    local, at, domain = login.rpartition("@")
    well_formed = (
        at
        and len(login) <= MAX_LOGIN_LENGTH
        and len(local) <= MAX_LOCAL_LENGTH
        and is_plain_line(login)
        and LOCAL_PART.fullmatch(local)
        and DOMAIN.fullmatch(_ascii_lower(domain))
    )
    if not well_formed:
        raise BadAccount("the login must be an email address").on_screen("login_email")
    return login


def login_key(login: str) -> str:
    """Return the canonical spelling of a login; case is ignored in both halves."""
    local, _, domain = nfc(login.strip(" ")).rpartition("@")
    return f"{nfc(local.casefold())}@{_ascii_lower(domain)}"


def _ascii_lower(text: str) -> str:
    # str.lower would turn the Kelvin sign into a plain k, which is another domain.
    return text.lower() if text.isascii() else text


MAX_SEARCH_KEY: Final = 200  # characters: an index of PostgreSQL has entries of at most 2,704 bytes


def search_key(text: str) -> str:
    """Return a nick, a name or a search for them as they are compared; case is ignored."""
    return nfc(text.casefold())[:MAX_SEARCH_KEY]


ADMINISTRATOR_ROLE: Final = "administrator"  # the root role of application 1 that grants everything (R5)
CENTRAL_APPLICATION: Final = 1  # the service's own application (R5)

JOINED_KEY: Final = "joined"  # in `meta`: how the account was created
SELF_REGISTERED: Final = "registered"  # by an unverified client
IMPORTED_ACCOUNT: Final = "imported"  # from another system, where anyone may have registered it

MAX_NICK_LENGTH: Final = 64
MAX_TAG_LENGTH: Final = 64
MAX_TAGS: Final = 100


class AccountKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"  # a service account: no login, no password, belongs to a project


class SignInMethod(StrEnum):
    """How a person authenticated (R1)."""

    LOGIN = "login"
    TWO_STEP = "2step"
    OPENID = "openid"
    PASSKEY = "passkey"
    PROVIDER = "provider"  # an identity at a sign-in provider (R10)
    PLATFORM = "platform"  # a ticket or token of a game platform
    GUEST = "guest"  # a device key
    EMAIL = "email"  # a link or code by email, without a password


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    user_id: str
    kind: AccountKind = AccountKind.PERSON
    login: str | None
    nick: str
    password_hash: str | None = field(default=None, repr=False)
    lang: str = "en"
    country: str = ""
    level: str = "normal"
    reg_time: int
    email_verified: bool = False
    phone_verified: bool = False
    email_code: bool = False  # codes by email are enabled as a second factor
    blocked: bool = False
    rev: int = 0  # revocation epoch: a token with an older one is refused (R2)
    meta: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    service_tags: frozenset[str] = frozenset()  # stored like tags, but set by this service only
    purchases: frozenset[str] = frozenset()
    sealed_totp: bytes | None = field(default=None, repr=False)
    passkeys: int = 0
    name: str = ""  # the full name, as its owner writes it
    given_name: str = ""
    family_name: str = ""
    username: str | None = None  # unique, for signing in and as preferred_username (R9)
    username_at: int = 0  # last chosen by a person; 0 while it was only generated
    zoneinfo: str = ""  # of the IANA database, such as Europe/Berlin
    picture: str = ""  # ID of the stored image
    updated_at: int = 0  # last change of the profile; 0 since registration
    bans: tuple[UserBan, ...] = ()  # also those that have ended
    version: int = 1

    @property
    def may_add_factors(self) -> bool:
        """False for a self-registered or imported account whose address was never verified.

        Otherwise a stranger could register another person's address, add a passkey, and still have access after the
        owner has set a password.
        """
        return self.email_verified or self.meta.get(JOINED_KEY) not in {SELF_REGISTERED, IMPORTED_ACCOUNT}

    @property
    def login_key(self) -> str | None:
        return None if self.login is None else login_key(self.login)

    @property
    def tag_text(self) -> str:
        return ",".join(sorted(self.tags | self.system_tags))

    @property
    def has_second_factor(self) -> bool:
        return self.sealed_totp is not None or self.passkeys > 0 or self.email_code

    @property
    def system_tags(self) -> frozenset[str]:
        """Tags that are managed automatically (R1, R10); they cannot be set."""
        facts = {
            "email_verified": self.email_verified,
            "phone_verified": self.phone_verified,
            "2step": self.has_second_factor,
            "2step_totp": self.sealed_totp is not None,
            "2step_passkey": self.passkeys > 0,
            "2step_email": self.email_code,
        }
        return self.service_tags | {tag for tag, holds in facts.items() if holds}


SYSTEM_TAGS: Final = frozenset(
    {"email_verified", "phone_verified", "2step", "2step_totp", "2step_passkey", "2step_email"}
)


GUEST_TAG: Final = "guest"
LINKED_TAG_PREFIX: Final = "linked_"  # and the ID of the provider


def is_service_tag(tag: str) -> bool:
    """Whether a tag says how a person can sign in (R10); only the service sets it."""
    return tag == GUEST_TAG or tag.startswith(LINKED_TAG_PREFIX)


GUEST_PROVIDER: Final = "guest"  # the provider of device keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Unique by issuer and subject; linked only by its signed-in owner, never by an equal email address."""

    issuer: str  # fixed when the provider is created
    subject: str  # the person there; never given to another one
    user_id: str
    provider: str  # the ID of the provider it came from
    label: str  # what the owner recognizes it by: the name or address there
    created_at: int
    used_at: int  # the last sign-in


def service_tag(provider: str) -> str:
    """Return the tag that an account has while it has an identity of the provider."""
    return GUEST_TAG if provider == GUEST_PROVIDER else f"{LINKED_TAG_PREFIX}{provider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupLink:
    """A link that opens the page to create the first administrator, once."""

    digest: bytes
    created_at: int
    expires_at: int


class LinkKind(StrEnum):
    """What a mailed link does."""

    VERIFY = "verify_email"
    INVITE = "invite"
    RESET = "reset"
    CHANGE = "change_email"  # sent to the new address


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailLink:
    """A link sent to an account's address, which proves access to that mailbox and works once."""

    kind: LinkKind
    digest: bytes
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailSignInRequest:
    """A request to sign in by email, as stored: one per browser, digests only."""

    browser: bytes  # a digest of a secret that only this browser has
    user_id: str
    code: bytes
    link: bytes
    sealed: bytes = field(repr=False)  # what it is for
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailSignInProof:
    """The code or the link that a browser answers its request with."""

    browser: bytes
    code: bytes | None = None
    link: bytes | None = None


class SessionStrength(StrEnum):
    FULL = "full"
    LIMITED = "limited"  # from a short-lived token: signs in to first-party clients only (R1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    digest: bytes
    session_id: str
    user_id: str
    rev: int
    auth: SignInMethod
    second_factor: str = ""  # the `Factor` that was used after a password
    strength: SessionStrength
    created_at: int
    proved_at: int
    seen_at: int
    idle_ends_at: int
    ends_at: int
    address: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSession:
    session: Session
    user: User


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginTokenRecord:
    """What is stored of a login: digests only."""

    user_id: str
    rev: int
    application_id: int
    token: bytes
    token_ends_at: int
    stoken: bytes | None
    stoken_ends_at: int
    auth: SignInMethod
    address: str  # stoken works only from this address
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTokenOwner:
    user_id: str
    rev: int
    auth: SignInMethod  # how the person signed in to get the token


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginToken:
    """The `token` of login data (R1): not an OAuth token, but its application can introspect it."""

    user_id: str
    application_id: int  # 0 for none
    ends_at: int


# Service accounts, as other packages see them.


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineAccount:
    """A live service account: not revoked, in a project that is not removed."""

    user_id: str
    project_id: str
    rev: int  # its revocation epoch
    public_key: str  # PEM; when there is one, the account's JWT alone proves nothing (R1)
    ip_ranges: tuple[str, ...]  # where it may be used; anywhere if empty
