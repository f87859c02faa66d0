"""Reads and writes an OAuth client as files and the API have it (R3, R7)."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.fields.derive import copy_as, entry_members, patch_members, patched_value, with_members
from gatehouse.fields.secrets import SecretRecord
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import (
    CLIENT_FIELDS,
    DEFAULT_TOKEN_SETTINGS,
    SINGLE_FIELDS,
    Client,
    ClientProfile,
    TokenSettings,
    new_token_settings,
)


class TokenSettingsPatch(TokenSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token settings as a request has them: an algorithm that it does not name stays."""

    id_token_alg: Algorithm | UnsetType = msgspec.field(  # type: ignore[assignment]
        default=UNSET, name="id_token_signed_response_alg"
    )


@with_members(lambda: patch_members(CLIENT_FIELDS))
class ClientPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a client that a request may set.

    An absent field stays, null clears it, a value replaces it (R6).
    """

    name: str | UnsetType = UNSET  # never cleared
    profile: ClientProfile | UnsetType | None = UNSET
    token_settings: TokenSettingsPatch | UnsetType | None = UNSET


@with_members(lambda: entry_members(CLIENT_FIELDS))
class ClientRecord(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A client without its secrets."""

    client_id: str


def apply_patch(patch: ClientPatch, base: Client, *, is_new: bool, exchanges: bool = True) -> Client:
    """Return the base with the fields of the patch.

    `exchanges`: a native client may exchange tokens by default (R2). A new oidc client has to use PKCE (R9), and gets
    ES256 id_tokens (R2).
    """
    values: dict[str, Any] = {name: getattr(patch, name) for name in ClientPatch.__struct_fields__}
    profile = patched_value(values["profile"], kept=base.profile, cleared=ClientProfile.NATIVE)
    may_exchange = exchanges and profile is ClientProfile.NATIVE
    require_pkce = profile is ClientProfile.OIDC
    default = Client(client_id="", name="", may_exchange=may_exchange, require_pkce=require_pkce, created_at=0)
    client = base
    if is_new:
        settings = new_token_settings(profile)
        scopes = () if values["machine"] is True else base.scopes
        client = replace(
            base, scopes=scopes, may_exchange=may_exchange, require_pkce=require_pkce, token_settings=settings
        )
    patched = {
        name: patched_value(value, kept=getattr(client, name), cleared=getattr(default, name))
        for name, value in values.items()
    }
    return replace(
        client, **{**patched, "token_settings": patch_token_settings(patch.token_settings, client.token_settings)}
    )


def patch_token_settings(patch: TokenSettingsPatch | UnsetType | None, settings: TokenSettings) -> TokenSettings:
    """Return the new settings; only a named algorithm replaces the one that the client's programs accept."""
    if isinstance(patch, UnsetType):
        return settings
    if patch is None or isinstance(patch.id_token_alg, UnsetType):
        return copy_as(TokenSettings, patch or DEFAULT_TOKEN_SETTINGS, id_token_alg=settings.id_token_alg)
    return copy_as(TokenSettings, patch)


def replace_values(client: Client, values: Mapping[str, Any]) -> Client:
    """Return the client with these values, by the names of SINGLE_FIELDS."""
    changes: dict[str, dict[str, Any]] = {}
    for field in SINGLE_FIELDS:
        if field.name in values:
            changes.setdefault(field.group, {})[field.name] = values[field.name]
    own = changes.pop("", {})
    groups = {name: msgspec.structs.replace(getattr(client, name), **inner) for name, inner in changes.items()}
    return replace(client, **own, **groups)


def record_values(client: Client) -> dict[str, Any]:
    """Return the values of a ClientRecord."""
    return {name: getattr(client, name) for name in ClientRecord.__struct_fields__}


def client_document(client: Client) -> dict[str, object]:
    """Return the client without its secrets; applying the document keeps the stored ones."""
    document: dict[str, object] = msgspec.to_builtins(ClientRecord(**record_values(client)))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in document.items()}
