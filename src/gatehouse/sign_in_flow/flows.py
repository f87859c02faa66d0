"""The dispatcher of sign-in flows: the current step and the next one."""

from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec.structs import replace

from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import UNKNOWN_ACCOUNT, FailureReason
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.terms.acceptance import Terms
from gatehouse.accounts.terms.model import PendingTerms
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.sign_in_flow.model import (
    BROWSER,
    FLOW_LIFETIME,
    MAX_FAILURES,
    Continuation,
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
    """The purpose of a sign-in, implemented by the package that starts it."""

    async def destination(self, flow: SignInFlow) -> Destination:
        """Return what the pages show about the purpose, before and after authentication."""

    async def next_step(self, flow: SignInFlow) -> FlowStep:
        """Return what is left to ask of an authenticated person: CONSENT, CONFIRM or DONE.

        LOGIN when the authentication is too old or of another kind than required.
        """

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> Continuation:
        """Complete the purpose and return where the browser goes."""


class RefusablePurpose(SignInPurpose, Protocol):
    """A purpose of an application, which is told when the person says no."""

    async def refuse(self, flow: SignInFlow, origin: AuditOrigin) -> Continuation:
        """Record the no and return where the browser goes; empty for a page of ours."""


class SignInFlows:
    def __init__(
        self,
        *,
        store: SignInFlowStore,
        purposes: Mapping[str, SignInPurpose],
        terms: Terms,
        with_terms: Mapping[str, RefusablePurpose],
        failures: FailedSignIns,
        clock: Clock,
    ) -> None:
        """`with_terms` are the purposes for which people accept documents first."""
        self._terms = terms
        self._failures = failures
        self._with_terms = with_terms
        self._store = store
        self._purposes = purposes
        self._clock = clock

    async def start(
        self,
        kind: str,
        ask: Mapping[str, str],
        *,
        browser: str,
        user: User | None = None,
        method: SignInMethod = SignInMethod.LOGIN,
        proved: str = "",
        request: str = "",
    ) -> str:
        """Start a flow bound to that browser and return the handle that its pages carry.

        With `user` it starts at the second factor, after a first one by that method. The handle may carry the
        original request, so that an expired flow can be started again.
        """
        handle = new_handle(request)
        new = self._new_flow(handle, kind, ask, browser)
        await self._store.create_flow(new if user is None else with_first_factor(new, user, method, proved))
        return handle

    async def start_with_proof(
        self,
        kind: str,
        ask: Mapping[str, str],
        proof: SignInProof,
        *,
        browser: str,
        address: str,
        request: str = "",
    ) -> tuple[str, SignInFlow]:
        """Start a flow for a signed-in person, at the step the purpose requires."""
        handle = new_handle(request)
        known = with_proof(self._new_flow(handle, kind, ask, browser), proof)
        flow = replace(known, step=await self._next_step(known, address))
        await self._store.create_flow(flow)
        return handle, flow

    def _new_flow(self, handle: str, kind: str, ask: Mapping[str, str], browser: str) -> SignInFlow:
        now = self._clock.now()
        bound = {**ask, BROWSER: sha256(browser).hex()}
        return SignInFlow(digest=sha256(handle), kind=kind, ask=bound, created_at=now, ends_at=now + FLOW_LIFETIME)

    async def find(self, handle: str, *, browser: str) -> SignInFlow:
        """Return the flow of this handle and browser; a handle alone is not enough. Raises SignInFlowGone."""
        flow = await self._store.find_flow(sha256(handle), self._clock.now())
        if flow is None or not constant_time_equal(flow.ask[BROWSER], sha256(browser).hex()):
            raise SignInFlowGone
        return flow

    async def accept_first_factor(
        self, flow: SignInFlow, user: User, method: SignInMethod, proved: str = ""
    ) -> SignInFlow:
        """Record the first factor; the second one is next."""
        return await self._store.update_flow(with_first_factor(flow, user, method, proved))

    async def destination(self, flow: SignInFlow) -> Destination:
        return await self._purpose_of(flow).destination(flow)

    async def accept_proof(self, flow: SignInFlow, proof: SignInProof, *, address: str) -> SignInFlow:
        """Record the completed authentication; open terms or the purpose decide the next step."""
        known = with_proof(flow, proof)
        return await self._store.update_flow(replace(known, step=await self._next_step(known, address)))

    async def pass_terms(self, flow: SignInFlow, *, address: str) -> SignInFlow:
        """Continue a flow whose terms were accepted."""
        return await self._store.update_flow(replace(flow, step=await self._next_step(flow, address)))

    async def find_terms(self, flow: SignInFlow, address: str) -> PendingTerms | None:
        """Return what the authenticated person has to accept for the purpose of the flow."""
        application_ids = (await self.destination(flow)).deciding_applications
        return await self.find_terms_for(flow.user_id or "", application_ids, address)

    async def decline_terms(self, flow: SignInFlow, origin: AuditOrigin) -> Continuation:
        """End the flow, and its purpose; return where the browser goes."""
        await self.discard(flow)
        self._failures.count(flow.user_id or UNKNOWN_ACCOUNT, FailureReason.TERMS, origin.address)
        return await self._with_terms[flow.kind].refuse(flow, origin)

    async def find_terms_for(
        self, user_id: str, application_ids: Collection[int], address: str
    ) -> PendingTerms | None:
        return await self._terms.find_pending(user_id, application_ids, country=self._terms.country_of(address))

    async def _next_step(self, flow: SignInFlow, address: str) -> FlowStep:
        step = await self._purpose_of(flow).next_step(flow)
        if step is FlowStep.LOGIN or flow.kind not in self._with_terms:
            return step
        return FlowStep.TERMS if await self.find_terms(flow, address) else step

    async def approve(self, flow: SignInFlow) -> SignInFlow:
        """Record that the purpose's question was answered with yes."""
        if flow.step not in (FlowStep.CONSENT, FlowStep.CONFIRM):
            raise SignInFlowGone
        return await self._store.update_flow(replace(flow, step=FlowStep.DONE))

    async def count_failure(self, flow: SignInFlow, *, address: str) -> SignInFlow:
        """Count a wrong code; after too many the flow ends and the person starts again."""
        self._failures.count(flow.user_id or UNKNOWN_ACCOUNT, FailureReason.SECOND_FACTOR, address)
        if flow.failures + 1 >= MAX_FAILURES:
            await self._store.take_flow(flow.digest, self._clock.now())
            raise SignInFlowGone
        return await self._store.update_flow(replace(flow, failures=flow.failures + 1))

    async def discard(self, flow: SignInFlow, record: AuditRecord | None = None) -> None:
        """Remove a flow that its caller completes: the login operation responds without a redirect."""
        if await self._store.take_flow(flow.digest, self._clock.now(), record) is None:
            raise SignInFlowGone

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> Continuation:
        """Take the flow and complete its purpose, once; return where the browser goes."""
        taken = await self._store.take_flow(flow.digest, self._clock.now())
        if taken is None or taken.step is not FlowStep.DONE:
            raise SignInFlowGone
        return await self._purpose_of(taken).finish(taken, origin)

    def _purpose_of(self, flow: SignInFlow) -> SignInPurpose:
        return self._purposes[flow.kind]


def new_handle(request: str) -> str:
    return f"{new_secret()}.{request}" if request else new_secret()


def request_of_handle(handle: str) -> str:
    """Return the request a handle carries; it is untrusted input."""
    return handle.partition(".")[2]
