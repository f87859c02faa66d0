"""Errors of clients and of the OAuth endpoints: one class for each code of the protocol.

`code` goes to the caller and sets the status (web/http/errors.py); `public` is the error_description, fixed words in
printable ASCII that echo no input (checklist TK-30). The detail is for the log.
"""

from typing import ClassVar

from gatehouse.kernel.errors import BadInput, Conflict, GatehouseError, NotFound
from gatehouse.oauth.model import Client


class ClientNotFound(NotFound):
    public = "Client not found."


class ClientExists(Conflict):
    public = "This client ID is in use or was used before."


class ClientChanged(Conflict):
    public = "The client was changed in the meantime."


class BadDocument(GatehouseError):
    """A client ID metadata document that is not accepted; the detail says why, for administrators and the log."""

    public = "The client's metadata document is not accepted."


class BadClient(BadInput):
    """A field of a client is not acceptable; the detail says why, for its writer, and `field` which."""

    def __init__(self, detail: str = "", *, field: str = "") -> None:
        super().__init__(detail)
        self.field = field


class OAuthError(GatehouseError):
    code: ClassVar[str]


class InvalidRequest(OAuthError):
    code = "invalid_request"
    public = "A parameter is missing, repeated or malformed."


class InvalidClient(OAuthError):
    code = "invalid_client"
    public = "The client could not be authenticated."


class InvalidGrant(OAuthError):
    code = "invalid_grant"
    public = "The code or refresh token is invalid, expired, revoked or already used."


class InvalidRefreshToken(OAuthError):
    """The error of the revoke endpoint of interface §4.2."""

    code = "invalid_request"
    public = "The refresh token is invalid or already revoked."


class InvalidScope(OAuthError):
    code = "invalid_scope"
    public = "The scope is not allowed here."


class InvalidTarget(OAuthError):
    """RFC 8707 §2."""

    code = "invalid_target"
    public = "The resource is unknown, or not one that the client may ask for."


class UnsupportedGrantType(OAuthError):
    code = "unsupported_grant_type"
    public = "This grant type is not supported."


class UnauthorizedClient(OAuthError):
    code = "unauthorized_client"
    public = "The client is not allowed to do this."


class AccessDenied(OAuthError):
    code = "access_denied"
    public = "Access was denied."


class InsufficientScope(OAuthError):
    code = "insufficient_scope"
    public = "The access token does not have the required scope."


class BadLogout(BadInput):
    """A sign-out request without a valid proof; the detail is shown and quotes nothing of the request."""

    public = "This logout request is not valid."

    def __init__(self, detail: str, client_id: str = "") -> None:
        super().__init__(detail)
        self.client_id = client_id  # as received, or of the hint


class AuthorizationPending(OAuthError):
    """An error of RFC 8628 §3.5, like the three that follow."""

    code = "authorization_pending"
    public = "The code has not been confirmed yet."


class SlowDown(OAuthError):
    code = "slow_down"
    public = "Polling too fast: increase the interval by five seconds."


class DeviceCodeExpired(OAuthError):
    code = "expired_token"
    public = "The device code has expired."


class NoDeviceGrant(OAuthError):
    """RFC 6749 §5.2: 400, unlike the same code at exchangeToken."""

    code = "unauthorized_client"
    public = "The client is not allowed to use the device grant."


class NoClientCredentials(OAuthError):
    """RFC 6749 §5.2: 400, as above."""

    code = "unauthorized_client"
    public = "A public client cannot get tokens for itself."


class NoPushedRequests(OAuthError):
    """RFC 6749 §5.2: 400, as above."""

    code = "unauthorized_client"
    public = "A client of profile native cannot push authorization requests."


class MayNotExchange(OAuthError):
    """RFC 6749 §5.2: 400, as above."""

    code = "unauthorized_client"
    public = "The client is not allowed to exchange tokens."


class DeviceDenied(OAuthError):
    code = "access_denied"
    public = "The user denied the request."


# Refusals of authorize: to the client by redirect, or to the person by a page (R3, OpenID Connect Core §3.1.2.6).


class NotRedirected(BadInput):
    """The redirect address is not verified: the person gets a page and is not redirected."""

    public = "The application's sign-in request is not valid. Go back to the application and try again."

    def __init__(self, detail: str, *, client: Client | None = None, client_id: str = "", received: str = "") -> None:
        super().__init__(detail)
        self.client = client
        self.client_id = client_id if client is None else client.client_id  # as received, if it is no client's
        self.received = received  # the redirect_uri as received


class AuthorizeRefused(BadInput):
    """Reported to the client; the detail is a fixed text and becomes error_description."""

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


class TargetRefused(AuthorizeRefused):
    """RFC 8707 §2."""

    code = "invalid_target"
    public = "The resource is unknown, or not one that the client may ask for."


class NotLetIn(AuthorizeRefused):
    code = "access_denied"
    public = "This account is not allowed to use the application, or consent was denied."

    def __init__(self, *, application_ids: tuple[int, ...] = ()) -> None:
        """`application_ids`: the applications that were asked, if one of them denies the account access."""
        super().__init__()
        self.application_ids = application_ids


class LoginRequired(AuthorizeRefused):
    code = "login_required"
    public = "The user must sign in."


class InteractionRequired(AuthorizeRefused):
    code = "interaction_required"
    public = "The user must interact with the sign-in page."


class UnmetAuthenticationRequirements(AuthorizeRefused):
    code = "unmet_authentication_requirements"  # OpenID Connect Core Unmet Authentication Requirements §2
    public = "The user cannot sign in as the client requires it."


class RequestUnsupported(AuthorizeRefused):
    code = "request_not_supported"
    public = "The parameter request is not supported."


class RequestUriUnsupported(AuthorizeRefused):
    code = "request_uri_not_supported"
    public = "The parameter request_uri is not supported."


class RegistrationUnsupported(AuthorizeRefused):
    code = "registration_not_supported"
    public = "The parameter registration is not supported."
