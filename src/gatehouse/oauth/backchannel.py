"""Tells clients that someone signed out: durable, tried again, given up after a day (Back-Channel Logout §2.5)."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import structlog

from gatehouse.audit.events import Event
from gatehouse.audit.model import Details, Origin, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.model import LogoutCall
from gatehouse.oauth.store import ClientStore, LogoutStore
from gatehouse.outbound.errors import CallFailed
from gatehouse.outbound.model import Posting
from gatehouse.outbound.rounds import TROUBLE_LONGEST, Backoff, Poster, Rounds
from gatehouse.tokens.claims import LogoutClaims, LogoutEvent
from gatehouse.tokens.signing import Signer

log = structlog.get_logger(__name__)

BATCH: Final = 8  # calls at once
TOKEN_LIFE: Final = 120  # seconds; Back-Channel Logout §2.4 advises two minutes at most
BACKOFF: Final = Backoff(first=15, longest=3_600)
TRIED_FOR: Final = 86_400
NEVER: Final = 0  # the next try of a call that is kept for the operator to see
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
THE_SERVICE: Final = Origin(actor="service")


class BackchannelLogout:
    def __init__(
        self,
        *,
        store: LogoutStore,
        clients: ClientStore,
        poster: Poster,
        signer: Signer,
        recorder: Recorder,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._store = store
        self._clients = clients
        self._poster = poster
        self._signer = signer
        self._recorder = recorder
        self._clock = clock
        self._issuer = issuer
        self._rounds = Rounds(claim=self._claim, run=self._run, poster=poster)

    async def run_once(self) -> None:
        """Make whatever calls are due; return when none is left that could be made now."""
        await self._rounds.run_once()

    async def _claim(self, lease: int) -> Sequence[LogoutCall]:
        return await self._store.claim(self._clock.now(), most=BATCH, lease=lease)

    async def _run(self, call: LogoutCall) -> None:
        try:
            answer = await self._poster.post(await self._posting(call))
        except ClientNotFound:
            await self._store.put_off(call, "the client was removed", NEVER)
        except CallFailed as failed:
            await self._not_told(call, failed.detail or failed.public)
        else:
            if answer.is_success:
                await self._store.delivered(call, self._entry(Event.LOGOUT_TOLD, call))
            else:
                await self._not_told(call, f"answered {answer.status}")

    async def _posting(self, call: LogoutCall) -> Posting:
        """A new token for each try: one that arrived though its answer was lost is not taken for a replay."""
        client = await self._clients.client(call.client_id)
        now = self._clock.now()
        claims = LogoutClaims(
            iss=self._issuer,
            aud=call.client_id,
            iat=now,
            exp=now + TOKEN_LIFE,
            jti=f"{call.call_id}.{call.tries}",
            sub=call.user_id,
            sid=call.session_id,
            events=LogoutEvent(),
        )
        token = await self._signer.sign(claims, alg=client.token_settings.id_token_alg)
        return Posting(url=call.uri, body=urlencode({"logout_token": token}).encode(), headers=FORM)

    async def _not_told(self, call: LogoutCall, trouble: str) -> None:
        next_try_at = self._clock.now() + BACKOFF.after(call.tries)
        if next_try_at > call.created_at + TRIED_FOR:
            await self._give_up(call, trouble)
        else:
            await self._store.put_off(call, trouble[:TROUBLE_LONGEST], next_try_at)

    async def _give_up(self, call: LogoutCall, trouble: str) -> None:
        log.warning("back-channel logout failed", client_id=call.client_id, reason=trouble)
        await self._store.give_up(call, trouble[:TROUBLE_LONGEST], self._entry(Event.LOGOUT_GIVEN_UP, call))

    def _entry(self, event: Event, call: LogoutCall) -> Record:
        details: Details = {"user_id": call.user_id, "session": call.session_id, "tries": call.tries}
        return self._recorder.record(event, THE_SERVICE, subject=call.client_id, details=details)
