"""What a file may say about an OAuth client (R7)."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from gatehouse.oauth.model import Client, ClientSecret, Profile
from gatehouse.provision.given import GivenSecret
from gatehouse.provision.sections.section import chosen

Flag = bool | UnsetType | None
Texts = tuple[str, ...] | UnsetType | None

FIELDS: Final = (
    *("name", "profile", "application_id", "redirect_hosts", "redirect_uris", "post_logout_uris", "scopes"),
    *("first_party", "may_exchange", "require_pkce", "public"),
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
        name: chosen(getattr(entry, name), kept=getattr(base, name), cleared=getattr(default, name))
        for name in FIELDS
    }
    return replace(base, **fields)
