"""What the head of a request must satisfy before anything of ours sees it (checklist HT-04, HT-19).

The parser refuses bare line feeds, folded headers, spaces before a colon, odd or doubled Content-Length
and Content-Length beside Transfer-Encoding by itself. Here stands what it lets pass.
"""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from gatehouse.web.limits import ProtocolLimits
from gatehouse.web.refusal import RequestRefused

SEPARATORS: Final = len(b": \r\n")
LONGEST_LENGTH: Final = 19  # digits of a Content-Length; more would be more bytes than there are


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    method: bytes
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]  # names in lower case

    def values(self, wanted: bytes) -> list[bytes]:
        return [value for name, value in self.headers if name == wanted]


def fits(headers: list[tuple[bytes, bytes]], limits: ProtocolLimits) -> bool:
    """HT-05."""
    size = sum([len(name) + len(value) + SEPARATORS for name, value in headers])
    return len(headers) <= limits.headers and size <= limits.header_bytes


def method_is_not_connect(head: RequestHead) -> None:
    """We are no tunnel; and the parser would take whatever follows for tunnelled bytes (HT-11)."""
    if head.method == b"CONNECT":
        raise RequestRefused(HTTPStatus.METHOD_NOT_ALLOWED)


def version_is_spoken_here(head: RequestHead) -> None:
    """The parser also takes 0.9 and 2.0, whose framing is another one."""
    if head.version not in ("1.0", "1.1"):
        raise RequestRefused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)


def target_is_a_path(head: RequestHead) -> None:
    """An absolute URI would name a second host beside the Host header (HT-19); a fragment never travels."""
    if not head.target.startswith(b"/") or b"#" in head.target:
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def host_is_given_once(head: RequestHead) -> None:
    """RFC 9112 §3.2 asks for this refusal. The value itself is never looked at (R0)."""
    hosts = len(head.values(b"host"))
    if hosts > 1 or (hosts == 0 and head.version == "1.1"):
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def transfer_encoding_is_plain_chunked(head: RequestHead) -> None:
    """Every other spelling is read differently by some proxy (RFC 9112 §6.1, HT-04).

    The parser would refuse a part of them too, but only after the application has been started.
    """
    encodings = head.values(b"transfer-encoding")
    if encodings and ([value.lower() for value in encodings] != [b"chunked"] or head.version != "1.1"):
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def length_is_told_once(head: RequestHead) -> None:
    """Dear enough not to depend on one parser; and it lets pass any number of leading zeros (HT-04)."""
    lengths = head.values(b"content-length")
    if any(len(value) > LONGEST_LENGTH for value in lengths) or (
        len(lengths) + len(head.values(b"transfer-encoding")) > 1
    ):
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


HEAD_CHECKS: Final[tuple[Callable[[RequestHead], None], ...]] = (
    method_is_not_connect,
    version_is_spoken_here,
    target_is_a_path,
    host_is_given_once,
    transfer_encoding_is_plain_chunked,
    length_is_told_once,
)


def check(head: RequestHead) -> None:
    for rule in HEAD_CHECKS:
        rule(head)
