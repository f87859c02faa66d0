"""W1: codes and the refresh token families issued from them; raced, reused, and used after their end."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from tests.faults.clients import CheckedReply, ClientPool, FaultClient, repeat_until_over
from tests.faults.fault_setup import CODE_SECONDS, FaultSetup, RelyingClient, with_password
from tests.faults.history import Act, History
from tests.faults.invariants.once import (
    i1_a_code_is_consumed_at_most_once,
    i2_a_family_has_one_live_token_and_after_reuse_none,
    i15_nothing_outlives_its_end,
)
from tests.faults.workloads.signing_in import redeem_request, refresh_request, refresh_token_in, request_code, sign_in
from tests.support.database_contents import Rows

CLIENTS: Final = 3
LATE_MOST: Final = 5  # codes each client keeps until they have expired


class Codes:
    def __init__(self) -> None:
        self._tokens: list[str] = []  # every refresh token ever issued
        self._codes: list[str] = []  # every code that was redeemed or tried
        self._late: list[str] = []

    async def prepare(self, setup: FaultSetup) -> None:
        self._relying: RelyingClient = setup.relying
        self._logins = [(await with_password(setup.services, f"codes{n}")).login or "" for n in range(CLIENTS)]

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        return [self._work(pool.client(f"codes {n}"), login) for n, login in enumerate(self._logins)]

    async def _work(self, client: FaultClient, login: str) -> None:
        await sign_in(client, login)
        await repeat_until_over(
            client,
            self._rotate_family,
            self._rotate_family,
            self._race_code,
            self._race_token,
            self._reuse,
            self._keep_code,
        )

    async def _code(self, client: FaultClient) -> str | None:
        code = await request_code(client, self._relying)
        if code is not None:
            self._codes.append(code)
        return code

    async def _rotate_family(self, client: FaultClient) -> str | None:
        """Rotate one family some generations long; return its newest token."""
        code = await self._code(client)
        token = None if code is None else await self._redeem_code(client, code)
        for _ in range(client.chance.randrange(4)):
            if token is not None:
                token = self._keep_token(await client.ask(refresh_request(self._relying, token)))
        return token

    async def _redeem_code(self, client: FaultClient, code: str) -> str | None:
        return self._keep_token(await client.ask(redeem_request(self._relying, code)))

    async def _race_code(self, client: FaultClient) -> None:
        if (code := await self._code(client)) is not None:
            await asyncio.gather(*(self._redeem_code(client, code) for _ in range(3)))

    async def _race_token(self, client: FaultClient) -> None:
        if (token := await self._rotate_family(client)) is not None:
            asks = (client.ask(refresh_request(self._relying, token)) for _ in range(3))
            for reply in await asyncio.gather(*asks):
                self._keep_token(reply)

    async def _reuse(self, client: FaultClient) -> None:
        if self._tokens:
            old = client.chance.choice(self._tokens[-50:])
            self._keep_token(await client.ask(refresh_request(self._relying, old)))

    async def _keep_code(self, client: FaultClient) -> None:
        if len(self._late) < LATE_MOST * CLIENTS and (code := await request_code(client, self._relying)) is not None:
            self._late.append(code)

    def _keep_token(self, reply: CheckedReply) -> str | None:
        token = refresh_token_in(reply)
        if token is not None:
            self._tokens.append(token)
        return token

    async def finish(self, pool: ClientPool) -> None:
        """Try each code and each token again, newest first, and the kept codes."""
        client = pool.client("codes, at the end")
        for code in (*self._codes, *self._late):
            self._keep_token(await client.ask(redeem_request(self._relying, code)))
        for token in reversed(self._tokens):
            await client.ask(refresh_request(self._relying, token, op=Act.LAST_TRY))

    def problems(self, history: History, rows: Rows) -> list[str]:  # noqa: ARG002 - history tells it all
        return [
            *i1_a_code_is_consumed_at_most_once(history),
            *i2_a_family_has_one_live_token_and_after_reuse_none(history),
            *i15_nothing_outlives_its_end(history, CODE_SECONDS + 1),
        ]
