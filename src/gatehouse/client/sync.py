"""The client for code without an event loop: the same calls, which return when they are done.

Each client runs in a thread with an event loop of its own, which starts with the first call. A forked process (of
gunicorn with `--preload`, of uWSGI) starts its own: it must share neither threads nor connections with its parent.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakSet

from gatehouse.client.authzen import Authzen
from gatehouse.client.gatehouse import Gatehouse
from gatehouse.client.management import Management
from gatehouse.client.protected_resource import ProtectedResource
from gatehouse.client.token_source import TokenSource


class AsyncClient(Protocol):
    async def close(self) -> None:
        """Close all connections."""


A = TypeVar("A", bound=AsyncClient)
R = TypeVar("R")
P = ParamSpec("P")


class SyncClient(Generic[A]):
    """What the synchronous clients share. Any thread may call them."""

    _make: Callable[[], A]
    _lock: threading.Lock
    _loop: asyncio.AbstractEventLoop | None
    _thread: threading.Thread
    _client: A  # made here, so that wrong arguments are refused at once

    def _open(self, make: Callable[[], A]) -> None:
        self._make = make
        self._start_anew()
        CLIENTS.add(self)

    def _start_anew(self) -> None:
        self._lock = threading.Lock()
        self._loop = None
        self._client = self._make()

    def _call(self, work: Callable[[A], Coroutine[Any, Any, R]]) -> R:
        return asyncio.run_coroutine_threadsafe(work(self._client), self._running_loop()).result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=run_until_stopped, args=(self._loop,), name="gatehouse-client", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Close all connections and end the thread."""
        self._call(lambda client: client.close())
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


CLIENTS: Final[WeakSet[SyncClient[Any]]] = WeakSet()


def start_all_anew() -> None:
    for client in CLIENTS:
        client._start_anew()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=start_all_anew)


def constructor(kind: Callable[P, A]) -> Callable[Concatenate[SyncClient[A], P], None]:
    """Return an `__init__` with the arguments of the asynchronous client."""

    def init(self: SyncClient[A], /, *args: P.args, **kwargs: P.kwargs) -> None:
        self._open(partial(kind, *args, **kwargs))

    return init


def synchronous(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncClient[A], P], R]:
    @wraps(method)
    def call(self: SyncClient[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._call(lambda client: method(client, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[A, P], AsyncIterator[R]],
) -> Callable[Concatenate[SyncClient[A], P], Iterator[R]]:
    @wraps(method)
    def call(self: SyncClient[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        entries: AsyncIterator[R] | None = None

        async def following(client: A) -> R | None:
            nonlocal entries
            entries = entries or method(client, *args, **kwargs)
            return await anext(entries, None)

        while (entry := self._call(following)) is not None:
            yield entry

    return call


# Here, because in a class mypy expects the arguments of object's __init__.
init_gatehouse = constructor(Gatehouse)
init_management = constructor(Management)
init_authzen = constructor(Authzen)
init_token_source = constructor(TokenSource)
init_protected_resource = constructor(ProtectedResource)


class SyncGatehouse(SyncClient[Gatehouse]):
    """`Gatehouse` without `await`. A process that was forked calls `follow_changes` again."""

    __init__ = init_gatehouse

    user = synchronous(Gatehouse.user)
    permissions = synchronous(Gatehouse.permissions)
    allows = synchronous(Gatehouse.allows)
    require = synchronous(Gatehouse.require)
    follow_changes = synchronous(Gatehouse.follow_changes)


class SyncManagement(SyncClient[Management]):
    """`Management` without `await`; lists are ordinary iterators."""

    __init__ = init_management

    call = synchronous(Management.call)
    search_people = iterating(Management.search_people)
    list = iterating(Management.list)
    get_person = synchronous(Management.get_person)
    create_person = synchronous(Management.create_person)
    save_person = synchronous(Management.save_person)
    block_person = synchronous(Management.block_person)
    end_sessions = synchronous(Management.end_sessions)
    reset_factors = synchronous(Management.reset_factors)
    erase_person = synchronous(Management.erase_person)
    save_settings = synchronous(Management.save_settings)


class SyncAuthzen(SyncClient[Authzen]):
    """`Authzen` without `await`; searches are ordinary iterators."""

    __init__ = init_authzen

    evaluate = synchronous(Authzen.evaluate)
    evaluations = synchronous(Authzen.evaluations)
    search_subjects = iterating(Authzen.search_subjects)
    search_actions = iterating(Authzen.search_actions)
    search_resources = iterating(Authzen.search_resources)


class SyncTokenSource(SyncClient[TokenSource]):
    """`TokenSource` without `await`."""

    __init__ = init_token_source

    token = synchronous(TokenSource.token)


class SyncProtectedResource(SyncClient[ProtectedResource]):
    """`ProtectedResource` without `await`."""

    __init__ = init_protected_resource

    verify = synchronous(ProtectedResource.verify)

    @property
    def description(self) -> ProtectedResource:
        """For its metadata document and the challenges of refusals."""
        return self._client
