"""The limit of pending sessions (checklist GS-28): a periodic count plus the sessions registered since."""

import asyncio
import logging
import secrets
import uuid
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.login_result import LoginOptions
from gatehouse.accounts.sample_factor import SampleFactorRule
from gatehouse.accounts.store import ApplicationAccess
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.gamesessions.errors import ServiceJwtRefused, TooManySessions
from gatehouse.gamesessions.model import LIFETIME, GameSession
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.store import GameSessionStore, GameSettingsReader, IdTokenIssuer
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import GatehouseError
from gatehouse.tokens.claims import InvalidToken

COUNT_INTERVAL: Final = 10.0  # seconds, while sessions are registered at all

log = logging.getLogger("gatehouse.gamesessions")


class PendingLimit:
    def __init__(self, *, store: GameSessionStore, clock: Clock, most: int) -> None:
        self._store = store
        self._clock = clock
        self._most = most
        self._counted_at = float("-inf")
        self._waiting = 0
        self._counting: asyncio.Task[None] | None = None

    async def admit(self) -> None:
        """Count one more session. Raises TooManySessions, but only after a fresh count."""
        if self._clock.monotonic() - self._counted_at >= COUNT_INTERVAL:
            self._counted_at = self._clock.monotonic()
            self._counting = asyncio.get_running_loop().create_task(self.recount(), name="game-session-count")
        if self._waiting >= self._most and self._counting is not None:
            await asyncio.shield(self._counting)
        if self._waiting >= self._most:
            raise TooManySessions(f"{self._waiting} game sessions are waiting")
        self._waiting += 1

    async def recount(self) -> None:
        try:
            self._waiting = await self._store.count_pending(self._clock.now(), self._most)
        except GatehouseError as error:
            log.warning("could not count game sessions: %s", error)


# Registering a session: getGsid (interface §4.3, R4).


LOCATION_BYTES: Final = 24  # 192 bit; R4 asks for 128
GSID_BYTES: Final = 16


class RegistrationRequest(Struct, frozen=True, kw_only=True):
    """A game's request for a session, already parsed."""

    options: LoginOptions
    public_key: str
    distr: str
    wants_code: bool
    address: Address
    address_proven: bool
    guest_id: str = ""  # who upgrades with this sign-in; the device key was proved (R10)


class RegisteredSession(SecretRecord, frozen=True, kw_only=True):
    session: GameSession
    location: SecretText  # sent once; only its digest is stored


class GameSessionRegistration:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        results: GameLoginResults,
        id_tokens: IdTokenIssuer,
        rules: ApplicationAccess,
        sample_factor: SampleFactorRule,
        game_settings: GameSettingsReader,
        refusals: GameRefusals,
        pending_limit: PendingLimit,
        clock: Clock,
        node: str,
        code_match: Callable[[], bool],
    ) -> None:
        """`code_match`: whether every session gets a code, also of a game that did not ask for one."""
        self._store = store
        self._results = results
        self._id_tokens = id_tokens
        self._rules = rules
        self._sample_factor = sample_factor
        self._game_settings = game_settings
        self._refusals = refusals
        self._pending_limit = pending_limit
        self._clock = clock
        self._node = node
        self._code_match = code_match

    async def register(self, request: RegistrationRequest, origin: AuditOrigin) -> RegisteredSession:
        """Register a session.

        Raises Violation when one of the named applications has no game login, ServiceJwtRefused for an invalid
        service JWT, BadInput for the sample factor or a client that gets no id_token, TooManySessions when there are
        too many.
        """
        options = await self._with_application(request.options, origin)
        await self._sample_factor.check(options.factor, options.applications)
        if options.id_token is not None:
            checked = await self._id_tokens.check_request(options.id_token, options.primary_application)
            options = replace(options, id_token=checked)
        settings = [await self._game_settings(number) for number in options.applications]
        if not all(game_settings.enabled for game_settings in settings):
            raise await self._refusals.violation("", origin, "game login is turned off for the application")
        await self._pending_limit.admit()
        location = secrets.token_urlsafe(LOCATION_BYTES)
        with_code = (
            request.wants_code
            or bool(request.guest_id)
            or self._code_match()
            or any(game_settings.code_match for game_settings in settings)
        )
        session = self._new_session(request, options, location, with_code=with_code)
        await self._store.register_session(session)
        self._results.outcomes["registered"] += 1
        return RegisteredSession(session=session, location=location)

    async def _with_application(self, options: LoginOptions, origin: AuditOrigin) -> LoginOptions:
        """Resolve the service JWT now and store its application: the JWT lives five minutes, the session twenty."""
        if not options.service_jwt:
            return options
        try:
            application = await self._rules.service_application(options.service_jwt)
        except InvalidToken as error:
            violation = await self._refusals.violation("", origin, f"service_jwt: {error}")
            raise ServiceJwtRefused(violation.record_id, violation.detail) from error
        return replace(options, service_jwt="", service_application=application)

    def _new_session(
        self, request: RegistrationRequest, options: LoginOptions, location: str, *, with_code: bool
    ) -> GameSession:
        now = self._clock.now()
        gsid = str(uuid.UUID(bytes=secrets.token_bytes(GSID_BYTES), version=4))
        return GameSession(
            gsid=gsid,
            location=sha256(location),
            address=str(request.address),
            address_proven=request.address_proven,
            public_key=request.public_key,
            code=new_code() if with_code else "",
            code_shown=request.wants_code or bool(request.guest_id),
            guest_id=request.guest_id,
            distr=request.distr,
            app_id=options.app_id,
            gapp_id=options.gapp_id,
            options=self._results.seal_options(gsid, options),
            holder=self._node,  # the node that is likely to get its first poll
            created_at=now,
            ends_at=now + LIFETIME,
        )


def new_code() -> str:
    """Return two digits, the first one not zero, so that no one omits it."""
    return str(secrets.randbelow(90) + 10)
