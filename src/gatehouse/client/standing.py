"""Whether the service takes what this application shows for itself.

It refuses a wrong access key in the words in which it refuses a visitor's JWT (SECURITY.md, P7). So when somebody is
refused, the application asks once more without him: a question that needs nothing but its own credential (R6).
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gatehouse.client.clock import Clock
from gatehouse.client.credentials import Credential, PermissionQuery
from gatehouse.client.errors import Unavailable
from gatehouse.client.transport import Reply, Transport

PROBE_INTERVAL: Final = 10.0  # seconds: made-up JWTs must not become a flood of questions
REFUSED_STATUSES: Final = (401, 403)
INVALID_TOKEN: Final = "invalid token"  # noqa: S105 - what the service says instead of 401 to old clients


class ErrorBody(msgspec.Struct, frozen=True):
    error: str = ""


@dataclass(slots=True, kw_only=True)
class CredentialProbe:
    base_url: str
    application_id: int
    credential: Credential
    transport: Transport
    clock: Clock
    _asked_at: float = field(default=float("-inf"), init=False)
    _asking: asyncio.Task[bool] | None = field(default=None, init=False)

    async def is_refused(self, user_id: str) -> bool:
        """False also while nobody can tell. One question at a time, however many visitors wait for its answer."""
        is_old = self.clock.monotonic() - self._asked_at >= PROBE_INTERVAL
        if self._asking is None or (self._asking.done() and is_old):
            self._asked_at = self.clock.monotonic()
            self._asking = asyncio.create_task(self._ask(user_id), name="gatehouse standing")
        return await asyncio.shield(self._asking)

    async def _ask(self, user_id: str) -> bool:
        question = PermissionQuery(
            base_url=self.base_url, application_id=self.application_id, about=user_id, now=self.clock.now()
        )
        try:
            return is_refusal(await self.transport.send(self.credential.ask(question)))
        except Unavailable:
            return False


def is_refusal(reply: Reply) -> bool:
    try:
        return (
            reply.status in REFUSED_STATUSES or msgspec.json.decode(reply.body, type=ErrorBody).error == INVALID_TOKEN
        )
    except msgspec.DecodeError:
        return False
