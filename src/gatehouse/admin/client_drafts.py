"""An OAuth client as a program wants it: what a request says becomes a whole client (R3, R6)."""

from typing import Any

from msgspec import UNSET, UnsetType

from gatehouse.oauth.client_document import ClientPatch, apply_patch
from gatehouse.oauth.model import Client
from gatehouse.permissions.commands.versions import refuse_old_version
from gatehouse.permissions.errors import Malformed


class ClientDraft(ClientPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of client; other fields of a client record are ignored (R6)."""

    client_id: str = ""
    application_id: int | UnsetType | None = UNSET  # a client stays where it is made
    version: int | UnsetType = UNSET
    created: Any = None
    secrets: Any = None


def new_client(draft: ClientDraft, application_id: int | None, *, administers: bool, now: int) -> Client:
    """What reaches beyond its application is there for who administers, and for others only when they ask (R3)."""
    if draft.name is UNSET:
        raise Malformed("data.name: required for a new client")
    blank = Client(client_id=draft.client_id, name="", application_id=application_id, created_at=now)
    refuse_other_application(draft, blank)
    return apply_patch(draft, blank, is_new=True, exchanges=administers)


def changed_client(draft: ClientDraft, before: Client, *, administers: bool) -> Client:
    refuse_other_application(draft, before)
    refuse_old_version(draft.version, before.version)
    return apply_patch(draft, before, is_new=False, exchanges=administers)


def refuse_other_application(draft: ClientDraft, client: Client) -> None:
    """Ignored, a wrong one would be believed: the client would not be where it is thought to be."""
    if draft.application_id is not UNSET and draft.application_id != client.application_id:
        raise Malformed("data.application_id: a client cannot be moved to another application")


def malformed_field(field: str, detail: str) -> Malformed:
    """What a client cannot be, at the place in the request where it is written."""
    return Malformed(f"data.{field}: {detail}" if field else f"data: {detail}")
