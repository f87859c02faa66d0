"""An OAuth client as a file writes it (R7)."""

from typing import Final

from gatehouse.oauth.model import Client

FIELDS: Final = (
    *("name", "profile", "application_id", "redirect_hosts", "redirect_uris", "post_logout_uris", "scopes"),
    *("origins", "backchannel_logout_uri", "jwks", "claims", "token_settings", "device_grant", "explain_errors"),
    *("first_party", "may_exchange", "require_pkce", "public"),
)
LISTS: Final = ("redirect_hosts", "redirect_uris", "post_logout_uris", "scopes", "origins")


def open_document(client: Client) -> dict[str, object]:
    """Without its secrets: applied, it keeps those there are."""
    given = {name: getattr(client, name) for name in FIELDS}
    given |= {name: list(given[name]) for name in LISTS} | {"profile": client.profile.value}
    given |= written_tables(client)
    return {"client_id": client.client_id, **given}


def written_tables(client: Client) -> dict[str, object]:
    """The fields that are tables, as a file writes them."""
    tokens = client.token_settings
    return {
        "jwks": dict(client.jwks),
        "claims": {
            claim: {"application_id": source.application_id, "told": source.told.value}
            for claim, source in client.claims.items()
        },
        "token_settings": {
            "id_token_signed_response_alg": tokens.id_token_alg.value,
            "access_seconds": tokens.access_seconds,
            "refresh_seconds": tokens.refresh_seconds,
            "refresh_grace_seconds": tokens.refresh_grace_seconds,
        },
    }
