"""Sign-in to the person's own account, or to a page of this service."""

from typing import Final

from gatehouse.audit.model import AuditOrigin
from gatehouse.sign_in_flow.model import Destination, FlowStep, SignInFlow

ACCOUNT_KIND: Final = "account"
RETURN_TO: Final = "to"  # in `ask`: where to continue; only set by this service
APPLICATION: Final = "application"  # in `ask`: its name and logo, if the way leads there, and where the forms lead
LOGO: Final = "logo"
FORM_ACTION: Final = "form_action"


class AccountSignInPurpose:
    async def destination(self, flow: SignInFlow) -> Destination:
        return Destination(
            application=flow.ask.get(APPLICATION, ""),
            logo=flow.ask.get(LOGO, ""),
            form_action=flow.ask.get(FORM_ACTION, ""),
        )

    async def next_step(self, flow: SignInFlow) -> FlowStep:  # noqa: ARG002 - the protocol's signature
        return FlowStep.DONE

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> str:  # noqa: ARG002
        return flow.ask.get(RETURN_TO, "/account")
