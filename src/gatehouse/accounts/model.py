"""Accounts, their sessions and the links sent to them (R1).

A login is an email address, stored as written and unique in one canonical spelling. Accounts that had the same before
compatibility forms were compared keep their exact spelling, and are found by it first.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import (
    MAX_NAME_LENGTH,
    MAX_NICK_LENGTH,
    MAX_USERNAME_LENGTH,
    MAX_ZONE_LENGTH,
    check_country,
    check_labels,
    check_lang,
    check_name,
    check_nick,
    check_tags,
    check_username,
    check_zoneinfo,
)
from gatehouse.accounts.phones.numbers import MAX_PHONE_LENGTH, check_phone
from gatehouse.accounts.system_tags import GUEST_TAG, LINKED_TAG_PREFIX
from gatehouse.fields.model import Field, Kind, described_fields
from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText
from gatehouse.kernel.text import compatible, is_plain_line, nfc

MAX_LOGIN_LENGTH: Final = 254  # RFC 5321 §4.5.3.1.3, less the angle brackets
MAX_LOCAL_LENGTH: Final = 64
# Parts separated by dots, of characters that need no quoting (RFC 5322 §3.2.3) in any script.
LOCAL_PART: Final = re.compile(r"[^\s\"(),:;<>@\[\\\].]+(\.[^\s\"(),:;<>@\[\\\].]+)*")
DOMAIN_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
LOCAL_DOMAIN: Final = "localhost"
DOMAIN: Final = re.compile(rf"{DOMAIN_LABEL}(\.{DOMAIN_LABEL})*", re.ASCII)


def check_login(text: str) -> str:
    """Return the login in its stored form; a domain in another script must be given in ASCII. Raises BadAccount."""
    login = nfc(text.strip(" "))
    local, at, domain = login.rpartition("@")
    well_formed = (
        at
        and len(login) <= MAX_LOGIN_LENGTH
        and is_plain_line(login)
        and _is_local_part(local)
        and DOMAIN.fullmatch(_ascii_lower(domain))
    )
    if not well_formed:
        raise BadAccount("not an email address").on_screen("login_email")
    return login


def check_new_login(text: str) -> str:
    """Return the same for an address that is new here: its domain has a dot, or is localhost. Raises BadAccount."""
    login = check_login(text)
    if not has_public_domain(login):
        raise BadAccount("not an email address").on_screen("login_email")
    return login


def has_public_domain(login: str) -> bool:
    domain = login.rpartition("@")[2]
    return "." in domain or _ascii_lower(domain) == LOCAL_DOMAIN


def login_key(login: str) -> str:
    """Return the canonical spelling of a login, in which it is unique; case and compatibility forms are ignored.

    A half that is no part of an address in that spelling, because it has an @ then, keeps its exact one.
    """
    exact = exact_login(login)
    if exact.isascii():
        return exact
    local, _, domain = exact.rpartition("@")
    plain_local, plain_domain = compatible(local), compatible(domain)
    return "@".join(
        (
            plain_local if _is_local_part(plain_local) else local,
            plain_domain if DOMAIN.fullmatch(plain_domain) else domain,
        )
    )


def exact_login(login: str) -> str:
    """Return the exact spelling of a login, which names one mailbox; only case is ignored, in both halves."""
    local, _, domain = nfc(login.strip(" ")).rpartition("@")
    return f"{nfc(local.casefold())}@{_ascii_lower(domain)}"


def login_keys(login: str) -> tuple[str, ...]:
    """Return what an account with this login may be stored under, the best match first."""
    return tuple(dict.fromkeys((exact_login(login), login_key(login))))


def is_same_mailbox(login: str, other: str) -> bool:
    """Whether a proof of one address is a proof of the other: equal canonical spellings are not enough for that."""
    return exact_login(login) == exact_login(other)


def _is_local_part(text: str) -> bool:
    return len(text) <= MAX_LOCAL_LENGTH and LOCAL_PART.fullmatch(text) is not None


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
ADDRESS_CHANGED: Final = "changed"  # its address was set later, by an administrator
ADDRESS_PROVED: Final = "proved"  # its owner has proved its address by email; what was before does not count
UNPROVED_ORIGINS: Final = frozenset({SELF_REGISTERED, IMPORTED_ACCOUNT})


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


class EnabledMethods(Struct, frozen=True, kw_only=True):
    """What a person can sign in with now, beside a password with an email address and a passkey."""

    by_email: bool = False
    by_username: bool = False
    providers: tuple[str, ...] = ()  # IDs of those that sign people in; GUEST_PROVIDER if guests may

    def has_identity(self, user: "User") -> bool:
        """Return whether the account has an identity that it can be entered with."""
        return any(service_tag(provider) in user.service_tags for provider in self.providers)


MAX_LANG_LENGTH: Final = 35  # BCP 47 §4.4.1
FORM: Final = "account"  # the console's form of an account


@dataclass(frozen=True, slots=True)
class AccountField(Field):
    """The description of a field of an account that administrators may edit."""

    _: KW_ONLY
    is_profile: bool = False  # a change is dated (`updated_at`)
    owner_may_set: bool = False  # on the account page
    is_personal: bool = False  # recorded where erasure finds it
    autocomplete: str = "off"
    claim: str = ""  # of the scope `profile`, if its value is the text of the field
    people_only: bool = False  # service accounts have none


class User(SecretRecord, frozen=True, kw_only=True):
    """An account; an `AccountField` says how the API, files, the command line and forms read a field."""

    user_id: str
    kind: AccountKind = AccountKind.PERSON
    nick: Annotated[
        str,
        AccountField(
            "Display name.",
            section=FORM,
            hint=False,
            maximum=MAX_NICK_LENGTH,
            check=check_nick,
            is_profile=True,
            owner_may_set=True,
            is_personal=True,
            autocomplete="nickname",
        ),
    ]
    login: Annotated[
        str | None, AccountField("Email to sign in with.", kind=Kind.EMAIL, check=check_new_login, is_personal=True)
    ]
    exact_key: str = ""  # of an account that shares its canonical spelling with an older one: stored under this
    email_verified: Annotated[bool, AccountField("The email is verified.")] = False
    name: Annotated[  # as its owner writes it
        str,
        AccountField(
            "Full name.",
            section=FORM,
            hint=False,
            people_only=True,
            maximum=MAX_NAME_LENGTH,
            check=check_name,
            is_profile=True,
            owner_may_set=True,
            is_personal=True,
            autocomplete="name",
        ),
    ] = ""
    given_name: Annotated[
        str,
        AccountField(
            "Given name.",
            section=FORM,
            hint=False,
            people_only=True,
            maximum=MAX_NAME_LENGTH,
            check=check_name,
            is_profile=True,
            owner_may_set=True,
            is_personal=True,
            autocomplete="given-name",
            claim="given_name",
            is_short=True,
        ),
    ] = ""
    family_name: Annotated[
        str,
        AccountField(
            "Family name.",
            section=FORM,
            hint=False,
            people_only=True,
            maximum=MAX_NAME_LENGTH,
            check=check_name,
            is_profile=True,
            owner_may_set=True,
            is_personal=True,
            autocomplete="family-name",
            claim="family_name",
            is_short=True,
        ),
    ] = ""
    username: Annotated[  # unique, for signing in and as preferred_username (R9)
        str | None,
        AccountField(
            "User name to sign in with.",
            section=FORM,
            people_only=True,
            maximum=MAX_USERNAME_LENGTH,
            check=check_username,
            is_profile=True,
            is_personal=True,
            is_short=True,
        ),
    ] = None
    zoneinfo: Annotated[
        str,
        AccountField(
            "Time zone of the IANA database, such as Europe/Berlin.",
            section=FORM,
            people_only=True,
            maximum=MAX_ZONE_LENGTH,
            check=check_zoneinfo,
            is_profile=True,
            owner_may_set=True,
            is_personal=True,
            claim="zoneinfo",
            is_short=True,
        ),
    ] = ""
    lang: Annotated[
        str,
        AccountField(
            "Language of pages and emails.",
            section=FORM,
            hint=False,
            maximum=MAX_LANG_LENGTH,
            check=check_lang,
            is_profile=True,
            is_short=True,
        ),
    ] = "en"
    country: Annotated[
        str, AccountField("Country, as two letters.", section=FORM, maximum=2, check=check_country, is_short=True)
    ] = ""
    phone: Annotated[  # in E.164; unique among those that are verified
        str,
        AccountField(
            "Phone number in E.164, like +4915123456789.",
            section=FORM,
            people_only=True,
            maximum=MAX_PHONE_LENGTH,
            check=check_phone,
            is_personal=True,
            autocomplete="tel",
            is_short=True,
        ),
    ] = ""
    phone_verified: Annotated[bool, AccountField("The phone number is verified.", people_only=True)] = False
    picture: Annotated[  # ID of the stored image
        str, AccountField("Picture.", kind=Kind.IMAGE, is_profile=True)
    ] = ""
    tags: Annotated[
        frozenset[str], AccountField("Tags, one per line.", section=FORM, check=check_tags, is_short=True)
    ] = frozenset()
    purchases: Annotated[
        frozenset[str], AccountField("Purchases, one per line.", section=FORM, check=check_labels, is_short=True)
    ] = frozenset()
    password_hash: SecretText | None = None
    password_browser: str = ""  # digest of the browser that chose the password at its registration
    level: str = "normal"
    reg_time: int
    email_code: bool = False  # codes by email are enabled as a second factor
    phone_code: bool = False  # likewise codes by text message
    phone_closed: bool = False  # as a factor, after too many wrong codes
    blocked: bool = False
    rev: int = 0  # revocation epoch: a token with an older one is refused (R2)
    meta: Mapping[str, str] = msgspec.field(default_factory=dict)
    service_tags: frozenset[str] = frozenset()  # stored like tags, but set by this service only
    provided_tags: frozenset[str] = frozenset()  # set by providers, whether people set them too or not
    provided_purchases: frozenset[str] = frozenset()
    sealed_totp: SecretBytes | None = None
    passkeys: int = 0
    username_at: int = 0  # last chosen by a person; 0 while it was only generated
    updated_at: int = 0  # last change of the profile; 0 since registration
    bans: tuple[UserBan, ...] = ()  # also those that have ended
    version: int = 1

    def is_banned_anywhere(self, now: int) -> bool:
        return any(ban.is_active(now) for ban in self.bans)

    @property
    def unproved_origin(self) -> str:
        """How the account was created, if no one has proved that address by email since; else empty (R10)."""
        joined = self.meta.get(JOINED_KEY, "")
        return joined if joined in UNPROVED_ORIGINS else ""

    @property
    def may_add_factors(self) -> bool:
        """False for a self-registered or imported account whose address was never verified.

        Otherwise a stranger could register another person's address, add a passkey, and still have access after the
        owner has set a password. An account without an address has none of another person.
        """
        return self.login is None or self.email_verified or not self.unproved_origin

    @property
    def needs_factor_for_address(self) -> bool:
        """Whether a mailed link verifies the address only after the second factor: it was set later (R10)."""
        return self.meta.get(JOINED_KEY) == ADDRESS_CHANGED and self.has_second_factor

    @property
    def login_key(self) -> str | None:
        """The spelling of the login that the account is stored under."""
        if self.login is None:
            return None
        keeps_exact = self.exact_key and self.exact_key == exact_login(self.login)
        return self.exact_key if keeps_exact else login_key(self.login)

    @property
    def all_tags(self) -> frozenset[str]:
        return self.tags | self.provided_tags | self.system_tags

    @property
    def all_purchases(self) -> frozenset[str]:
        return self.purchases | self.provided_purchases

    @property
    def tag_text(self) -> str:
        return ",".join(sorted(self.all_tags))

    @property
    def has_second_factor(self) -> bool:
        return self.sealed_totp is not None or self.passkeys > 0 or self.email_code or self.phone_code

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
            "2step_phone": self.phone_code,
        }
        return self.service_tags | {tag for tag, holds in facts.items() if holds}


ACCOUNT_FIELDS: Final = tuple(described_fields(User, AccountField))
CLAIM_FIELDS: Final = tuple(field for field in ACCOUNT_FIELDS if field.field.claim)
FORM_FIELDS: Final = tuple(field for field in ACCOUNT_FIELDS if field.field.section == FORM)
OWN_FIELDS: Final = tuple(field for field in ACCOUNT_FIELDS if field.field.owner_may_set)


def account_values(user: User) -> dict[str, Any]:
    """Return the described fields as entries have them, with sorted labels."""
    values = {field.name: field.value_of(user) for field in ACCOUNT_FIELDS}
    return values | {
        field.name: tuple(sorted(values[field.name])) for field in ACCOUNT_FIELDS if field.kind is Kind.LABELS
    }


GUEST_PROVIDER: Final = "guest"  # the provider of device keys


class Identity(Struct, frozen=True, kw_only=True):
    """Unique by issuer and subject; linked only by its signed-in owner, never by an equal email address."""

    issuer: str  # fixed when the provider is created
    subject: str  # the person there; never given to another one
    user_id: str
    provider: str  # the ID of the provider it came from
    label: str  # what the owner recognizes it by: the name or address there
    created_at: int
    used_at: int  # the last sign-in


class ProvidedLabel(Struct, frozen=True, kw_only=True):
    """A tag or purchase that a provider set, with its source."""

    name: str
    is_purchase: bool = False
    provider: str
    issuer: str
    subject: str
    kept: bool = False  # stays without the identity


class ProviderAnswer(Struct, frozen=True, kw_only=True):
    """What a provider says about a person's tags and purchases: whether they have it; nothing about others."""

    tags: Mapping[str, bool] = msgspec.field(default_factory=dict)
    kept_tags: frozenset[str] = frozenset()  # of rules that keep them
    purchases: Mapping[str, bool] = msgspec.field(default_factory=dict)


class ProvidedLabels(Struct, frozen=True, kw_only=True):
    """What a provider may set by its settings of now."""

    tags: Mapping[str, bool] = msgspec.field(default_factory=dict)  # whether the rule keeps the tag
    purchases: frozenset[str] = frozenset()


def service_tag(provider: str) -> str:
    """Return the tag that an account has while it has an identity of the provider."""
    return GUEST_TAG if provider == GUEST_PROVIDER else f"{LINKED_TAG_PREFIX}{provider}"


class SetupLink(Struct, frozen=True, kw_only=True):
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


class FlowReference(SecretRecord, frozen=True, kw_only=True):
    """The sign-in flow that a registration or a reset began in, and what pages show about it after its end."""

    handle: SecretText = ""
    application: str = ""  # its name
    logo: str = ""  # path of its logo
    start: str = ""  # an address where the application starts a sign-in of its own; empty if none is known
    form_action: str = ""  # where the flow ends (Content-Security-Policy)


class PendingRegistrationRecord(SecretRecord, frozen=True, kw_only=True):
    """A registration that waits in its browser, as stored."""

    browser: bytes  # a digest of a secret that only this browser has
    user_id: str
    sealed: SecretBytes
    created_at: int
    expires_at: int


class EmailLink(Struct, frozen=True, kw_only=True):
    """A link sent to an account's address, which proves access to that mailbox and works once."""

    kind: LinkKind
    digest: bytes
    shown: bytes = b""  # digest of a second secret, for a copy of the link that proves nothing (R9)
    sealed: bytes = b""  # the browser and the flow that asked for it, if a flow did
    created_at: int
    expires_at: int


class OpenLink(Struct, frozen=True, kw_only=True):
    """A link that could be used now."""

    owner: User
    is_shown: bool = False  # someone else saw it: it sets a password and proves no address (R9)
    sealed: bytes = b""  # as in `EmailLink`


class EmailSignInRequest(SecretRecord, frozen=True, kw_only=True):
    """A request to sign in by email, as stored: one per browser, digests only."""

    browser: bytes  # a digest of a secret that only this browser has
    user_id: str
    code: bytes
    link: bytes
    sealed: SecretBytes  # what it is for
    created_at: int
    expires_at: int


class EmailSignInProof(Struct, frozen=True, kw_only=True):
    """The code or the link that a browser answers its request with."""

    browser: bytes
    code: bytes | None = None
    link: bytes | None = None


class SessionStrength(StrEnum):
    FULL = "full"
    LIMITED = "limited"  # from a short-lived token: signs in to first-party clients only (R1)


# Service accounts, as other packages see them.


class MachineAccount(Struct, frozen=True, kw_only=True):
    """A live service account: not revoked, in a project that is not removed."""

    user_id: str
    project_id: str
    rev: int  # its revocation epoch
    public_key: str  # PEM; when there is one, the account's JWT alone proves nothing (R1)
    ip_ranges: tuple[str, ...]  # where it may be used; anywhere if empty
