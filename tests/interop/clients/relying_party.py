"""Shared code of the Python clients: a web server for one person, configured as tests/interop/programs.py says."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

ISSUER = os.environ["ISSUER"]  # noqa: TID251 - a program of its own
CLIENT_ID = os.environ["CLIENT_ID"]  # noqa: TID251
CLIENT_SECRET = os.environ["CLIENT_SECRET"]  # noqa: TID251
PORT = int(os.environ["PORT"])  # noqa: TID251
HOME = f"http://127.0.0.1:{PORT}"
CALLBACK = f"{HOME}/callback"
SCOPE = "openid email profile offline_access"

Handler = Callable[[str], Any]


class Redirect(str):
    """A handler's redirect of the browser."""

    __slots__ = ()


class SilentRequestHandler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def serve(app: Any) -> None:
    with make_server("127.0.0.1", PORT, app, handler_class=SilentRequestHandler) as server:
        print("ready", flush=True)  # noqa: T201 - the test waits for it
        server.serve_forever()


def serve_handlers(handlers: Mapping[str, Handler]) -> None:
    """Serve handlers by path, which get the whole URL.

    Their result becomes the JSON response, an error becomes status 500.
    """

    def app(environ: Mapping[str, str], start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        try:
            answer = handlers[path](f"{HOME}{path}?{environ['QUERY_STRING']}")
        except Exception as error:  # noqa: BLE001 - the test reads the library's error
            start_response("500 Refused", [("Content-Type", "application/json")])
            return [json.dumps({"failed": f"{type(error).__name__} {error} {vars(error)}"}).encode()]
        if isinstance(answer, Redirect):
            start_response("302 Found", [("Location", str(answer))])
            return []
        start_response(f"{HTTPStatus.OK} OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    serve(app)
