"""The command that gets an access token for a machine, filled in (R9)."""

import shlex
from collections.abc import Mapping

from gatehouse.oauth.model import Client


def token_command(base_url: str, client: Client, secret: str, api: Mapping[str, object] | None) -> str:
    """Return a curl command; `api` is what the token is for, as its application declares it.

    A client with scopes of the service's own API gets a token for that.
    """
    own_api = client.own_api_scopes
    if own_api:
        fields = [f"scope={' '.join(own_api)}"]
    else:
        fields = [f"resource={api['resource']}", f"scope={api_scope(api)}"] if api else []
    return " ".join(
        (
            f"curl -s {shlex.quote(base_url + '/proxy/oauth/token')}",
            f"-u {shlex.quote(f'{client.client_id}:{secret}')} -d grant_type=client_credentials",
            *(f"--data-urlencode {shlex.quote(field)}" for field in fields if not field.endswith("=")),
        )
    )


def api_scope(api: Mapping[str, object]) -> str:
    """Return all scopes of an API as one text."""
    scopes = api.get("scopes")
    return " ".join(scopes) if isinstance(scopes, Mapping) else ""
