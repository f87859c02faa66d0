"""Delegation: a program acts for a person, through another client that the person uses (RFC 8693, R11).

The person allows it with a scope `delegate:<application_id>`, which names the application whose programs may act.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.oauth.api_model import SCOPE_MARK, plain_scope
from gatehouse.oauth.model import ActingProgram, Client
from gatehouse.tokens.claims import ActClaim

DELEGATE_SCOPE: Final = re.compile(r"delegate:([1-9][0-9]{0,15})", re.ASCII)
MAX_DELEGATES: Final = 10  # applications that one request may name
MAX_ACTORS: Final = 3  # in a chain (R11)
DELEGATED_SECONDS: Final = 300  # lifetime of a token at most (R11)


class ActingApplication(Struct, frozen=True, kw_only=True):
    """An application that may act for a person, and its programs, as pages show them."""

    application_id: int
    name: str
    programs: tuple[str, ...]  # names


def delegate_scope(application_id: int) -> str:
    return f"delegate:{application_id}"


def delegate_scopes_in(scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(scope for scope in scopes if DELEGATE_SCOPE.fullmatch(scope)))


def without_delegates(scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(scope for scope in scopes if not DELEGATE_SCOPE.fullmatch(scope))


def delegated_applications(scopes: Iterable[str]) -> tuple[int, ...]:
    """Return the IDs of the applications that may act with these scopes."""
    return tuple(int(scope.partition(":")[2]) for scope in delegate_scopes_in(scopes))


def is_delegable(scope: str) -> bool:
    """Whether a token to act with carries the scope: one of an API, or one that names who acts."""
    return SCOPE_MARK in scope or DELEGATE_SCOPE.fullmatch(scope) is not None


def delegable_names(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return these scopes as clients read them."""
    return tuple(name for name in map(plain_scope, filter(is_delegable, scopes)) if name)


def may_act_for(acting: Client, owner: Client, scopes: Collection[str]) -> bool:
    """Whether the acting client may use tokens of the owner that have these scopes."""
    application_id = acting.application_id
    if not acting.may_act or application_id is None or delegate_scope(application_id) not in scopes:
        return False
    return acting.may_act_for_others or owner.application_id == application_id


def new_act(acting: Client, earlier: ActClaim | None) -> ActClaim:
    """Return the `act` of a token for the acting client, with the earlier actors inside."""
    return ActClaim(sub=acting.subject, client_id=acting.client_id, act=earlier)


def actors_in(act: ActClaim | None) -> tuple[str, ...]:
    """Return the client IDs of a chain, the newest first."""
    return () if act is None else (act.client_id, *actors_in(act.act))


def acting_applications(programs: Iterable[ActingProgram], scopes: Sequence[str]) -> tuple[ActingApplication, ...]:
    """Return the applications that these scopes name, with their programs among the given ones."""
    by_application: dict[int, list[ActingProgram]] = {number: [] for number in delegated_applications(scopes)}
    for program in programs:
        if program.application_id in by_application:
            by_application[program.application_id].append(program)
    return tuple(
        ActingApplication(
            application_id=number, name=listed[0].application, programs=tuple(program.name for program in listed)
        )
        for number, listed in by_application.items()
        if listed
    )
