"""Why authorize says no: to the client by redirect, or to the person by a page (R3, OpenID Connect Core §3.1.2.6)."""

from typing import ClassVar

from gatehouse.kernel.errors import BadInput
from gatehouse.oauth.model import Client


class NotRedirected(BadInput):
    """Nobody is sent to an address that has not been verified: the person gets a page instead."""

    public = "The application's sign-in request is not valid. Go back to the application and try again."

    def __init__(self, detail: str, *, client: Client | None = None, received: str = "") -> None:
        super().__init__(detail)
        self.client = client
        self.received = received  # the redirect_uri, as it came


class AuthorizeRefused(BadInput):
    """Told to the client; the detail is fixed words of ours about its request and becomes error_description."""

    code: ClassVar[str]

    @property
    def description(self) -> str:
        return self.detail or self.public


class AskedWrongly(AuthorizeRefused):
    code = "invalid_request"
    public = "The authorization request is malformed."


class ResponseTypeUnsupported(AuthorizeRefused):
    code = "unsupported_response_type"
    public = "response_type must be code."


class ScopeRefused(AuthorizeRefused):
    code = "invalid_scope"
    public = "The scope openid is required."


class NotLetIn(AuthorizeRefused):
    code = "access_denied"
    public = "This account is not allowed to use the application, or consent was denied."


class LoginRequired(AuthorizeRefused):
    code = "login_required"
    public = "The user must sign in."


class InteractionRequired(AuthorizeRefused):
    code = "interaction_required"
    public = "The user must interact with the sign-in page."


class RequestUnsupported(AuthorizeRefused):
    code = "request_not_supported"
    public = "The parameter request is not supported."


class RequestUriUnsupported(AuthorizeRefused):
    code = "request_uri_not_supported"
    public = "The parameter request_uri is not supported."


class RegistrationUnsupported(AuthorizeRefused):
    code = "registration_not_supported"
    public = "The parameter registration is not supported."
