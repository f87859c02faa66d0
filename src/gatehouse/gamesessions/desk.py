"""What else can be asked about a session: info and closeGsid (interface §4.3, R4)."""

from dataclasses import dataclass

from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GSID_PATTERN, CloseStatus, GameSession
from gatehouse.gamesessions.proof import GameClientProof, proof_fault
from gatehouse.gamesessions.records import GameRefusals
from gatehouse.gamesessions.result import GameLoginResults
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.addresses import Network, any_network_contains
from gatehouse.kernel.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSessionDetails:
    session: GameSession
    factor: str


class GameSessionService:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        results: GameLoginResults,
        records: GameRefusals,
        clock: Clock,
        info_allow: tuple[Network, ...],
    ) -> None:
        self._store = store
        self._results = results
        self._records = records
        self._clock = clock
        self._info_allow = info_allow

    async def info(self, gsid: str, presented: GameClientProof, origin: AuditOrigin) -> GameSessionDetails:
        """For addresses of the operator's choice. Raises Violation."""
        if not (presented.proven and any_network_contains(self._info_allow, presented.address)):
            raise await self._records.violation(gsid, origin, "info is not for this address")
        session = await self._found(gsid, presented, origin)
        try:
            factor = self._results.options(session).factor or ""
        except OptionsDamaged:
            raise await self._records.violation(gsid, origin, "what the game asked for is damaged") from None
        return GameSessionDetails(session=session, factor=factor)

    async def close(self, gsid: str, presented: GameClientProof, closing: CloseStatus, origin: AuditOrigin) -> None:
        """The game says how it ended; the last word counts. Raises Violation."""
        session = await self._found(gsid, presented, origin)
        wrong = proof_fault(session, presented)
        if wrong:
            raise await self._records.violation(gsid, origin, wrong)
        refusal = self._records.ended(gsid, origin, f"closed by the game before the delivery: {closing.value}")
        if not await self._store.close(gsid, self._clock.now(), closing, refusal, self._records.kept):
            raise await self._records.unknown(gsid, origin, presented.source)

    async def _found(self, gsid: str, presented: GameClientProof, origin: AuditOrigin) -> GameSession:
        session = await self._store.find(gsid, self._clock.now()) if GSID_PATTERN.fullmatch(gsid) else None
        if session is None:
            raise await self._records.unknown(gsid, origin, presented.source)
        return session
