"""What has just been done in the console, carried to the page that comes next and shown there once.

In a cookie, not in the address: then nobody can send a person a link to a page that claims something.
"""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

COOKIE_NAME: Final = "gh_note"
MESSAGE_SECONDS: Final = 60  # seconds; it is read by the very next page of the console
NOT_SAVED_MESSAGE: Final = "not_saved"  # the note of a form that a fresh proof came between
MESSAGE_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


class FlashMessages:
    def __init__(self, *, https: bool) -> None:
        self._https = https
        self._name = f"__Host-{COOKIE_NAME}" if https else COOKIE_NAME  # R8: plain names on loopback

    def set(self, response: Response, message: str, *, lifetime: int = MESSAGE_SECONDS) -> Response:
        self._set_cookie(response, message, lifetime)
        return response

    def read(self, request: Request) -> str:
        note = request.cookies.get(self._name, "")
        return note if MESSAGE_NAME.fullmatch(note) else ""

    def clear(self, response: Response) -> Response:
        self._set_cookie(response, "", 0)
        return response

    def _set_cookie(self, response: Response, value: str, max_age: int) -> None:
        response.set_cookie(
            self._name, value, max_age=max_age, path="/", secure=self._https, httponly=True, samesite="lax"
        )
