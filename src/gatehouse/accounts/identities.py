"""Identities: who a person is at a sign-in provider or on a game platform (R10)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gatehouse.accounts.model import GUEST_TAG, LINKED_TAG_PREFIX
from gatehouse.kernel.errors import Conflict, Refused

GUEST_PROVIDER: Final = "guest"  # the provider of device keys
MAX_IDENTITIES: Final = 20  # of one account
MAX_SUBJECT_LENGTH: Final = 255
MAX_LABEL_LENGTH: Final = 100


class IdentityTaken(Conflict):
    """The identity belongs to an account already, maybe since a moment ago."""

    public = "This sign-in method is connected to another account."


class TooManyIdentities(Conflict):
    public = f"An account can have at most {MAX_IDENTITIES} connected sign-in methods."


class IdentityNotFound(Conflict):
    public = "This sign-in method is not connected."


class LastWayIn(Conflict):
    """Removing it would leave the account without a password, a passkey and an identity."""

    public = "This is the only way to sign in to this account. Add another one first."


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


class NotSignedIn(Refused):
    """An identity was proved, but it opens no account; the kinds differ in what a person can do."""


class NoAccountForIdentity(NotSignedIn):
    """Its owner linked it to no account, and the provider may not create accounts."""

    public = "No account is connected to this sign-in method."


class ForeignDomainRefused(NotSignedIn):
    """The provider is for verified addresses of certain domains."""

    public = "Your email address is not allowed to sign in with this provider."


class AddressHasAccount(NotSignedIn):
    """An account with this verified address exists; it is not joined (R10)."""

    public = "An account with your email address exists. Sign in first, then connect this sign-in method."


class IdentityBlocked(NotSignedIn):
    """The account of the identity is blocked."""

    public = "You cannot sign in with this account."


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPerson:
    """What a provider or platform says about the person who signed in there."""

    issuer: str
    subject: str
    email: str = ""
    email_verified: bool = False
    name: str = ""
    nick: str = ""
    claims: Mapping[str, object] = field(default_factory=dict, repr=False)
    purchases: frozenset[str] = frozenset()  # what the person owns there (R10)

    @property
    def label(self) -> str:
        return (self.email or self.nick or self.name or self.subject)[:MAX_LABEL_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRule:
    """Sets a tag while a claim has a value, or contains it."""

    claim: str
    value: str
    tag: str

    def holds(self, claims: Mapping[str, object]) -> bool:
        found = claims.get(self.claim)
        several = found if isinstance(found, list) else [found]
        return any(self.value == text_of_claim(one) for one in several)


def text_of_claim(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRules:
    """What an administrator decided about the identities of a provider."""

    provider_id: str
    provider_name: str
    creates_accounts: bool = False
    domains: tuple[str, ...] = ()  # of verified addresses; all if empty
    tags: tuple[TagRule, ...] = ()
