"""The requests of clients to nodes and their results, one line of JSON for each operation.

A checker reads nothing else (tests/faults/invariants), so anyone who writes such lines can be checked: clients over
HTTP here, a simulation elsewhere. An answer that did not come, or that blames the service, is `info`: the
operation may have happened, may happen yet, or never.
"""

import asyncio
from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Final

import msgspec

NEMESIS: Final = "nemesis"  # the client that breaks things


class Result(StrEnum):
    OK = "ok"
    FAIL = "fail"  # refused, and nothing happened
    INFO = "info"


class Act(StrEnum):
    """What an operation is to a checker; `key` says of what thing, `value` with which outcome."""

    ISSUE = "issue"  # a code: key it
    REDEEM = "redeem"  # a code, for the refresh token that becomes the value
    REFRESH = "refresh"  # a refresh token, for the next one
    LAST_TRY = "last_try"  # of every refresh token there ever was, when all is over
    APPROVE = "approve"  # a game session
    DELIVER = "deliver"  # its answer
    SPEND = "spend"  # whatever works once: a TOTP step
    BEGIN = "begin"  # something holds from now on: a key, a sign-in, a right of someone
    END = "end"  # it does no more
    USE = "use"  # whether it does
    ADD = "add"  # the value, to the set of that key
    REMOVE = "remove"
    COUNT = "count"  # how many that set has, by a node or by the database
    WRITE = "write"  # a value no one else writes, to the record of that key
    READ = "read"
    FOUND = "found"  # a record when all is over
    MEASURE = "measure"  # a figure of a process
    OPEN = "open"  # what needs no database
    FAULT = "fault"  # from when to when which part was gone


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`t0` and `t1` are seconds on one clock: of the asking, and of the answer."""

    t0: float
    t1: float
    node: int
    client: str
    op: Act
    key: str
    value: str
    result: Result
    status: int = 0  # of HTTP; 0 where no answer came
    note: str = ""  # what an error was called, or why there was no answer
    patient: bool = False  # the answer said when to ask again
    version: int = 0  # of the record, where the answer tells one
    request_id: str = ""
    event: str = ""  # the audit record this leaves, if it happens
    number: int = 0  # which operation of its run
    repeats: int = 0  # the number of the operation that this asks once more

    @property
    def ok(self) -> bool:
        return self.result is Result.OK

    @property
    def maybe(self) -> bool:
        """It has happened, or may have."""
        return self.result is not Result.FAIL

    @property
    def over(self) -> float:
        """When it can have an effect no more."""
        return inf if self.result is Result.INFO else self.t1


History = Sequence[Operation]


def operations_of(history: Iterable[Operation], *acts: Act) -> list[Operation]:
    return [one for one in history if one.op in acts]


def by_key(history: Iterable[Operation]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for one in history:
        found.setdefault(one.key, []).append(one)
    return found


def describe(one: Operation) -> str:
    """A line about an operation, for anyone who looks for it in the file."""
    return f"#{one.number} {one.op} {one.key!r} {one.value!r} {one.result} ({one.t0:.4f} to {one.t1:.4f})"


class Recorder:
    """Numbers operations and writes each down at once: the file of a run that is killed is whole up to there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.operations: list[Operation] = []
        self.succeeded = 0  # of those that some node answered
        self._written = asyncio.Event()
        self._file = path.open("ab")

    def next_number(self) -> int:
        return len(self.operations) + 1

    def write(self, one: Operation) -> Operation:
        numbered = msgspec.structs.replace(one, number=self.next_number())
        self.operations.append(numbered)
        self.succeeded += numbered.ok and numbered.status > 0
        self._file.write(msgspec.json.encode(numbered) + b"\n")
        self._file.flush()
        self._written.set()
        return numbered

    async def until_succeeded(self, wanted: int) -> None:
        while self.succeeded < wanted:
            self._written.clear()
            await self._written.wait()

    def close(self) -> None:
        self._file.close()


def read_history(path: Path) -> list[Operation]:
    return [msgspec.json.decode(line, type=Operation) for line in path.read_bytes().splitlines()]
