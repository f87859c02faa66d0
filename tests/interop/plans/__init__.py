"""Modules of the OpenID Foundation's certification plans, each a coroutine under its name there."""

from collections.abc import Awaitable, Callable
from typing import Final

from tests.interop.certifier import Certifier

Check = Callable[[Certifier], Awaitable[None]]
BASIC: Final[dict[str, Check]] = {}
CONFIG: Final[dict[str, Check]] = {}
LOGOUT: Final[dict[str, Check]] = {}
BACK_CHANNEL: Final[dict[str, Check]] = {}


def module(plan: dict[str, Check], name: str) -> Callable[[Check], Check]:
    def keep(check: Check) -> Check:
        plan[name] = check
        return check

    return keep
