"""The operations of one simulated run and their results."""

from dataclasses import dataclass, field
from enum import StrEnum


class Result(StrEnum):
    OK = "ok"
    FAIL = "fail"  # refused, without effect
    INFO = "info"  # no response, or an inconclusive one: it may have been executed


@dataclass(slots=True, kw_only=True)
class Op:
    number: int
    kind: str
    key: str  # its subject
    value: str = ""  # a unique value of this request
    node: str = ""
    began: float = 0.0
    ended: float = 0.0
    result: Result = Result.INFO
    detail: str = ""  # the response, or why there was none

    @property
    def request_id(self) -> str:
        return f"op-{self.number}"

    def __str__(self) -> str:
        call = f"{self.kind} {self.key} {self.value}".strip()
        return (
            f"{self.began:9.3f} {self.ended:9.3f} {self.node:3} {self.result.value:4} {call} {self.detail}".rstrip()
        )


@dataclass(slots=True)
class History:
    ops: list[Op] = field(default_factory=list)
    events: list[str] = field(default_factory=list)  # injected faults, noted by the simulation
    bugs: list[str] = field(default_factory=list)  # errors that no caller should see

    def of(self, *kinds: str, key: str | None = None) -> list[Op]:
        return [op for op in self.ops if op.kind in kinds and key in (None, op.key)]

    def keys(self, *kinds: str) -> list[str]:
        return list(dict.fromkeys(op.key for op in self.ops if op.kind in kinds))

    def lines(self) -> list[str]:
        return [*map(str, self.ops), *self.events, *self.bugs]
