"""What else can be asked about a session: info and closeGsid (interface §4.3, R4)."""

from dataclasses import dataclass

from gatehouse.audit.model import Origin
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GSID, Closing, GameSession
from gatehouse.gamesessions.proof import Presented, fault
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.result import Results
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.addresses import Network, contains
from gatehouse.kernel.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    session: GameSession
    factor: str


class GameDesk:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        results: Results,
        records: GameRecords,
        clock: Clock,
        info_allow: tuple[Network, ...],
    ) -> None:
        self._store = store
        self._results = results
        self._records = records
        self._clock = clock
        self._info_allow = info_allow

    async def info(self, gsid: str, presented: Presented, origin: Origin) -> Info:
        """For addresses of the operator's choice. Raises Violation."""
        if not (presented.proven and contains(self._info_allow, presented.address)):
            raise await self._records.violation(gsid, origin, "info is not allowed from this IP address")
        session = await self._found(gsid, presented, origin)
        try:
            factor = self._results.options(session).factor or ""
        except OptionsDamaged:
            raise await self._records.violation(gsid, origin, "the stored request is damaged") from None
        return Info(session=session, factor=factor)

    async def close(self, gsid: str, presented: Presented, closing: Closing, origin: Origin) -> None:
        """The game says how it ended; the last word counts. Raises Violation."""
        session = await self._found(gsid, presented, origin)
        wrong = fault(session, presented)
        if wrong:
            raise await self._records.violation(gsid, origin, wrong)
        refusal = self._records.ended(gsid, origin, f"closed by the game before delivery: {closing.value}")
        if not await self._store.close(gsid, self._clock.now(), closing, refusal, self._records.kept):
            raise await self._records.unknown(gsid, origin, presented.source)

    async def _found(self, gsid: str, presented: Presented, origin: Origin) -> GameSession:
        session = await self._store.find(gsid, self._clock.now()) if GSID.fullmatch(gsid) else None
        if session is None:
            raise await self._records.unknown(gsid, origin, presented.source)
        return session
