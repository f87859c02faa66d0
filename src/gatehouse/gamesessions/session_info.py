"""The endpoints info and closeGsid of a session (interface §4.3, R4)."""

from msgspec import Struct

from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GSID_PATTERN, CloseStatus, GameSession
from gatehouse.gamesessions.proof import GameClientProof, proof_fault
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.addresses import Network, any_network_contains
from gatehouse.kernel.clock import Clock


class GameSessionDetails(Struct, frozen=True, kw_only=True):
    session: GameSession
    factor: str


class GameSessionService:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        results: GameLoginResults,
        refusals: GameRefusals,
        clock: Clock,
        info_allow: tuple[Network, ...],
    ) -> None:
        self._store = store
        self._results = results
        self._refusals = refusals
        self._clock = clock
        self._info_allow = info_allow

    async def info(self, gsid: str, presented: GameClientProof, origin: AuditOrigin) -> GameSessionDetails:
        """Return the state of a session, for addresses that the operator allows. Raises Violation."""
        if not (presented.proven and any_network_contains(self._info_allow, presented.address)):
            raise await self._refusals.violation(gsid, origin, "info is not allowed from this IP address")
        session = await self._find_session(gsid, presented, origin)
        try:
            factor = self._results.open_options(session).factor or ""
        except OptionsDamaged:
            raise await self._refusals.violation(gsid, origin, "the stored request is damaged") from None
        return GameSessionDetails(session=session, factor=factor)

    async def close(self, gsid: str, presented: GameClientProof, closing: CloseStatus, origin: AuditOrigin) -> None:
        """Store the result that the game reports; the last report counts. Raises Violation."""
        session = await self._find_session(gsid, presented, origin)
        wrong = proof_fault(session, presented)
        if wrong:
            raise await self._refusals.violation(gsid, origin, wrong)
        refusal = self._refusals.end_refusal(gsid, origin, f"closed by the game before delivery: {closing.value}")
        if not await self._store.close_session(
            gsid, self._clock.now(), closing, refusal, self._refusals.max_refusals
        ):
            raise await self._refusals.unknown_session(gsid, origin, presented.source)

    async def _find_session(self, gsid: str, presented: GameClientProof, origin: AuditOrigin) -> GameSession:
        session = await self._store.find_session(gsid, self._clock.now()) if GSID_PATTERN.fullmatch(gsid) else None
        if session is None:
            raise await self._refusals.unknown_session(gsid, origin, presented.source)
        return session
