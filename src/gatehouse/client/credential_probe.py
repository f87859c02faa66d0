"""Whether the service accepts this application's credentials.

It refuses a wrong access key with the same error as a user's JWT (SECURITY.md, P7). So when a user is refused, the
application sends one more request that needs only its own credential (R6).
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gatehouse.client.clock import Clock
from gatehouse.client.credentials import Credential, PermissionQuery
from gatehouse.client.errors import Unavailable
from gatehouse.client.transport import Reply, Transport

PROBE_INTERVAL: Final = 10.0  # seconds: forged JWTs must not cause a flood of requests
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
        """Whether the credential is refused; False while it is unknown.

        Only one request runs at a time, for any number of callers.
        """
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
