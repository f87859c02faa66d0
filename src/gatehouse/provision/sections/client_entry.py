"""What a file may say about an OAuth client (R7)."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from gatehouse.oauth.client_document import ClientPatch, apply_patch
from gatehouse.oauth.model import Client, ClientSecret
from gatehouse.provision.given import FileSecret
from gatehouse.provision.sections.section import merge_field


class ClientFileEntry(ClientPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client_id: str
    client_secret: FileSecret | UnsetType | None = UNSET
    application_id: Annotated[int, Meta(ge=1, le=2**53)] | UnsetType | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClient:
    """An entry, the client it is about, and what becomes of that, secrets apart."""

    place: str
    entry: ClientFileEntry
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


def merge_client(entry: ClientFileEntry, before: Client | None, now: int) -> Client:
    base = before or Client(client_id=entry.client_id, name="", created_at=now)
    bound = replace(base, application_id=merge_field(entry.application_id, kept=base.application_id, cleared=None))
    return apply_patch(entry, bound, is_new=before is None)
