"""RSA signatures of one turn of the event loop are one job of a thread."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from gatehouse.app.services.keys import rsa_signatures
from gatehouse.tokens import rsa_signatures as module
from gatehouse.tokens.rsa_signatures import RS256_PADDING, SHA_256, InlineSignatures, ThreadedSignatures
from tests.support.tokens import application_private_key

MESSAGES = (b"first", b"second", b"third")


class CountingExecutor(ThreadPoolExecutor):
    jobs = 0

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        self.jobs += 1
        return super().submit(*args, **kwargs)


@pytest.fixture
def executor() -> Iterator[CountingExecutor]:
    with CountingExecutor(1) as executor:
        yield executor


@pytest.fixture(scope="module")
def key() -> RSAPrivateKey:
    return application_private_key()


def check_signatures(key: RSAPrivateKey, found: list[bytes]) -> None:
    for message, signature in zip(MESSAGES, found, strict=True):
        key.public_key().verify(signature, message, RS256_PADDING, SHA_256)


async def test_signatures_of_one_turn_are_one_job(executor: CountingExecutor, key: RSAPrivateKey) -> None:
    signatures = ThreadedSignatures(executor)
    check_signatures(key, await asyncio.gather(*(signatures.sign(key, message) for message in MESSAGES)))
    assert executor.jobs == 1
    await signatures.sign(key, MESSAGES[0])
    assert executor.jobs == 2


async def test_a_failed_or_canceled_signature_leaves_the_others_of_its_job_alone(
    executor: CountingExecutor, key: RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_one(key: RSAPrivateKey, message: bytes) -> bytes:
        if message == b"bad":
            raise InvalidSignature
        return key.sign(message, RS256_PADDING, SHA_256)

    monkeypatch.setattr(module, "sign_rs256", refuse_one)
    signatures = ThreadedSignatures(executor)
    canceled = asyncio.ensure_future(signatures.sign(key, b"canceled"))
    bad = asyncio.ensure_future(signatures.sign(key, b"bad"))
    good = asyncio.gather(*(signatures.sign(key, message) for message in MESSAGES))
    await asyncio.sleep(0)
    canceled.cancel()
    check_signatures(key, await good)
    with pytest.raises(InvalidSignature):
        await bad
    assert canceled.cancelled()
    assert executor.jobs == 1


async def test_a_stopped_executor_fails_the_signature(executor: CountingExecutor, key: RSAPrivateKey) -> None:
    executor.shutdown()
    with pytest.raises(RuntimeError):
        await ThreadedSignatures(executor).sign(key, b"late")


@pytest.mark.parametrize(
    ("workers", "cores", "is_inline"), [(1, 1, False), (1, 4, False), (2, 4, False), (4, 4, True), (8, 4, True)]
)
async def test_a_process_for_each_core_signs_by_itself(
    *, workers: int, cores: int, is_inline: bool, key: RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)))
    signatures = rsa_signatures(workers)
    assert isinstance(signatures, InlineSignatures) is is_inline
    check_signatures(key, [await signatures.sign(key, message) for message in MESSAGES])
