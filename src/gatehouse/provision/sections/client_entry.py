"""What a file may say about an OAuth client (R7)."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import ClaimSource, Client, ClientSecret, Profile, TokenSettings, Told
from gatehouse.provision.given import GivenSecret
from gatehouse.provision.sections.client_document import FIELDS
from gatehouse.provision.sections.section import chosen

Flag = bool | UnsetType | None
Texts = tuple[str, ...] | UnsetType | None


class ClaimEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    application_id: Annotated[int, Meta(ge=1, le=2**53)]
    told: Told

    def source(self) -> ClaimSource:
        return ClaimSource(application_id=self.application_id, told=self.told)


class TokenEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Given whole: what it leaves out is as for everybody."""

    alg: Algorithm = msgspec.field(default=Algorithm.RS256, name="id_token_signed_response_alg")
    access_seconds: int = TokenSettings().access_seconds
    refresh_seconds: int = TokenSettings().refresh_seconds
    refresh_grace_seconds: int | None = None

    def settings(self) -> TokenSettings:
        return TokenSettings(
            id_token_alg=self.alg,
            access_seconds=self.access_seconds,
            refresh_seconds=self.refresh_seconds,
            refresh_grace_seconds=self.refresh_grace_seconds,
        )


class ClientEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client_id: str
    client_secret: GivenSecret | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    profile: Profile | UnsetType | None = UNSET
    application_id: Annotated[int, Meta(ge=1, le=2**53)] | UnsetType | None = UNSET
    redirect_hosts: Texts = UNSET
    redirect_uris: Texts = UNSET
    post_logout_uris: Texts = UNSET
    scopes: Texts = UNSET
    origins: Texts = UNSET
    backchannel_logout_uri: str | UnsetType | None = UNSET
    jwks: dict[str, Any] | UnsetType | None = UNSET
    claims: dict[str, ClaimEntry] | UnsetType | None = UNSET
    token_settings: TokenEntry | UnsetType | None = UNSET
    device_grant: Flag = UNSET
    explain_errors: Flag = UNSET
    first_party: Flag = UNSET
    may_exchange: Flag = UNSET
    require_pkce: Flag = UNSET
    public: Flag = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClient:
    """An entry, the client it is about, and what becomes of that, secrets apart."""

    place: str
    entry: ClientEntry
    before: Client | None  # None: to be made
    after: Client


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedClient:
    """The same with its secrets in the form in which they are kept: all that the pure part of planning sees."""

    found: FoundClient
    secrets: tuple[ClientSecret, ...]
    generated_secret: str | None = field(default=None, repr=False)

    @property
    def after(self) -> Client:
        return replace(self.found.after, secrets=self.secrets)


def merge(entry: ClientEntry, before: Client | None, now: int) -> Client:
    base = before or Client(client_id=entry.client_id, name="", created_at=now)
    profile = chosen(entry.profile, kept=base.profile, cleared=Profile.NATIVE)
    default = Client(client_id="", name="", may_exchange=profile is Profile.NATIVE, created_at=0)  # R2
    if before is None:
        base = replace(base, may_exchange=default.may_exchange)
    fields: dict[str, Any] = {
        name: chosen(given_value(entry, name), kept=getattr(base, name), cleared=getattr(default, name))
        for name in FIELDS
    }
    return replace(base, **fields)


def given_value(entry: ClientEntry, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    """What the file says of the field, as a client holds it."""
    match getattr(entry, name):
        case TokenEntry() as tokens:
            return tokens.settings()
        case dict() as claims if name == "claims":
            return {claim: written.source() for claim, written in claims.items()}
        case other:
            return other
