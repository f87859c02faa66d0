"""Makes the deliveries: each webhook in a lane of its own, so that one that does not answer holds up no other."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

import structlog

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.outbound.errors import CallFailed
from gatehouse.outbound.model import Limits, Posting
from gatehouse.outbound.rounds import Backoff, Poster, Rounds
from gatehouse.webhooks.errors import NoSecret
from gatehouse.webhooks.following import Follower
from gatehouse.webhooks.messages import headers_of
from gatehouse.webhooks.model import WEBHOOKS_MOST, Attempt, Held, Webhook, secret_purpose
from gatehouse.webhooks.store import WebhookStore

log = structlog.get_logger(__name__)

LANE: Final = 4  # deliveries to one webhook at once
# A place for every lane there can be: whoever is slow uses up none but his own.
LIMITS: Final = Limits(at_once=LANE * WEBHOOKS_MOST, body_bytes=65_536)
BACKOFF: Final = Backoff(first=15, longest=4 * 3_600)
GIVEN_UP_MOST: Final = 10  # in a row, then the webhook is disabled
GONE: Final = 410  # the receiver wants no more of them (Standard Webhooks, "Delivery success and failure")
THE_SERVICE: Final = Origin(actor="service")


class Opening(Protocol):
    """What opens secrets: the master keys."""

    def opened(self, sealed: bytes, *, purpose: str) -> bytes | None:
        """Return what was sealed for that purpose; None, with an alarm, for anything else."""


class Deliveries:
    def __init__(
        self,
        *,
        store: WebhookStore,
        follower: Follower,
        poster: Poster,
        opening: Opening,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._follower = follower
        self._poster = poster
        self._opening = opening
        self._recorder = recorder
        self._clock = clock
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()  # who got something due while his lane was walked

    async def tend(self) -> None:
        """Read on, and set out with whatever is due; nobody waits here for a receiver."""
        await self._follower.catch_up()
        for webhook_id in await self._store.due(self._clock.now()):
            self._again.add(webhook_id)
            if webhook_id not in self._lanes:
                self._lanes[webhook_id] = asyncio.create_task(self._walk(webhook_id), name=f"webhook-{webhook_id}")

    async def run_once(self) -> None:
        """The same, and wait for every lane."""
        await self.tend()
        await asyncio.gather(*self._lanes.values())

    async def stop(self) -> None:
        """What is under way is made again by whoever comes next, once its lease has ended."""
        lanes = tuple(self._lanes.values())
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)

    async def send(self, webhook_id: str, delivery_id: str) -> None:
        """Make this one delivery now, unless somebody else is at it."""
        await self._rounds(webhook_id, only=delivery_id).run_once()

    async def _walk(self, webhook_id: str) -> None:
        try:
            while webhook_id in self._again:
                self._again.discard(webhook_id)
                await self._rounds(webhook_id).run_once()
                await self._read_on(webhook_id)
        except Exception:
            log.exception("webhook: worker failed", webhook_id=webhook_id)  # tried again with the next round
        finally:
            del self._lanes[webhook_id]

    async def _read_on(self, webhook_id: str) -> None:
        """There may be room again for what it could not read before."""
        await self._follower.catch_up()
        if webhook_id in await self._store.due(self._clock.now()):
            self._again.add(webhook_id)

    def _rounds(self, webhook_id: str, *, only: str = "") -> Rounds[Held]:
        return Rounds(claim=partial(self._claim, webhook_id, only), run=self._deliver, poster=self._poster)

    async def _claim(self, webhook_id: str, only: str, lease: int) -> Sequence[Held]:
        return await self._store.claim(webhook_id, self._clock.now(), lease=lease, most=LANE, only=only)

    async def _deliver(self, held: Held) -> None:
        attempt = await self._attempt(held)
        if not attempt.trouble:
            await self._store.delivered(held, attempt, self._clock.now())
            return
        next_try_at = self._clock.now() + BACKOFF.after(held.delivery.tries)
        if attempt.status == GONE:
            await self._give_up(held, attempt, most=1)
        elif next_try_at > held.delivery.ends_at:
            await self._give_up(held, attempt, most=GIVEN_UP_MOST)
        else:
            await self._store.put_off(held, attempt, next_try_at)

    async def _attempt(self, held: Held) -> Attempt:
        began = self._clock.monotonic()
        status, trouble = 0, ""
        try:
            answer = await self._poster.post(self._posting(held))
        except CallFailed as failed:
            # Only the public half is kept: whoever reads the log need not learn where names lead inside.
            log.info("webhook: delivery attempt failed", webhook_id=held.webhook.webhook_id, reason=failed.detail)
            trouble = failed.public
        except NoSecret as error:
            trouble = error.public
        else:
            status = answer.status
            trouble = "" if answer.is_success else f"answered {answer.status}"
        return Attempt(status=status, duration_ms=round((self._clock.monotonic() - began) * 1_000), trouble=trouble)

    def _posting(self, held: Held) -> Posting:
        delivery, now = held.delivery, self._clock.now()
        body = delivery.body.encode()
        headers = headers_of(delivery.event_id, body, self._keys(held.webhook, now), now)
        return Posting(url=held.webhook.url, body=body, headers=headers)

    def _keys(self, webhook: Webhook, now: int) -> Sequence[bytes]:
        """One for each live secret that is sound: the receiver knows both. Raises NoSecret."""
        live = [webhook.sealed_secret]
        if webhook.sealed_old_secret is not None and webhook.old_secret_ends_at > now:
            live.append(webhook.sealed_old_secret)
        opened = [self._opening.opened(sealed, purpose=secret_purpose(webhook.webhook_id)) for sealed in live]
        sound = [secret for secret in opened if secret is not None]
        if not sound:
            raise NoSecret
        return sound

    async def _give_up(self, held: Held, attempt: Attempt, *, most: int) -> None:
        webhook_id = held.webhook.webhook_id
        log.warning("webhook: delivery failed", webhook_id=webhook_id, event_id=held.delivery.event_id)
        entry = self._recorder.record(
            Event.WEBHOOK_STOPPED, THE_SERVICE, subject=f"webhook {webhook_id}", details={"status": attempt.status}
        )
        if await self._store.give_up(held, attempt, self._clock.now(), most=most, entry=entry):
            log.warning("webhook: disabled", webhook_id=webhook_id)
