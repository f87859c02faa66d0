"""What has just been done, carried to the page that comes next and shown there once.

In a cookie, not in the address: then nobody can send a person a link to a page that claims something.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.pages.vocabulary import Notice

NOTICE_COOKIE: Final = "gh_notice"
NOTICE_SECONDS: Final = 60  # seconds; it is read by the very next request
NOTICES_BY_VALUE: Final = {notice.value: notice for notice in Notice}


class NoticeCookie:
    def __init__(self, *, https: bool) -> None:
        self._https = https
        self._name = f"__Host-{NOTICE_COOKIE}" if https else NOTICE_COOKIE  # R8: plain names on loopback

    def set(self, response: Response, notice: Notice) -> Response:
        self._set_cookie(response, notice.value, NOTICE_SECONDS)
        return response

    def read(self, request: Request) -> Notice | None:
        return NOTICES_BY_VALUE.get(request.cookies.get(self._name, ""))

    def clear(self, response: Response) -> Response:
        self._set_cookie(response, "", 0)
        return response

    def _set_cookie(self, response: Response, value: str, max_age: int) -> None:
        response.set_cookie(
            self._name, value, max_age=max_age, path="/", secure=self._https, httponly=True, samesite="lax"
        )
