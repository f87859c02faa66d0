"""Registering a session: getGsid (interface §4.3, R4)."""

import secrets
import uuid
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from gatehouse.accounts.login_data import LoginOptions
from gatehouse.audit.model import Origin
from gatehouse.gamesessions.crowd import Crowd
from gatehouse.gamesessions.errors import ServiceJwtRefused
from gatehouse.gamesessions.model import LIFETIME, GameSession
from gatehouse.gamesessions.ports import Applications, ServiceJwts
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.result import Results
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.tokens.errors import InvalidToken

LOCATION_BYTES: Final = 24  # 192 bit; R4 asks for 128
GSID_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a game asks for, checked at the edge."""

    options: LoginOptions
    public_key: str
    distr: str
    wants_code: bool
    address: Address
    address_proven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    session: GameSession
    location: str = field(repr=False)  # told once; only its digest is kept


class Registration:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        results: Results,
        service_jwts: ServiceJwts,
        applications: Applications,
        records: GameRecords,
        crowd: Crowd,
        clock: Clock,
        node: str,
        code_match: bool,
    ) -> None:
        """`code_match`: every session gets a code, also of a game that did not ask for one."""
        self._store = store
        self._results = results
        self._service_jwts = service_jwts
        self._applications = applications
        self._records = records
        self._crowd = crowd
        self._clock = clock
        self._node = node
        self._code_match = code_match

    async def register(self, wish: Wish, origin: Origin) -> Registered:
        """Raises Violation when one of the applications it names has no game login.

        And ServiceJwtRefused for a service JWT that is none, TooManySessions when there are too many.
        """
        options = await self._with_application(wish.options, origin)
        terms = [await self._applications.terms(number) for number in options.applications]
        if not all(one.enabled for one in terms):
            raise await self._records.violation("", origin, "game login is turned off for the application")
        await self._crowd.admit()
        location = secrets.token_urlsafe(LOCATION_BYTES)
        with_code = wish.wants_code or self._code_match or any(one.code_match for one in terms)
        session = self._session(wish, options, location, with_code=with_code)
        await self._store.register(session)
        return Registered(session=session, location=location)

    async def _with_application(self, options: LoginOptions, origin: Origin) -> LoginOptions:
        """A service JWT lives five minutes, a session twenty: whose it is counts, and is found out now."""
        if not options.service_jwt:
            return options
        try:
            application = await self._service_jwts.service_application(options.service_jwt)
        except InvalidToken as error:
            violation = await self._records.violation("", origin, f"service_jwt: {error}")
            raise ServiceJwtRefused(violation.record_id, violation.detail) from error
        return replace(options, service_jwt="", service_application=application)

    def _session(self, wish: Wish, options: LoginOptions, location: str, *, with_code: bool) -> GameSession:
        now = self._clock.now()
        gsid = str(uuid.UUID(bytes=secrets.token_bytes(GSID_BYTES), version=4))
        return GameSession(
            gsid=gsid,
            location=sha256(location),
            address=str(wish.address),
            address_proven=wish.address_proven,
            public_key=wish.public_key,
            code=new_code() if with_code else "",
            code_shown=wish.wants_code,
            distr=wish.distr,
            app_id=options.app_id,
            gapp_id=options.gapp_id,
            options=self._results.seal(gsid, options),
            holder=self._node,  # where its first poll is likely to come
            created_at=now,
            ends_at=now + LIFETIME,
        )


def new_code() -> str:
    """Two digits, the first not zero, so that nobody leaves it out."""
    return str(secrets.randbelow(90) + 10)
