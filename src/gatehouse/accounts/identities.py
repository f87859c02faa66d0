"""Identities: who a person is at a sign-in provider or on a game platform (R10)."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from gatehouse.accounts.model import ProviderAnswer
from gatehouse.fields.secrets import HIDDEN, SecretRecord

MAX_LABEL_LENGTH: Final = 100


class ForeignPerson(SecretRecord, frozen=True, kw_only=True):
    """What a provider or platform says about the person who signed in there."""

    issuer: str
    subject: str
    email: str = ""
    email_verified: bool = False
    name: str = ""
    nick: str = ""
    claims: Annotated[Mapping[str, object], HIDDEN] = msgspec.field(default_factory=dict)
    carries_claims: bool = True  # False for a protocol that says who someone is, and nothing else
    purchases: Mapping[str, bool] = msgspec.field(
        default_factory=dict
    )  # whether they own it there, by the purchase's name

    @property
    def label(self) -> str:
        email = self.email if self.email_verified else ""
        return (email or self.nick or self.name or self.subject)[:MAX_LABEL_LENGTH]

    def could_carry(self, claim: str) -> bool:
        """Return whether the claim would be in the answer if the person had it.

        Not one that the provider keeps elsewhere (OpenID Connect Core §5.6.2), as Microsoft does with many groups.
        """
        elsewhere = self.claims.get("_claim_names")
        return self.carries_claims and not (isinstance(elsewhere, dict) and claim in elsewhere)


class TagRule(Struct, frozen=True, kw_only=True):
    """Sets a tag while a claim has a value, or contains it."""

    claim: str
    value: str
    tag: str
    keep: bool = False  # the tag stays until the provider says otherwise, also after the identity was disconnected

    def holds(self, claims: Mapping[str, object]) -> bool:
        content = claims.get(self.claim)
        several = content if isinstance(content, list) else [content]
        return any(self.value == text_of_claim(element) for element in several)


def text_of_claim(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


class IdentityRules(Struct, frozen=True, kw_only=True):
    """What an administrator decided about the identities of a provider."""

    provider_id: str
    provider_name: str
    creates_accounts: bool = False
    domains: tuple[str, ...] = ()  # of verified addresses; all if empty
    account_domains: tuple[str, ...] = ()  # of verified addresses of new accounts; all if empty
    tags: tuple[TagRule, ...] = ()

    def read_answer(self, person: ForeignPerson) -> ProviderAnswer:
        """Return what the person's claims say about the tags that an administrator listed, and their purchases.

        Nothing about a tag whose claim the answer could not carry, unless another rule sets it.
        """
        wanted: dict[str, bool] = {}
        unknown = {rule.tag for rule in self.tags if not person.could_carry(rule.claim)}
        for rule in self.tags:
            wanted[rule.tag] = wanted.get(rule.tag, False) or rule.holds(person.claims)
        return ProviderAnswer(
            tags={tag: holds for tag, holds in wanted.items() if holds or tag not in unknown},
            kept_tags=frozenset(rule.tag for rule in self.tags if rule.keep),
            purchases=person.purchases,
        )
