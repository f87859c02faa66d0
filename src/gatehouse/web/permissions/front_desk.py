"""From a request to a caller with his rights, for every endpoint of this package."""

from collections.abc import Collection

from starlette.requests import Request

from gatehouse.permissions.callers.credentials import Need
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.origin import origin_of
from gatehouse.web.permissions.credentials import Asked, credentials_of


class FrontDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def visit(
        self,
        request: Request,
        asked: Asked,
        need: Need,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> Visit:
        credentials = await credentials_of(request, asked)
        return await self._desk.receive(credentials, need, application_id=application_id, also=also)

    async def actor(self, request: Request, asked: Asked, need: Need, *, application_id: int | None = None) -> Actor:
        visit = await self.visit(request, asked, need, application_id=application_id)
        return actor_of(request, visit)


def actor_of(request: Request, visit: Visit) -> Actor:
    return visit.actor(origin_of(request, visit.caller.name))
