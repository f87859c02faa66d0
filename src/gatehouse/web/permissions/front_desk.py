"""From a request to a caller with his rights, for every endpoint of this package."""

from collections.abc import Collection

from starlette.requests import Request

from gatehouse.permissions.callers.credentials import CredentialPolicy
from gatehouse.permissions.callers.desk import AuthenticatedRequest, Authenticator
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.origin import origin_of
from gatehouse.web.permissions.credentials import CredentialFields, credentials_of


class RequestAuthenticator:
    def __init__(self, desk: Authenticator) -> None:
        self._desk = desk

    async def visit(
        self,
        request: Request,
        asked: CredentialFields,
        need: CredentialPolicy,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> AuthenticatedRequest:
        credentials = await credentials_of(request, asked)
        return await self._desk.receive(credentials, need, application_id=application_id, also=also)

    async def actor(
        self, request: Request, asked: CredentialFields, need: CredentialPolicy, *, application_id: int | None = None
    ) -> Actor:
        visit = await self.visit(request, asked, need, application_id=application_id)
        return actor_of(request, visit)


def actor_of(request: Request, visit: AuthenticatedRequest) -> Actor:
    return visit.actor(origin_of(request, visit.caller.name))
