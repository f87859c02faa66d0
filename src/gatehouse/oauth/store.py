"""What clients need kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.audit.model import Record
from gatehouse.oauth.model import Client, ClientSecret


class ClientStore(Protocol):
    async def create(self, client: Client, record: Record) -> None:
        """Keep a new client with its secrets. Of two callers with one id one succeeds, one gets ClientExists."""

    async def client(self, client_id: str) -> Client:
        """Return the client with its live secrets. Raises ClientNotFound, for removed ones too."""

    async def clients(self) -> Sequence[Client]:
        """All clients that are not removed, by id."""

    async def rotate_secret(self, client_id: str, secret: ClientSecret, record: Record, *, old_ends_at: int) -> None:
        """Put the secret, in a slot of its own, beside the newest one, whose end is now set; the older is gone.

        One atomic act; at most two secrets are ever live, however many callers race. Raises ClientNotFound.
        """
