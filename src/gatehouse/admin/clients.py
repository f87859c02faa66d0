"""OAuth clients of an application, for whoever may save it (R3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.admin.client_drafts import ClientDraft, changed_client, malformed_field, new_client
from gatehouse.admin.client_rights import administers, require_client_right
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.client_rules import check_client_id
from gatehouse.oauth.clients import Clients
from gatehouse.oauth.errors import BadClient, ClientChanged, ClientNotFound
from gatehouse.oauth.model import Client
from gatehouse.permissions.commands.custom_keys import find_managed_application
from gatehouse.permissions.commands.versions import expected_version
from gatehouse.permissions.errors import VersionConflict
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.store import ApplicationStore

SAVE_ATTEMPTS: Final = 8  # of a save without a version, which wins over whatever is saved beside it (R6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWithSecret:
    """A client with a new secret, which is shown here and nowhere else; without one when it is public."""

    client: Client
    secret: str = field(default="", repr=False)


class ApplicationClients:
    """canSave of the application manages its ordinary clients; privileged ones take can_administer (client_rights).

    Without an application it is about every client, those of no application too, for who administers.
    """

    def __init__(self, *, clients: Clients, applications: ApplicationStore) -> None:
        self._clients = clients
        self._applications = applications

    async def list(self, actor: Actor, application_id: int | None) -> Sequence[Client]:
        await self.require_right(actor, application_id)
        return await self._clients.list(application_id)

    async def get(self, actor: Actor, application_id: int | None, client_id: str) -> Client:
        """Raises ClientNotFound, also for a client of another application."""
        await self.require_right(actor, application_id)
        client = await self._clients.get(check_client_id(client_id))
        if application_id is not None and client.application_id != application_id:
            raise ClientNotFound
        return client

    async def get_changeable(self, actor: Actor, application_id: int | None, client_id: str) -> Client:
        """The client, for an actor who may change it. Raises AdministratorsOnly."""
        client = await self.get(actor, application_id, client_id)
        require_client_right(actor, client)
        return client

    async def create(self, actor: Actor, client: Client) -> str | None:
        """The secret, which is never shown again; None for a public client."""
        await self.require_right(actor, client.application_id)
        require_client_right(actor, None, client)
        return await self._clients.create(client, actor.origin)

    async def change(self, actor: Actor, client: Client) -> None:
        before = await self.get(actor, client.application_id, client.client_id)
        require_client_right(actor, before, client)
        if client.version != before.version:  # what is replaced is what the right was checked on
            raise ClientChanged
        await self._clients.change(client, actor.origin)

    async def rotate_secret(self, actor: Actor, application_id: int | None, client_id: str) -> str:
        await self.get_changeable(actor, application_id, client_id)
        return await self._clients.rotate_secret(client_id, actor.origin)

    async def revoke_tokens(self, actor: Actor, application_id: int | None, client_id: str) -> int:
        """End what the client was granted: no change of the client, so canSave is enough for every one."""
        await self.get(actor, application_id, client_id)
        return await self._clients.revoke_tokens(client_id, actor.origin)

    async def remove(
        self, actor: Actor, application_id: int | None, client_id: str, version: int | UnsetType = UNSET
    ) -> None:
        await self.get_changeable(actor, application_id, client_id)
        await self._clients.remove(client_id, actor.origin, seen=expected_version(version))

    async def require_right(self, actor: Actor, application_id: int | None) -> None:
        """Raises NoRight before anything is told."""
        if application_id is None:
            require_operation(actor.rights, Operation.ADMINISTER)
        else:
            await find_managed_application(self._applications, actor, Operation.APPLICATION_SAVE, application_id)


class DraftedClients:
    """The same for programs: a request says what is to be, and what cannot be is answered by its field."""

    def __init__(self, *, clients: ApplicationClients, clock: Clock) -> None:
        self._clients = clients
        self._clock = clock

    async def create(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> ClientWithSecret:
        await self._clients.require_right(actor, application_id)  # no right comes before what is wrong with it (R6)
        try:
            client = new_client(draft, application_id, administers=administers(actor), now=self._clock.now())
            secret = await self._clients.create(actor, client)
        except BadClient as error:
            raise malformed_field(error.field, error.detail) from None
        return await self._with_secret(actor, client, secret)

    async def save(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> Client:
        """Raises VersionConflict for the version that another save has followed; one without a version wins."""
        for _ in range(SAVE_ATTEMPTS):
            before = await self._clients.get_changeable(actor, application_id, draft.client_id)
            try:
                await self._clients.change(actor, changed_client(draft, before, administers=administers(actor)))
            except BadClient as error:
                raise malformed_field(error.field, error.detail) from None
            except ClientChanged:
                continue  # whoever named a version hears of it when it is compared again
            return await self._clients.get(actor, application_id, draft.client_id)
        raise VersionConflict("the client was changed concurrently; try again")

    async def rotate(self, actor: Actor, application_id: int | None, client_id: str) -> ClientWithSecret:
        try:
            secret = await self._clients.rotate_secret(actor, application_id, client_id)
        except BadClient as error:
            raise malformed_field(error.field, error.detail) from None
        return ClientWithSecret(client=await self._clients.get(actor, application_id, client_id), secret=secret)

    async def _with_secret(self, actor: Actor, client: Client, secret: str | None) -> ClientWithSecret:
        made = await self._clients.get(actor, client.application_id, client.client_id)
        return ClientWithSecret(client=made, secret=secret or "")
