"""Decide who may change an OAuth client, from what the client is and what it is to become (R3)."""

from collections.abc import Iterator

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.permissions.errors import AdministratorsOnly
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, is_open


def administers(actor: Actor) -> bool:
    return is_open(actor.rights, Operation.ADMINISTER)


def privileges(client: Client) -> Iterator[str]:
    """Name what the client has beyond its own application; a client with none of it is an ordinary one."""
    if client.first_party:
        yield "first_party"
    if client.redirect_hosts:
        yield "redirect_hosts"
    if client.may_exchange and client.profile is ClientProfile.OIDC:
        yield "may_exchange in profile oidc"
    if any(source.application_id != client.application_id for source in client.claims.values()):
        yield "claims of another application"


def require_client_right(actor: Actor, before: Client | None, after: Client | None = None) -> None:
    """Raise AdministratorsOnly unless the actor may turn one client into the other.

    `before` is None for a client that is created; `after` is None for everything that is not a save: a new secret,
    removal. The whole client is guarded, not its fields: a redirect URI, a key or a secret of a privileged client is
    as good as its privilege (checklist CL-01). The right to save the application has been checked before.
    """
    if administers(actor):
        return
    for client in (before, after):
        held = ", ".join(privileges(client)) if client is not None else ""
        if held:
            raise AdministratorsOnly(f"can_administer is needed: the client has {held}")
    if after is not None and after.may_exchange != (before is not None and before.may_exchange):
        raise AdministratorsOnly("can_administer is needed: may_exchange changes")
