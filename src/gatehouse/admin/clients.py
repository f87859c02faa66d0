"""OAuth clients of an application, for whoever may save it (R3)."""

from collections.abc import Mapping

from gatehouse.kernel.errors import BadInput
from gatehouse.oauth.clients import Clients
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.model import ClaimSource, Client
from gatehouse.permissions.commands.custom_keys import may_manage
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, is_open, require
from gatehouse.permissions.store import ApplicationStore


class NoApplication(BadInput):
    pass


class ApplicationClients:
    """canSave of the application manages its clients; what reaches beyond it takes can_administer."""

    def __init__(self, *, clients: Clients, applications: ApplicationStore) -> None:
        self._clients = clients
        self._applications = applications

    async def get(self, actor: Actor, application_id: int, client_id: str) -> Client:
        """Raises ClientNotFound, also for a client of another application."""
        await may_manage(self._applications, actor, Operation.APPLICATION_SAVE, application_id)
        client = await self._clients.show(client_id)
        if client.application_id != application_id:
            raise ClientNotFound
        return client

    async def create(self, actor: Actor, client: Client) -> str | None:
        """The secret, which is never shown again; None for a public client."""
        await may_manage(self._applications, actor, Operation.APPLICATION_SAVE, application_of(client))
        refuse_reach(actor, None, client)
        return await self._clients.create(client, actor.origin)

    async def change(self, actor: Actor, client: Client) -> None:
        before = await self.get(actor, application_of(client), client.client_id)
        refuse_reach(actor, before, client)
        await self._clients.change(client, actor.origin)

    async def rotate_secret(self, actor: Actor, application_id: int, client_id: str) -> str:
        client = await self.get(actor, application_id, client_id)
        if foreign(client):
            require(actor.rights, Operation.ADMINISTER)
        return await self._clients.rotate_secret(client_id, actor.origin)

    async def revoke_tokens(self, actor: Actor, application_id: int, client_id: str) -> int:
        await self.get(actor, application_id, client_id)
        return await self._clients.revoke_tokens(client_id, actor.origin)

    async def remove(self, actor: Actor, application_id: int, client_id: str) -> None:
        await self.get(actor, application_id, client_id)
        await self._clients.remove(client_id, actor.origin)


def application_of(client: Client) -> int:
    if client.application_id is None:
        raise NoApplication("application_id: which application?")
    return client.application_id


def refuse_reach(actor: Actor, before: Client | None, after: Client) -> None:
    """Who does not administer leaves these as they are, and maps claims of no other application."""
    if is_open(actor.rights, Operation.ADMINISTER):
        return
    if reach(before) != reach(after):
        raise NoRight("first_party, redirect_hosts and may_exchange take can_administer")
    if foreign(after) != foreign(before):
        raise NoRight("claims of another application take can_administer")
    if foreign(after) and entrances(before) != entrances(after):
        raise NoRight("a client that is told of another application is led elsewhere with can_administer only")


def reach(client: Client | None) -> tuple[object, ...]:
    return (False, (), False) if client is None else (client.first_party, client.redirect_hosts, client.may_exchange)


def entrances(client: Client | None) -> tuple[object, ...]:
    """Where it is answered, and by what it proves to be itself."""
    if client is None:
        return ()
    return client.redirect_uris, client.origins, client.backchannel_logout_uri, client.jwks


def foreign(client: Client | None) -> Mapping[str, ClaimSource]:
    if client is None:
        return {}
    return {name: source for name, source in client.claims.items() if source.application_id != client.application_id}
