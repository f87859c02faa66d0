from http import HTTPStatus

import pytest

from gatehouse.web.server.limits import ProtocolLimits
from gatehouse.web.server.request_head import (
    RequestRefused,
    check_headers,
    check_request_line,
)
from gatehouse.web.server.response_head import bare_response

Head = tuple[bytes, bytes, str, list[tuple[bytes, bytes]]]
HOST = (b"host", b"gatehouse.example")


def a_head(*headers: tuple[bytes, bytes], method: bytes = b"GET", target: bytes = b"/", version: str = "1.1") -> Head:
    return method, target, version, list(headers)


def check_head(head: Head) -> None:
    method, target, version, headers = head
    check_request_line(method, target, version)
    check_headers(headers, version, ProtocolLimits())


@pytest.mark.parametrize(
    "head",
    [
        a_head(HOST),
        a_head(version="1.0"),
        a_head(HOST, target=b"//odd//path?query"),
        a_head(HOST, (b"transfer-encoding", b"Chunked"), method=b"POST"),
        a_head(HOST, (b"content-length", b"9" * 19), method=b"POST"),
        a_head((b"host", b""), method=b"TRACE"),  # the routes respond to it
    ],
)
def test_an_honest_head_passes(head: Head) -> None:
    check_head(head)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (a_head(HOST, method=b"CONNECT", target=b"a:443"), 405),
        (a_head(HOST, version="2.0"), 505),
        (a_head(version="0.9"), 505),
        (a_head(HOST, target=b"http://a/"), 400),
        (a_head(HOST, target=b"*"), 400),
        (a_head(HOST, target=b"/a#b"), 400),
        (a_head(), 400),
        (a_head(HOST, HOST), 400),
        (a_head(HOST, HOST, version="1.0"), 400),
        (a_head(HOST, (b"transfer-encoding", b"gzip, chunked")), 400),
        (
            a_head(
                HOST,
                (b"transfer-encoding", b"chunked "),
            ),
            400,
        ),
        (a_head(HOST, (b"transfer-encoding", b"chunked"), version="1.0"), 400),
        (a_head(HOST, (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")), 400),
        (a_head(HOST, (b"transfer-encoding", b"chunked"), (b"content-length", b"5")), 400),
        (a_head(HOST, (b"content-length", b"5"), (b"content-length", b"5")), 400),
        (a_head(HOST, (b"content-length", b"9" * 20)), 400),
        (a_head(HOST, *((b"x-%d" % number, b"") for number in range(100))), 431),
        (a_head(HOST, (b"x-long", b"x" * 16_384)), 431),
    ],
)
def test_ht_04_and_19_a_doubtful_head_is_refused(head: Head, status: int) -> None:
    with pytest.raises(RequestRefused) as error:
        check_head(head)
    assert error.value.status == status


def test_a_bare_answer_says_its_status_and_closes() -> None:
    answer = bare_response(HTTPStatus(414), now=0)
    assert answer.startswith(b"HTTP/1.1 414 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert b"\r\nx-content-type-options: nosniff\r\n" in answer
