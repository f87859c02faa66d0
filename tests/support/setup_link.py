"""The setup link of a started node, and its form as bytes."""

from typing import Final
from urllib.parse import urlencode

from tests.support.processes import Node

LINK: Final = r"/setup\?token=(\S+)"
FORM: Final = {
    "login": "anna@studio.example",
    "nick": "Anna",
    "password": "correct horse battery",
}


def setup_token(node: Node) -> str:
    """The secret in the link that this node printed when it started."""
    return node.process.wait_for_line(LINK, node.process.stdout)[1]


def setup_request(token: str, **fields: str) -> bytes:
    body = urlencode({**FORM, "token": token, **fields}).encode()
    head = "POST /setup HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
