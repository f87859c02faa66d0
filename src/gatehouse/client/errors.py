"""Why a request is not served. `public` may be shown to the caller; the detail is for the log."""

from typing import ClassVar


class ClientError(Exception):
    status: ClassVar[int] = 500
    public: ClassVar[str] = "The request failed."

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.public)
        self.detail = detail


class Unauthenticated(ClientError):
    """There is no valid user JWT: it is missing, expired, forged, revoked, or sent without its factor."""

    status = 401
    public = "invalid token"


class Denied(ClientError):
    """The caller is known and lacks the permission."""

    status = 403
    public = "You are not allowed to do this."


class MissingScope(Denied):
    """The access token does not have a scope that the request needs."""

    public = "The access token lacks a scope."

    def __init__(self, detail: str = "", *, scopes: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.scopes = scopes


class Unavailable(ClientError):
    """Nothing was decided: the service cannot be reached, and the cached answer is too old.

    It is also raised when the service refuses the application's own credential, which no user can fix.
    """

    status = 503
    public = "Permissions cannot be checked right now."
