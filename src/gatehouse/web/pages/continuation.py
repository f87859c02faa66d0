"""Where the browser goes when a sign-in is over: a redirect, or a form that it posts to the client."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.sign_in_flow.model import Continuation
from gatehouse.web.http.context import content_security_policy
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import FormPostContext
from gatehouse.web.pages.rendering import PageRenderer


def continue_browser(pages: PageRenderer, request: Request, target: Continuation) -> Response:
    """Redirect, or show the page that posts the form by itself, which may post nowhere else."""
    if isinstance(target, str):
        return see_other(target)
    policy = content_security_policy(form_action=[target.form_action], own_forms=False)
    return pages.render(
        request,
        FormPostContext(form=target),
        ui_locales=target.ui_locales,
        headers={"Content-Security-Policy": policy},
    )
