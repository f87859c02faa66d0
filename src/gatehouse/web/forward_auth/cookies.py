"""The cookies on a site. Over https they carry `__Host-`, so that no other host can set them (checklist FA-05)."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.sign_in_flow.model import FLOW_LIFETIME

SECRET_LENGTH: Final = 43  # characters of a secret in base64url
SESSION: Final = "gh_site"
START: Final = "gh_site_start"


class SiteCookies:
    def read_session(self, request: Request, origin: str) -> str:
        """Return the secret of the session on the site; empty without one."""
        return self._cookie(request, origin, SESSION)

    def read_start(self, request: Request, origin: str) -> str:
        """Return the secret that the sign-in began with; empty without one."""
        return self._cookie(request, origin, START)

    def set_session(self, response: Response, origin: str, secret: str) -> None:
        self._set(response, origin, SESSION, secret, max_age=None)

    def set_start(self, response: Response, origin: str, secret: str) -> None:
        self._set(response, origin, START, secret, max_age=FLOW_LIFETIME)

    def _cookie(self, request: Request, origin: str, name: str) -> str:
        """Return the cookie; one that is sent twice or has another length is ignored."""
        wanted = cookie_name(origin, name)
        pairs = (pair.partition("=") for pair in "; ".join(request.headers.getlist("cookie")).split("; "))
        values = [value for found, _, value in pairs if found == wanted]
        return values[0] if len(values) == 1 and len(values[0]) == SECRET_LENGTH else ""

    def _set(self, response: Response, origin: str, name: str, value: str, *, max_age: int | None) -> None:
        response.set_cookie(
            cookie_name(origin, name),
            value,
            max_age=max_age,
            path="/",
            secure=is_https(origin),
            httponly=True,
            samesite="lax",
        )


def is_https(origin: str) -> bool:
    return origin.startswith("https:")


def cookie_name(origin: str, name: str) -> str:
    return f"__Host-{name}" if is_https(origin) else name
