"""OAuth clients of an application, for people who may save it (R3)."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.admin.clients import (
    ClientDraft,
    administers,
    changed_client,
    new_client,
    require_client_right,
    with_logo,
)
from gatehouse.images.loading import ImageLoader, NewImage
from gatehouse.images.model import LOGO, BadImage, StoredImage, image_url
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.client_commands import Clients
from gatehouse.oauth.clients import check_client_id, check_new_client
from gatehouse.oauth.errors import BadClient, ClientChanged, ClientNotFound
from gatehouse.oauth.model import Client
from gatehouse.permissions.commands.application_credentials import find_managed_application
from gatehouse.permissions.commands.versions import expected_version
from gatehouse.permissions.errors import VersionConflict
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.store import ApplicationStore

SAVE_ATTEMPTS: Final = 8  # of a save without a version, which wins over concurrent saves (R6)


class ApplicationClients:
    """canSave of the application manages its ordinary clients; privileged ones need can_administer.

    Without an application it is about every client, those of no application too, for who administers.
    """

    def __init__(
        self,
        *,
        clients: Clients,
        images: ImageLoader,
        applications: ApplicationStore,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._clients = clients
        self._images = images
        self._applications = applications
        self._clock = clock
        self._base_url = base_url

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

    async def create(self, actor: Actor, client: Client, logo: StoredImage | None = None) -> str | None:
        """The secret, which is never shown again; None for a public client."""
        await self.require_right(actor, client.application_id)
        require_client_right(actor, None, client)
        return await self._clients.create(client, actor.origin, logo)

    async def change(self, actor: Actor, client: Client, logo: StoredImage | None = None) -> None:
        before = await self.get(actor, client.application_id, client.client_id)
        require_client_right(actor, before, client)
        if client.version != before.version:  # what is replaced is what the right was checked on
            raise ClientChanged
        await self._clients.change(client, actor.origin, logo)

    async def create_from_draft(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> str | None:
        """Create what a request describes; returns the secret like `create`."""
        await self.require_right(actor, application_id)  # a missing right is reported before a bad field (R6)
        client = new_client(draft, application_id, administers=administers(actor), now=self._clock.now())
        require_client_right(actor, None, client)
        check_new_client(client)  # before an image is fetched for it
        logo = await self._load_logo(actor, draft, client)
        return await self.create(actor, with_logo(client, logo), logo or None)

    async def save_draft(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> None:
        """Raises VersionConflict for a version that is not the current one; a save without a version wins."""
        before = await self.get_changeable(actor, application_id, draft.client_id)
        logo = await self._load_logo(actor, draft, before)
        for _ in range(SAVE_ATTEMPTS):
            before = await self.get_changeable(actor, application_id, draft.client_id)
            after = with_logo(changed_client(draft, before, administers=administers(actor)), logo)
            try:
                return await self.change(actor, after, logo or None)
            except ClientChanged:
                continue  # a draft with a version fails when its version is compared again
        raise VersionConflict("the client was changed concurrently; try again")

    async def _load_logo(self, actor: Actor, draft: ClientDraft, client: Client) -> NewImage:
        """Return the new logo that the draft asks for. Raises BadClient, Unavailable."""
        current = image_url(self._base_url, client.logo)
        try:
            return await self._images.load_change(
                draft.logo, draft.logo_uri, LOGO, field="logo", current=current, uploader=actor.origin.actor
            )
        except BadImage as error:
            refusal = BadClient(error.detail, field=error.field)
            raise refusal.on_screen(error.screen_key, **error.screen_values) from None

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
        """Raise NoRight before anything is revealed."""
        if application_id is None:
            require_operation(actor.rights, Operation.ADMINISTER)
        else:
            await find_managed_application(self._applications, actor, Operation.APPLICATION_SAVE, application_id)
