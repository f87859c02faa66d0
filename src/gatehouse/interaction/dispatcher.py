"""Where a sign-in stands, and what comes next."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from gatehouse.interaction.errors import InteractionGone
from gatehouse.interaction.model import FAILURES_MOST, LIFETIME, Interaction, Step
from gatehouse.interaction.store import InteractionStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret, sha256
from gatehouse.kernel.ids import new_secret

BROWSER = "browser"


class Occasion(Protocol):
    """What a sign-in is for: declared by the room that begins it, handed in by the composition root."""

    async def next_step(self, interaction: Interaction) -> Step:
        """What is left to ask of someone who has proved who he is: CONSENT, CONFIRM or DONE."""

    async def finish(self, interaction: Interaction) -> str:
        """Carry out what it was for and return the address the browser goes to."""


class Interactions:
    def __init__(self, *, store: InteractionStore, occasions: Mapping[str, Occasion], clock: Clock) -> None:
        self._store = store
        self._occasions = occasions
        self._clock = clock

    async def begin(self, kind: str, ask: Mapping[str, str], *, browser: str, user_id: str | None = None) -> str:
        """Begin a way bound to that browser; returns the handle that its pages carry."""
        handle = new_secret()
        now = self._clock.now()
        await self._store.begin(
            Interaction(
                digest=sha256(handle),
                kind=kind,
                step=Step.LOGIN if user_id is None else Step.FACTOR,
                ask={**ask, BROWSER: sha256(browser).hex()},
                user_id=user_id,
                created_at=now,
                ends_at=now + LIFETIME,
            )
        )
        return handle

    async def find(self, handle: str, *, browser: str) -> Interaction:
        """Return the way this browser is on; a handle alone opens nothing. Raises InteractionGone."""
        interaction = await self._store.find(sha256(handle), self._clock.now())
        if interaction is None or not same_secret(interaction.ask[BROWSER], sha256(browser).hex()):
            raise InteractionGone
        return interaction

    async def proved_first(self, interaction: Interaction, user_id: str) -> Interaction:
        """The password was right; a second factor is still asked for."""
        return await self._store.move(replace(interaction, user_id=user_id, step=Step.FACTOR, auth=""))

    async def proved(self, interaction: Interaction, user_id: str, auth: str) -> Interaction:
        """Everything was proved; the occasion says what comes next."""
        known = replace(interaction, user_id=user_id, auth=auth)
        return await self._store.move(replace(known, step=await self._occasion(known).next_step(known)))

    async def failed(self, interaction: Interaction) -> Interaction:
        """Count a wrong code; after too many the way ends, and the password is asked for again."""
        if interaction.failures + 1 >= FAILURES_MOST:
            await self._store.finish(interaction.digest, self._clock.now())
            raise InteractionGone
        return await self._store.move(replace(interaction, failures=interaction.failures + 1))

    async def drop(self, interaction: Interaction) -> None:
        """Take away a way that its own room finishes: the login operation answers instead of sending on."""
        if await self._store.finish(interaction.digest, self._clock.now()) is None:
            raise InteractionGone

    async def finish(self, interaction: Interaction) -> str:
        """Take the interaction and carry out what it was for, once; returns where the browser goes."""
        taken = await self._store.finish(interaction.digest, self._clock.now())
        if taken is None or taken.step is not Step.DONE:
            raise InteractionGone
        return await self._occasion(taken).finish(taken)

    def _occasion(self, interaction: Interaction) -> Occasion:
        return self._occasions[interaction.kind]
