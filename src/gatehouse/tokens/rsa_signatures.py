"""RSA signatures, which take ten times as long as all others."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, Protocol

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from msgspec import Struct

RS256_PADDING: Final = PKCS1v15()
SHA_256: Final = SHA256()


class RsaSignatures(Protocol):
    async def sign(self, key: RSAPrivateKey, message: bytes) -> bytes:
        """Return the RS256 signature."""


def sign_rs256(key: RSAPrivateKey, message: bytes) -> bytes:
    return key.sign(message, RS256_PADDING, SHA_256)


class InlineSignatures(Struct, eq=False):
    """Signs on the event loop: where every core has a process of its own, a thread only adds its switches."""

    async def sign(self, key: RSAPrivateKey, message: bytes) -> bytes:
        return sign_rs256(key, message)


class QueuedSignature(Struct, eq=False):
    key: RSAPrivateKey
    message: bytes
    result: asyncio.Future[bytes]
    signature: bytes = b""
    error: Exception | None = None

    def sign(self) -> None:
        try:
            self.signature = sign_rs256(self.key, self.message)
        except Exception as error:  # noqa: BLE001 - it is the caller's
            self.error = error

    def deliver(self) -> None:
        if self.result.done():  # the caller was canceled
            return
        if self.error is None:
            self.result.set_result(self.signature)
        else:
            self.result.set_exception(self.error)


class ThreadedSignatures:
    """Signs in threads; all that one turn of the event loop asks for is one job, with one switch there and back."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._queue: list[QueuedSignature] = []

    async def sign(self, key: RSAPrivateKey, message: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        queued = QueuedSignature(key, message, loop.create_future())
        self._queue.append(queued)
        if len(self._queue) == 1:
            loop.call_soon(self._start_job, loop)  # later: more requests may ask in this turn
        return await queued.result

    def _start_job(self, loop: asyncio.AbstractEventLoop) -> None:
        job, self._queue = self._queue, []
        try:
            self._executor.submit(sign_all, job, loop)
        except RuntimeError as error:  # the executor was shut down
            for queued in job:
                queued.error = error
            deliver_all(job)


def sign_all(job: Sequence[QueuedSignature], loop: asyncio.AbstractEventLoop) -> None:
    for queued in job:
        queued.sign()
    loop.call_soon_threadsafe(partial(deliver_all, job))


def deliver_all(job: Sequence[QueuedSignature]) -> None:
    for queued in job:
        queued.deliver()
