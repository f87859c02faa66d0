"""What a message can undo travels in a cookie, if it fits into one."""

import secrets

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.console.frame import FlashMessages, Undo

FLASH = FlashMessages(https=False)


def undo_after(undo: Undo) -> Undo | None:
    """Set the message in a response, and read the next request of that browser."""
    response = FLASH.set(Response(), "saved", undo=undo)
    cookies = [value.partition(b";")[0] for name, value in response.raw_headers if name == b"set-cookie"]
    return FLASH.read_undo(Request({"type": "http", "headers": [(b"cookie", b"; ".join(cookies))]}))


def test_undo_arrives_with_its_fields_in_their_order() -> None:
    undo = Undo(path="/console/roles/1/beta", fields=[("kind", "all"), ("kind", "domain"), ("name", "Jürgen; ß")])
    found = undo_after(undo)
    assert found is not None
    assert (found.path, list(found.fields)) == (undo.path, undo.fields)


def test_undo_that_is_too_long_for_a_cookie_is_not_offered() -> None:
    assert undo_after(Undo(path="/console/roles", fields=[("text", secrets.token_hex(1_000))])) is not None
    assert undo_after(Undo(path="/console/roles", fields=[("text", secrets.token_hex(3_000))])) is None


def test_undo_leads_to_pages_of_the_console_only() -> None:
    for path in ("/account/delete", "https://evil.example/console", "//evil.example/console", ""):
        assert undo_after(Undo(path=path)) is None
