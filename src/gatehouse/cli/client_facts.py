"""A client as `gatehouse client` shows it; secrets are never shown again."""

from typing import Final

from gatehouse.cli.output import format_time
from gatehouse.oauth.model import Client

CLIENT_HEADINGS: Final = ("client_id", "name", "profile", "redirects", "scopes", "created")


def client_row(found: Client) -> tuple[str, ...]:
    return (
        found.client_id,
        found.name,
        found.profile.value,
        " ".join(found.redirect_uris + found.redirect_hosts),
        " ".join(found.scopes),
        format_time(found.created_at),
    )


def client_entry(found: Client) -> dict[str, object]:
    return {
        "client_id": found.client_id,
        "name": found.name,
        "profile": found.profile.value,
        "application_id": found.application_id,
        "redirect_uris": found.redirect_uris,
        "redirect_hosts": found.redirect_hosts,
        "post_logout_uris": found.post_logout_uris,
        "scopes": found.scopes,
        "origins": found.origins,
        "backchannel_logout_uri": found.backchannel_logout_uri,
        "jwks": dict(found.jwks),
        "claims": {
            claim: {"application_id": source.application_id, "told": source.told.value}
            for claim, source in found.claims.items()
        },
        "id_token_signed_response_alg": found.token_settings.id_token_alg.value,
        "access_seconds": found.token_settings.access_seconds,
        "refresh_seconds": found.token_settings.refresh_seconds,
        "refresh_grace_seconds": found.token_settings.refresh_grace_seconds,
        "device_grant": found.device_grant,
        "explain_errors": found.explain_errors,
        "first_party": found.first_party,
        "may_exchange": found.may_exchange,
        "require_pkce": found.require_pkce,
        "public": found.public,
        "secrets": [
            {"slot": secret.slot, "created_at": secret.created_at, "expires_at": secret.expires_at}
            for secret in found.secrets
        ],
        "created_at": found.created_at,
        "version": found.version,
    }
