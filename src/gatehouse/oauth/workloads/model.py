"""The issuers whose tokens authenticate a client (R11, RFC 7523)."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from gatehouse.keys.jwk_parsing import FOR_SIGNATURES

SPIFFE: Final = "spiffe://"
SVID_USE: Final = "jwt-svid"  # of keys in a SPIFFE bundle
WILDCARD: Final = "*"

ClaimName = Annotated[str, Meta(min_length=1, max_length=255)]
ClaimText = Annotated[str, Meta(min_length=1, max_length=1_000)]


class WorkloadIdentity(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which tokens of which issuer the client may present; its keys are in one of three places."""

    subject: Annotated[str, Meta(min_length=1, max_length=2_048)]  # exact, or ending in a wildcard
    issuer: str = ""
    trust_domain: str = ""  # of SPIFFE, in place of the issuer
    audience: Annotated[str, Meta(max_length=1_000)] = ""  # "" for the address of this service
    claims: Mapping[ClaimName, ClaimText] = field(default_factory=dict)  # `/` in a name goes one level down
    jwks: Mapping[str, Any] = field(default_factory=dict)
    jwks_uri: str = ""
    discovery: bool = False  # the keys that the issuer's OpenID Connect discovery document names
    single_use: bool = False  # of each token, by its jti

    @property
    def issuer_name(self) -> str:
        """The issuer, as audit records and errors name it."""
        return f"{SPIFFE}{self.trust_domain}" if self.trust_domain else self.issuer

    @property
    def key_use(self) -> str:
        return SVID_USE if self.trust_domain else FOR_SIGNATURES

    @property
    def has_wildcard(self) -> bool:
        return self.subject.endswith(WILDCARD)

    def is_of(self, issuer: object, subject: str) -> bool:
        """Whether a token of this issuer and subject is one of it."""
        if self.trust_domain:
            of_issuer = subject.startswith(f"{SPIFFE}{self.trust_domain}/")
        else:
            of_issuer = issuer == self.issuer
        return of_issuer and self._is_subject(subject)

    def _is_subject(self, subject: str) -> bool:
        if not self.has_wildcard:
            return subject == self.subject
        start = self.subject.removesuffix(WILDCARD)
        return subject.startswith(start) and len(subject) > len(start)

    def has_claims(self, payload: Mapping[str, object]) -> bool:
        return all(claim_text(payload, name) == text for name, text in self.claims.items())


def claim_text(payload: Mapping[str, object], name: str) -> str | None:
    """Return a claim as text; None if it is absent or no text, whole number or flag."""
    value: object = payload
    for part in name.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None
