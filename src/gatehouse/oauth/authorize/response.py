"""The response of authorize: its parameters, in the query of a redirect or in a form that the browser posts."""

from collections.abc import Mapping

from msgspec import Struct

from gatehouse.oauth.authorize.request import AuthorizationRequest, AuthorizeParameters, response_mode_of
from gatehouse.oauth.model import Client
from gatehouse.oauth.redirects import csp_source, display_host, with_query
from gatehouse.oauth.vocabulary import ResponseMode
from gatehouse.sign_in_flow.model import Continuation, FormPost


class ResponseTarget(Struct, frozen=True, kw_only=True):
    """Where and how a client gets the response, known before the rest of its request is read."""

    redirect_uri: str  # registered for the client
    mode: ResponseMode
    state: str
    ui_locales: str = ""


def response_target(request: AuthorizationRequest) -> ResponseTarget:
    return ResponseTarget(
        redirect_uri=request.redirect_uri,
        mode=request.response_mode,
        state=request.state,
        ui_locales=request.ui_locales,
    )


def error_target(asked: AuthorizeParameters, client: Client) -> ResponseTarget:
    """Return the target of a request that may be wrong in everything but its redirect_uri."""
    return ResponseTarget(redirect_uri=asked["redirect_uri"], mode=response_mode_of(asked, client), state=asked.state)


def respond_to(target: ResponseTarget, parameters: Mapping[str, str], *, issuer: str) -> Continuation:
    """Return the response with the unchanged state and the issuer, against mix-up attacks (RFC 9207)."""
    state = {"state": target.state} if target.state else {}
    fields = {**parameters, **state, "iss": issuer}
    if target.mode is ResponseMode.QUERY:
        return with_query(target.redirect_uri, fields)
    return FormPost(
        action=target.redirect_uri,
        fields=fields,
        form_action=csp_source(target.redirect_uri),
        returns_to=display_host(target.redirect_uri),
        ui_locales=target.ui_locales,
    )
