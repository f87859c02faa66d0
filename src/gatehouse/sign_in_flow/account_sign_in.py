"""Sign-in to the person's own account, or to a page of this service."""

from typing import Final

from gatehouse.audit.model import AuditOrigin
from gatehouse.sign_in_flow.model import Destination, FlowStep, SignInFlow

ACCOUNT_KIND: Final = "account"
RETURN_TO: Final = "to"  # in `ask`: the page to continue with; only set by this service


class AccountSignInPurpose:
    async def destination(self, flow: SignInFlow) -> Destination:  # noqa: ARG002 - the protocol's signature
        return Destination()

    async def next_step(self, flow: SignInFlow) -> FlowStep:  # noqa: ARG002
        return FlowStep.DONE

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> str:  # noqa: ARG002
        return flow.ask.get(RETURN_TO, "/account")
