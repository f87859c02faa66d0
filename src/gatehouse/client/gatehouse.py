"""The service as an application sees it: who a user is, and what they may do."""

from types import TracebackType
from typing import Final, Self

from gatehouse.client.changes import ChangeFollower
from gatehouse.client.clock import Clock, SystemClock
from gatehouse.client.credentials import Credential
from gatehouse.client.errors import Denied, Unauthenticated
from gatehouse.client.permissions import PermissionCache, Permissions, Resource
from gatehouse.client.published_keys import PublishedKeyCache
from gatehouse.client.transport import StandardTransport, Transport, parse_base_url
from gatehouse.client.verification import User, UserJwtVerifier

MOST_USERS: Final = 10_000


class Gatehouse:
    """Make one for the whole application.

    `needs_factor`: refuse a JWT that comes without the factor it is bound to. `stale_seconds`: how long an expired
    answer is still used while the service cannot be reached.
    """

    def __init__(
        self,
        base_url: str,
        *,
        application_id: int,
        credential: Credential,
        needs_factor: bool = False,
        stale_seconds: float = 0,
        most_users: int = MOST_USERS,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        parse_base_url(base_url)
        clock = clock or SystemClock()
        self._transport = transport or StandardTransport(base_url)
        self._base_url = base_url
        self._application_id = application_id
        self._credential = credential
        self._clock = clock
        self._follower: ChangeFollower | None = None
        self._needs_factor = needs_factor
        self._verifier = UserJwtVerifier(
            issuer=base_url,
            application_id=application_id,
            keys=PublishedKeyCache(transport=self._transport, clock=clock),
            clock=clock,
        )
        self._permission_cache = PermissionCache(
            base_url=base_url,
            application_id=application_id,
            credential=credential,
            transport=self._transport,
            clock=clock,
            most=most_users,
            stale_seconds=stale_seconds,
        )

    async def user(self, jwt: str, *, factor: str | None = None, address: str | None = None) -> User:
        """Return the owner of a user JWT.

        Raise Unauthenticated, or Denied when it is for another application or address. A given factor must be the
        JWT's. `address` is where the person is, if the application knows.
        """
        if factor is None and self._needs_factor:
            raise Unauthenticated("the JWT was sent without its factor")
        return await self._verifier.verify(jwt, factor=factor, address=address)

    async def permissions(self, user: User) -> Permissions:
        """The permissions of the user. Raises Unauthenticated when the JWT was revoked, Unavailable when unknown."""
        return await self._permission_cache.get(user)

    async def allows(
        self, user: User, rule: str, project: str | None = None, resource: Resource | None = None
    ) -> bool:
        """Whether the user has the permission: at the root, in the project, or on that resource of the project."""
        return (await self.permissions(user)).allows(rule, project, resource)

    async def require(
        self, user: User, rule: str, project: str | None = None, resource: Resource | None = None
    ) -> None:
        """Raise Denied unless `allows`."""
        if not await self.allows(user, rule, project, resource):
            raise Denied(f"user {user.user_id} does not have {rule} (project {project}, {resource})")

    async def follow_changes(self) -> bool:
        """Follow the service's change stream until `close`; return whether it is open already.

        While it is open, permissions are cached until they change, at most for five minutes. While it is cut,
        `max_age` counts, and it is opened again. Raises ValueError if the transport has no `open_stream`.
        """
        open_stream = getattr(self._transport, "open_stream", None)
        if open_stream is None:
            raise ValueError("the transport has no open_stream")
        if self._follower is None:
            self._follower = ChangeFollower(
                open_stream=open_stream,
                headers=lambda: self._credential.own_headers(self._base_url),
                handle=self._permission_cache.handle_change,
                application_id=self._application_id,
                clock=self._clock,
            )
            self._permission_cache.live_since = self._live_since
            await self._follower.start()
        return self._live_since() is not None

    def _live_since(self) -> float | None:
        return None if self._follower is None else self._follower.live_since

    async def close(self) -> None:
        if self._follower is not None:
            await self._follower.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
