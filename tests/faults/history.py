"""The requests of clients to nodes and their results, one line of JSON per operation.

Checkers (tests/faults/invariants) read only this, so the same checkers work for HTTP clients and for a simulation. An
operation without a response, or with one that blames the service, is `info`: it may have happened, may still happen,
or never.
"""

import asyncio
from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Final

import msgspec

NEMESIS: Final = "nemesis"  # the client that injects faults


class Result(StrEnum):
    OK = "ok"
    FAIL = "fail"  # refused, without effect
    INFO = "info"


class Act(StrEnum):
    """What an operation means to a checker; `key` names its subject, `value` its outcome."""

    ISSUE = "issue"  # a code, which is the key
    REDEEM = "redeem"  # a code, for the refresh token that becomes the value
    REFRESH = "refresh"  # a refresh token, for the next one
    LAST_TRY = "last_try"  # every refresh token, at the end of the run
    APPROVE = "approve"  # a game session
    DELIVER = "deliver"  # its answer
    SPEND = "spend"  # something that works once, such as a TOTP step
    BEGIN = "begin"  # something is valid from now on: a key, a sign-in, a permission
    END = "end"  # it is no longer valid
    USE = "use"  # whether it is valid
    ADD = "add"  # the value, to the set of that key
    REMOVE = "remove"
    COUNT = "count"  # the size of that set, by a node or by the database
    WRITE = "write"  # a unique value, to the record of that key
    READ = "read"
    FOUND = "found"  # a record at the end of the run
    MEASURE = "measure"  # a figure of a process
    OPEN = "open"  # an endpoint that needs no database
    FAULT = "fault"  # from when to when a component was down


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation; `t0` and `t1` are the times of request and response on one clock, in seconds."""

    t0: float
    t1: float
    node: int
    client: str
    op: Act
    key: str
    value: str
    result: Result
    status: int = 0  # HTTP status, or 0 without a response
    note: str = ""  # the name of an error, or why there was no response
    patient: bool = False  # the response said when to retry
    version: int = 0  # of the record, if the response contains it
    request_id: str = ""
    event: str = ""  # the audit record it writes if it happens
    number: int = 0  # its position in the run
    repeats: int = 0  # the number of the operation that it repeats

    @property
    def ok(self) -> bool:
        return self.result is Result.OK

    @property
    def maybe(self) -> bool:
        """Whether it has or may have happened."""
        return self.result is not Result.FAIL

    @property
    def over(self) -> float:
        """The time after which it can have no effect."""
        return inf if self.result is Result.INFO else self.t1


History = Sequence[Operation]


def operations_of(history: Iterable[Operation], *acts: Act) -> list[Operation]:
    return [operation for operation in history if operation.op in acts]


def by_key(history: Iterable[Operation]) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for operation in history:
        groups.setdefault(operation.key, []).append(operation)
    return groups


def describe(operation: Operation) -> str:
    """One line about an operation, to find it in the file."""
    times = f"({operation.t0:.4f} to {operation.t1:.4f})"
    return f"#{operation.number} {operation.op} {operation.key!r} {operation.value!r} {operation.result} {times}"


class Recorder:
    """Number operations and write each immediately, so that a killed run leaves a complete file up to that point."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.operations: list[Operation] = []
        self.succeeded = 0  # operations that a node answered
        self.failed = 0
        self._written = asyncio.Event()
        self._file = path.open("ab")

    def next_number(self) -> int:
        return len(self.operations) + 1

    def write(self, operation: Operation) -> Operation:
        numbered = msgspec.structs.replace(operation, number=self.next_number())
        self.operations.append(numbered)
        self.succeeded += numbered.ok and numbered.status > 0
        self.failed += not numbered.ok
        self._file.write(msgspec.json.encode(numbered) + b"\n")
        self._file.flush()
        self._written.set()
        return numbered

    async def wait_until_succeeded(self, wanted: int) -> None:
        while self.succeeded < wanted:
            await self._next_operation()

    async def wait_until_failed(self, wanted: int) -> None:
        while self.failed < wanted:
            await self._next_operation()

    async def _next_operation(self) -> None:
        self._written.clear()
        await self._written.wait()

    def close(self) -> None:
        self._file.close()


def read_history(path: Path) -> list[Operation]:
    return [msgspec.json.decode(line, type=Operation) for line in path.read_bytes().splitlines()]
