"""One sign-in under way."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LIFETIME: Final = 600  # seconds from the first request to the end of the sign-in; interface §8
FAILURES_MOST: Final = 10  # wrong codes after which the way starts anew


class Step(StrEnum):
    LOGIN = "login"
    FACTOR = "factor"
    CONSENT = "consent"
    CONFIRM = "confirm"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    digest: bytes
    kind: str  # whose occasion it is: account, login, authorize, game, device
    step: Step = Step.LOGIN
    ask: Mapping[str, str]  # what it is for, as its kind wrote it; `browser` binds it to one
    user_id: str | None = None
    auth: str = ""  # empty until everything asked for was proved
    failures: int = 0
    created_at: int
    ends_at: int
    version: int = 1
