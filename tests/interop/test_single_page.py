"""oidc-client-ts in a real Chromium: a public client whose page calls the service from another origin."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.interop.conftest import GatehouseNode
from tests.interop.person import LOGIN, PASSWORD
from tests.interop.toolchains import SINGLE_PAGE_SOURCE, find_single_page_client
from tests.support.capabilities import Capability, require_program
from tests.support.chromium import launch_browser_sync
from tests.support.oauth import claims_of
from tests.support.processes import LOOPBACK

LIBRARY: Final = Capability(name="oidc-client-ts", find=cache(find_single_page_client), optional=True)
CLIENT_ID: Final = "oidc-client-ts"


@contextmanager
def serve_page(page: str, scripts: Mapping[str, Path]) -> Iterator[str]:
    """Serve the scripts at their paths, and the page at every other; yield the origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script = scripts.get(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if script else "text/html")
            self.end_headers()
            self.wfile.write(script.read_bytes() if script else page.encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{LOOPBACK}:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def sign_in(page: Page) -> None:
    page.get_by_label("Email").fill(LOGIN)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def read_result(page: Page) -> dict[str, Any]:
    page.wait_for_function("document.getElementById('result')?.textContent")
    result: dict[str, Any] = json.loads(page.inner_text("#result"))
    return result


def refresh(page: Page) -> dict[str, Any]:
    page.click("#refresh")
    return read_result(page)


def test_single_page_application_signs_in_refreshes_and_logs_out(gatehouse: GatehouseNode) -> None:
    library = require_program(LIBRARY)
    page_text = (SINGLE_PAGE_SOURCE / "index.html").read_text()
    with serve_page(page_text, {"/oidc-client-ts.js": library}) as home, launch_browser_sync() as browser:
        addresses = ("--redirect-uri", f"{home}/callback", "--post-logout-uri", f"{home}/logged-out")
        gatehouse.register(CLIENT_ID, "--public", "--origin", home, *addresses)
        page = browser.new_page()
        page.goto(f"{home}/?{urlencode({'issuer': gatehouse.issuer, 'client_id': CLIENT_ID})}")
        page.click("#login")
        sign_in(page)
        page.locator('button[name="decision"][value="allow"]').click()
        page.wait_for_url(f"{home}/callback*")
        first = read_result(page)
        assert (first["sub"], first["email"]) == (gatehouse.user_id, LOGIN), first
        assert claims_of(first["id_token"])["aud"] == CLIENT_ID

        refreshed = refresh(page)
        assert refreshed["sub"] == gatehouse.user_id, refreshed
        assert refreshed["id_token"] != first["id_token"]

        page.click("#logout")
        page.wait_for_url(f"{home}/logged-out*")
        assert read_result(page) == {"signed_in": False}
        page.click("#login")
        sign_in(page)
        page.locator('button[name="decision"][value="allow"]').click()  # a program on the device asks each time (R3)
        page.wait_for_url(f"{home}/callback*")
        assert read_result(page)["sub"] == gatehouse.user_id
