"""Runs the errands: calls what is due, remembers what became of it, tries again later (R6).

Calls are held by lease, so an address is never called twice at once, whatever the number of nodes. A node that dies
after an application answered and before that was kept calls again: fetching and removing are harmless to repeat.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.outbound.errors import CallFailed
from gatehouse.outbound.model import Answer, Posting
from gatehouse.outbound.rounds import TROUBLE_LONGEST, Backoff, Poster, Rounds
from gatehouse.outbound.targets import origin_of
from gatehouse.personal_data.model import TRIED_FOR, Errand, HeldCall, answer_purpose
from gatehouse.personal_data.requests import Sealing
from gatehouse.personal_data.store import PersonalDataStore
from gatehouse.tokens.claims import OutboundServiceClaims
from gatehouse.tokens.signing import Signer

log = structlog.get_logger(__name__)

BATCH: Final = 4  # calls at once
JWT_LIFE: Final = 300  # seconds
BACKOFF: Final = Backoff(first=60, longest=6 * 3_600)
THE_SERVICE: Final = Origin(actor="service")
DONE: Final = {Errand.EXPORT: Event.DATA_ANSWERED, Errand.REMOVAL: Event.DATA_REMOVED}
NOTHING: Final = b"null"


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """All an application is told (R6): of an erased person nothing but the number is left."""

    user_id: str
    request_id: str


class NotDone(Exception):
    """The application answered, but not that it was done."""


class DataErrands:
    def __init__(
        self,
        *,
        store: PersonalDataStore,
        poster: Poster,
        signer: Signer,
        sealing: Sealing,
        recorder: Recorder,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._store = store
        self._poster = poster
        self._signer = signer
        self._sealing = sealing
        self._recorder = recorder
        self._clock = clock
        self._issuer = issuer
        self._rounds = Rounds(claim=self._claim, run=self._run, poster=poster)

    async def run_once(self) -> None:
        """Make whatever calls are due; return when none is left that could be made now."""
        await self._rounds.run_once()

    async def _claim(self, lease: int) -> Sequence[HeldCall]:
        return await self._store.claim(self._clock.now(), lease, BATCH)

    async def _run(self, call: HeldCall) -> None:
        try:
            answer = await self._poster.post(await self._posting(call))
            sealed = self._sealed(call, answer)
        except CallFailed as failed:
            await self._not_done(call, failed.detail or failed.public)
        except NotDone as trouble:
            await self._not_done(call, str(trouble))
        else:
            entry = self._entry(DONE[call.errand], call)
            if not await self._store.answered(call, sealed, entry, self._clock.now()):
                await self._give_up(call, "the answers to this request are too large")

    async def _posting(self, call: HeldCall) -> Posting:
        now = self._clock.now()
        claims = OutboundServiceClaims(
            iss=self._issuer, aud=origin_of(call.url), iat=now, exp=now + JWT_LIFE, jti=call.request_id
        )
        return Posting(
            url=call.url,
            body=msgspec.json.encode(Wording(user_id=call.user_id, request_id=call.request_id)),
            headers={"Service-Jwt": await self._signer.sign(claims)},
        )

    def _sealed(self, call: HeldCall, answer: Answer) -> bytes | None:
        """The answer to be kept, if there is one. Raises NotDone."""
        if not answer.is_success:
            raise NotDone(f"answered {answer.status}")
        if call.errand is Errand.REMOVAL:
            return None
        document = answer.body.strip() or NOTHING
        try:
            msgspec.json.decode(document)
        except (msgspec.DecodeError, RecursionError):
            raise NotDone("the answer is not JSON") from None
        return self._sealing.seal(document, purpose=answer_purpose(call.request_id, call.position))

    async def _not_done(self, call: HeldCall, trouble: str) -> None:
        next_try_at = self._clock.now() + BACKOFF.after(call.tries)
        if next_try_at > call.created_at + TRIED_FOR[call.errand]:
            await self._give_up(call, trouble)
        else:
            await self._store.put_off(call, trouble[:TROUBLE_LONGEST], next_try_at)

    async def _give_up(self, call: HeldCall, trouble: str) -> None:
        log.warning("personal data request to application failed", application_id=call.application_id, reason=trouble)
        entry = self._entry(Event.DATA_GIVEN_UP, call)
        await self._store.give_up(call, trouble[:TROUBLE_LONGEST], entry, self._clock.now())

    def _entry(self, event: Event, call: HeldCall) -> Record:
        return self._recorder.record(
            event,
            THE_SERVICE,
            subject=call.user_id,
            details={"application_id": call.application_id, "request_id": call.request_id},
        )
