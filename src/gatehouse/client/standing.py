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
    _probed_at: float = field(default=float("-inf"), init=False)
    _probe_task: asyncio.Task[bool] | None = field(default=None, init=False)

    async def is_refused(self, user_id: str) -> bool:
        """False also while nobody can tell. One question at a time, however many visitors wait for its answer."""
        is_old = self.clock.monotonic() - self._probed_at >= PROBE_INTERVAL
        if self._probe_task is None or (self._probe_task.done() and is_old):
            self._probed_at = self.clock.monotonic()
            self._probe_task = asyncio.create_task(self._probe(user_id), name="gatehouse standing")
        return await asyncio.shield(self._probe_task)

    async def _probe(self, user_id: str) -> bool:
        question = PermissionQuery(
            base_url=self.base_url, application_id=self.application_id, about_user_id=user_id, now=self.clock.now()
        )
        try:
            return is_refusal(await self.transport.send(self.credential.build_request(question)))
        except Unavailable:
            return False


def is_refusal(reply: Reply) -> bool:
    try:
        return (
            reply.status in REFUSED_STATUSES or msgspec.json.decode(reply.body, type=ErrorBody).error == INVALID_TOKEN
        )
    except msgspec.DecodeError:
        return False
