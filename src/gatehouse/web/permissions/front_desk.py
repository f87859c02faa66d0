"""From a request to a caller with his rights, for every endpoint of this package."""

from collections.abc import Collection

from starlette.requests import Request

from gatehouse.permissions.callers.credentials import CredentialPolicy
from gatehouse.permissions.callers.desk import AuthenticatedRequest, Authenticator
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.origin import origin_of
from gatehouse.web.permissions.credentials import CredentialFields, credentials_of


class RequestAuthenticator:
    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def authenticate(
        self,
        request: Request,
        asked: CredentialFields,
        need: CredentialPolicy,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> AuthenticatedRequest:
        credentials = await credentials_of(request, asked)
        return await self._authenticator.authenticate(credentials, need, application_id=application_id, also=also)

    async def authenticate_actor(
        self, request: Request, asked: CredentialFields, need: CredentialPolicy, *, application_id: int | None = None
    ) -> Actor:
        visit = await self.authenticate(request, asked, need, application_id=application_id)
        return actor_of(request, visit)


def actor_of(request: Request, authenticated: AuthenticatedRequest) -> Actor:
    return authenticated.actor(origin_of(request, authenticated.caller.name))
