"""An OAuth client as files and the API write it (R3, R7), and as they are read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import ClaimContent, ClaimSource, Client, ClientProfile, TokenSettings

CLIENT_FIELDS: Final = (
    *("name", "profile", "application_id", "redirect_hosts", "redirect_uris", "post_logout_uris", "scopes"),
    *("origins", "backchannel_logout_uri", "jwks", "claims", "token_settings", "device_grant", "explain_errors"),
    *("first_party", "may_exchange", "require_pkce", "public"),
)
LIST_FIELDS: Final = ("redirect_hosts", "redirect_uris", "post_logout_uris", "scopes", "origins")

Flag = bool | UnsetType | None
Texts = tuple[str, ...] | UnsetType | None
T = TypeVar("T")


class ClaimEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    application_id: Annotated[int, Meta(ge=1, le=2**53)]
    told: ClaimContent

    def source(self) -> ClaimSource:
        return ClaimSource(application_id=self.application_id, told=self.told)


class TokenEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Token lifetimes; omitted fields use the defaults."""

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


class ClientPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be said about a client: an absent field keeps, null clears, a given one replaces whole (R6)."""

    name: str | UnsetType = UNSET
    profile: ClientProfile | UnsetType | None = UNSET
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


def apply_patch(given: ClientPatch, base: Client, *, is_new: bool, exchanges: bool = True) -> Client:
    """The base with what is given. `exchanges`: a native client may exchange unless something else is said (R2)."""
    profile = patched_value(given.profile, kept=base.profile, cleared=ClientProfile.NATIVE)
    may_exchange = exchanges and profile is ClientProfile.NATIVE
    default = Client(client_id="", name="", may_exchange=may_exchange, created_at=0)
    kept = replace(base, may_exchange=may_exchange) if is_new else base
    fields: dict[str, Any] = {
        name: patched_value(field_value(given, name), kept=getattr(kept, name), cleared=getattr(default, name))
        for name in ClientPatch.__struct_fields__
    }
    return replace(kept, **fields)


def field_value(given: ClientPatch, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    """What is said of the field, as a client holds it."""
    match getattr(given, name):
        case TokenEntry() as tokens:
            return tokens.settings()
        case dict() as claims if name == "claims":
            return {claim: written.source() for claim, written in claims.items()}
        case other:
            return other


def patched_value(given: T | UnsetType | None, *, kept: T, cleared: T) -> T:
    if given is UNSET:
        return kept
    return cleared if given is None else given


def client_document(client: Client) -> dict[str, object]:
    """Without its secrets: applied, it keeps those there are."""
    given = {name: getattr(client, name) for name in CLIENT_FIELDS}
    given |= {name: list(given[name]) for name in LIST_FIELDS} | {
        "profile": client.profile.value,
        "jwks": dict(client.jwks),
    }
    tables = {"claims": claim_entries(client), "token_settings": token_entry(client)}
    return {"client_id": client.client_id, **given, **msgspec.to_builtins(tables)}


def claim_entries(client: Client) -> Mapping[str, ClaimEntry]:
    return {
        claim: ClaimEntry(application_id=source.application_id, told=source.told)
        for claim, source in client.claims.items()
    }


def token_entry(client: Client) -> TokenEntry:
    tokens = client.token_settings
    return TokenEntry(
        alg=tokens.id_token_alg,
        access_seconds=tokens.access_seconds,
        refresh_seconds=tokens.refresh_seconds,
        refresh_grace_seconds=tokens.refresh_grace_seconds,
    )
