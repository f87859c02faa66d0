"""Where a sign-in stands, and what comes next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.addresses import parse_address, source_of
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.sign_in_flow.model import (
    BROWSER,
    FLOW_LIFETIME,
    MAX_FAILURES,
    Destination,
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    SignInFlowStore,
    SignInProof,
    with_first_factor,
    with_proof,
)


class SignInPurpose(Protocol):
    """What a sign-in is for: declared by the room that begins it, handed in by the composition root."""

    async def destination(self, flow: SignInFlow) -> Destination:
        """What its pages tell about it, before and after anybody has proved who he is."""

    async def next_step(self, flow: SignInFlow) -> FlowStep:
        """What is left to ask of someone who has proved who he is: CONSENT, CONFIRM or DONE.

        LOGIN when that proof does not do: too old, or of another kind than is asked for.
        """

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> str:
        """Carry out what it was for and return the address the browser goes to."""


class SignInFlows:
    def __init__(self, *, store: SignInFlowStore, purposes: Mapping[str, SignInPurpose], clock: Clock) -> None:
        self._store = store
        self._purposes = purposes
        self._clock = clock

    async def start(
        self, kind: str, ask: Mapping[str, str], *, browser: str, user: User | None = None, request: str = ""
    ) -> str:
        """Begin a way bound to that browser; returns the handle that its pages carry.

        With `user` it begins at the second step: his password was right. The handle may carry the request that it
        began with, so that whoever comes too late can start it again.
        """
        handle = new_handle(request)
        new = self._new_flow(handle, kind, ask, browser)
        await self._store.create_flow(new if user is None else with_first_factor(new, user))
        return handle

    async def start_with_proof(
        self, kind: str, ask: Mapping[str, str], proof: SignInProof, *, browser: str, request: str = ""
    ) -> tuple[str, SignInFlow]:
        """The same for someone who is signed in already: straight to what the occasion asks for."""
        handle = new_handle(request)
        known = with_proof(self._new_flow(handle, kind, ask, browser), proof)
        interaction = replace(known, step=await self._purpose_of(known).next_step(known))
        await self._store.create_flow(interaction)
        return handle, interaction

    def _new_flow(self, handle: str, kind: str, ask: Mapping[str, str], browser: str) -> SignInFlow:
        now = self._clock.now()
        bound = {**ask, BROWSER: sha256(browser).hex()}
        return SignInFlow(digest=sha256(handle), kind=kind, ask=bound, created_at=now, ends_at=now + FLOW_LIFETIME)

    async def find(self, handle: str, *, browser: str) -> SignInFlow:
        """Return the way this browser is on; a handle alone opens nothing. Raises InteractionGone."""
        interaction = await self._store.find_flow(sha256(handle), self._clock.now())
        if interaction is None or not constant_time_equal(interaction.ask[BROWSER], sha256(browser).hex()):
            raise SignInFlowGone
        return interaction

    async def accept_first_factor(self, flow: SignInFlow, user: User) -> SignInFlow:
        """The password was right; a second factor is still asked for."""
        return await self._store.update_flow(with_first_factor(flow, user))

    async def destination(self, flow: SignInFlow) -> Destination:
        return await self._purpose_of(flow).destination(flow)

    async def accept_proof(self, flow: SignInFlow, proof: SignInProof) -> SignInFlow:
        """Everything was proved; the occasion says what comes next."""
        known = with_proof(flow, proof)
        return await self._store.update_flow(replace(known, step=await self._purpose_of(known).next_step(known)))

    async def approve(self, flow: SignInFlow) -> SignInFlow:
        """What the occasion asked for was answered; nothing is left to ask."""
        if flow.step not in (FlowStep.CONSENT, FlowStep.CONFIRM):
            raise SignInFlowGone
        return await self._store.update_flow(replace(flow, step=FlowStep.DONE))

    async def count_failure(self, flow: SignInFlow) -> SignInFlow:
        """Count a wrong code; after too many the way ends, and the password is asked for again."""
        if flow.failures + 1 >= MAX_FAILURES:
            await self._store.take_flow(flow.digest, self._clock.now())
            raise SignInFlowGone
        return await self._store.update_flow(replace(flow, failures=flow.failures + 1))

    async def discard(self, flow: SignInFlow, record: AuditRecord | None = None) -> None:
        """Take away a way that its own room finishes: the login operation answers instead of sending on."""
        if await self._store.take_flow(flow.digest, self._clock.now(), record) is None:
            raise SignInFlowGone

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> str:
        """Take the interaction and carry out what it was for, once; returns where the browser goes."""
        taken = await self._store.take_flow(flow.digest, self._clock.now())
        if taken is None or taken.step is not FlowStep.DONE:
            raise SignInFlowGone
        return await self._purpose_of(taken).finish(taken, origin)

    def _purpose_of(self, flow: SignInFlow) -> SignInPurpose:
        return self._purposes[flow.kind]


def new_handle(request: str) -> str:
    return f"{new_secret()}.{request}" if request else new_secret()


def request_of_handle(handle: str) -> str:
    """The request a handle carries; whoever uses it checks it as if it came from a stranger, which it may."""
    return handle.partition(".")[2]


# The plainest occasion: a person signs in to see his own account, or a page of ours that he asked for.


ACCOUNT_KIND: Final = "account"
RETURN_TO: Final = "to"  # in `ask`: the page to go on to; written by us alone


class AccountSignInPurpose:
    async def destination(self, flow: SignInFlow) -> Destination:  # noqa: ARG002 - the protocol's signature
        return Destination()

    async def next_step(self, flow: SignInFlow) -> FlowStep:  # noqa: ARG002
        return FlowStep.DONE

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> str:  # noqa: ARG002
        return flow.ask.get(RETURN_TO, "/account")


# What a person is asked before he is signed in somewhere else: on a device, in a game.


class NetworkNearness(StrEnum):
    """Whether it was asked for from the network the browser is in, as far as addresses tell."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"  # IPv4 beside IPv6 says nothing (R4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationQuestion:
    kind: str  # whose occasion it is: device, game
    application: str  # its name
    code: str = ""  # what is shown there, to compare; empty when nothing is
    choices: tuple[str, ...] = ()  # one of them is shown there, and has to be picked
    scopes: tuple[str, ...] = ()  # what it gets to know, where that needs consent
    asked_at: int
    address: str  # where it was asked for from
    nearness: NetworkNearness
    watched: str = ""  # what the page asks about while it is open: whether anybody still waits
    is_waited_for: bool = True  # whether somebody did a moment ago


class ConfirmablePurpose(Protocol):
    """An occasion whose last step is CONFIRM; `finish` is the yes."""

    async def question(self, flow: SignInFlow, origin: AuditOrigin) -> ConfirmationQuestion:
        """What to tell the person. Raises InteractionGone when nobody is waiting any more."""

    async def check_choice(self, flow: SignInFlow, picked: str, origin: AuditOrigin) -> str:
        """Look at what he picked before his yes counts: "" when right, else it is over and the browser goes there."""

    async def refuse(self, flow: SignInFlow, origin: AuditOrigin) -> str:
        """He said no; returns the address the browser goes to."""


def compare_networks(asked_from: str, origin: AuditOrigin, *, proven: bool = True) -> NetworkNearness:
    """`proven`: whether the address it was asked for from proves anything. Two proxies alike are no closeness."""
    asked, near = parse_address(asked_from), parse_address(origin.address)
    if asked is None or near is None or asked.version != near.version or not (proven and origin.proven):
        return NetworkNearness.UNKNOWN
    return NetworkNearness.SAME if source_of(asked) == source_of(near) else NetworkNearness.DIFFERENT
