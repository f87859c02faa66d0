from typing import Any

import msgspec
import pytest

from gatehouse.kernel.errors import BadInput
from gatehouse.web.http.errors import TooLarge, UnsupportedMediaType
from gatehouse.web.http.parse import (
    JSON_OR_FORM,
    query_pairs,
    raw_body,
    read_body,
    read_form,
    read_json,
    read_json_or_form,
    read_query,
)
from tests.support.sample_asgi_app import Role, RoleSave, SessionAsk, TokenAsk, a_request

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=frontier"


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    after: int = 0
    search: str = ""
    either: int | str = 0
    maybe: int | None = None


def parts(*fields: tuple[str, str], boundary: str = "frontier") -> bytes:
    """A multipart body of these (headers, value) pairs."""
    inner = "".join(f"--{boundary}\r\n{headers}\r\n\r\n{value}\r\n" for headers, value in fields)
    return f"{inner}--{boundary}--\r\n".encode()


def content_disposition(name: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"'


async def test_json_becomes_the_frozen_type() -> None:
    body = b'{"action":"save","application_id":50001,"data":{"name":"editor","user_limit":3}}'
    parsed = await read_json(a_request(body), RoleSave)
    assert parsed == RoleSave(action="save", application_id=50001, data=Role(name="editor", user_limit=3))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"action":"save"}', "object missing required field application_id"),
        (b'{"action":"get","application_id":1,"nonsense":2}', "object contains unknown field nonsense"),
        (b'{"action":"get","application_id":1,"data":{"name":"a","x":1}}', "data: object contains unknown field x"),
        (b'{"action":"drop","application_id":1}', "action: invalid enum value 'drop'"),
        (b'{"action":"get","application_id":true}', "application_id: expected int | str, got bool"),
        (b'{"action":"get","application_id":1.0}', "application_id: expected int | str, got float"),
        (b'{"action":"get","application_id":1,"data":{"name":5}}', "data.name: expected str, got int"),
        (
            b'{"action":"get","application_id":1,"data":{"name":"a","tags":["b",1]}}',
            "data.tags[1]: expected str, got int",
        ),
        (b"[]", "expected object, got array"),
    ],
)
async def test_type_error_names_the_field(body: bytes, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        await read_json(a_request(body), RoleSave)
    assert caught.value.detail == words


async def test_a_long_unknown_name_is_not_repeated_whole() -> None:
    body = b'{"action":"get","application_id":1,"%s":2}' % (b"n" * 60_000)
    with pytest.raises(BadInput) as caught:
        await read_json(a_request(body), RoleSave)
    assert len(caught.value.detail) <= 256


async def test_the_raw_body_can_be_read_before_and_after_parsing() -> None:
    body = b' {"action" : "get", "application_id" : "7"} '
    request = a_request(body)
    assert await raw_body(request) == body
    await read_json(request, RoleSave)
    assert await raw_body(request) == body


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json;",
        "application/json ; ; charset=utf-8 ; ",
    ],
)
async def test_json_is_read_under_its_own_content_type(content_type: str) -> None:
    parsed = await read_json(a_request(b'{"name":"a"}', content_type=content_type), Role)
    assert parsed.name == "a"


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/json; charset=utf-8; charset=utf-16",
        "application/json; charset=utf-16; charset=utf-8",
        "application/json, text/plain",
        "application/json; charset",
        "application/jsonx",
        "application/ld+json",
        FORM,
        MULTIPART,
        "application/json; a=" + "b" * 300,
        "multipart/form-data; boundary=" + "\\" * 10_000,
    ],
)
async def test_json_under_another_content_type_is_not_read(content_type: str | None) -> None:
    with pytest.raises(UnsupportedMediaType):
        await read_json(a_request(b'{"name":"a"}', content_type=content_type), Role)


async def test_two_content_types_are_one_too_many() -> None:
    request = a_request(b'{"name":"a"}')
    request.scope["headers"].append((b"content-type", b"application/json"))
    with pytest.raises(UnsupportedMediaType):
        await read_json(request, Role)


async def test_a_form_becomes_the_type_with_its_integers_and_lists() -> None:
    body = b"factor=a+b%26c&app_id=50001&fixed_ips%5B%5D=10.0.0.0/8&fixed_ips[]=192.168.0.1"
    parsed = await read_form(a_request(body, content_type=FORM), SessionAsk)
    assert parsed == SessionAsk(factor="a b&c", app_id=50001, fixed_ips=["10.0.0.0/8", "192.168.0.1"])


async def test_a_multipart_form_becomes_the_type_as_well() -> None:
    plain = "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=factor"
    body = parts(
        (plain, "grün"), (content_disposition("app_id"), "7"), (content_disposition("fixed_ips[]"), "10.0.0.1")
    )
    content_type = 'multipart/form-data; boundary="frontier"'
    parsed = await read_form(a_request(body, content_type=content_type), SessionAsk)
    assert parsed == SessionAsk(factor="grün", app_id=7, fixed_ips=["10.0.0.1"])


@pytest.mark.parametrize("encoding", ["7bit", "8bit", "Binary"])
async def test_a_part_may_say_that_it_is_not_encoded_and_lines_before_the_first_are_skipped(encoding: str) -> None:
    body = parts((f"{content_disposition('factor')}\r\nContent-Transfer-Encoding: {encoding}", "a"))
    parsed = await read_form(a_request(b"for no_one\r\n" + body, content_type=MULTIPART), SessionAsk)
    assert parsed == SessionAsk(factor="a")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", None),
        (b"", "application/json"),
        (b"", MULTIPART),
        (b"--frontier--\r\n", MULTIPART),
        (b"--frontier--", MULTIPART),
        (b"\r\n--frontier--\r\n", MULTIPART),
        (b"--frontier\r\n\r\n--frontier--\r\n", MULTIPART),
        (b"--frontier\r\n\r\n--frontier--", MULTIPART),
        (b"for no_one\r\n--frontier--\r\n", MULTIPART),
        (b"", FORM),
        (b"{}", "application/json"),
    ],
)
async def test_a_game_client_may_send_nothing_in_many_ways(body: bytes, content_type: str | None) -> None:
    assert await read_json_or_form(a_request(body, content_type=content_type), SessionAsk) == SessionAsk()


async def test_a_body_without_content_type_is_not_guessed_at() -> None:
    with pytest.raises(UnsupportedMediaType):
        await read_json_or_form(a_request(b"factor=a", content_type=None), SessionAsk)


async def test_the_token_endpoint_reads_json_and_urlencoded_but_no_multipart() -> None:
    for body, content_type in ((b'{"grant_type":"x"}', "application/json"), (b"grant_type=x", FORM)):
        parsed = await read_body(a_request(body, content_type=content_type), TokenAsk, kinds=JSON_OR_FORM)
        assert parsed.grant_type == "x"
    with pytest.raises(UnsupportedMediaType):
        await read_body(
            a_request(parts((content_disposition("grant_type"), "x")), content_type=MULTIPART),
            TokenAsk,
            kinds=JSON_OR_FORM,
        )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"factor=a&factor=b", "the field factor is given twice"),
        (b"factor=%FF", "not UTF-8"),
        (b"factor=\xff", "not UTF-8"),
        (b"factor=%ED%A0%80", "not UTF-8"),
        (b"factor=a%00b", "NUL"),
        (b"factor=" + b"a" * 65_537, "longer than"),
        (b"app_id=1x", "app_id: expected an integer"),
        (b"app_id=01", "app_id: expected an integer"),
        (b"app_id=%EF%BC%91", "app_id: expected an integer"),
        (b"app_id=1_0", "app_id: expected an integer"),
        (b"app_id=+1", "app_id: expected an integer"),
        (b"app_id=1e0", "app_id: expected an integer"),
        (b"app_id=", "app_id: expected an integer"),
        (b"app_id=9223372036854775808", "app_id: expected an integer"),
        (b"app_id=1%0A", "app_id: expected an integer"),
        (b"a[b][c]=1", "unknown field a"),
    ],
)
async def test_a_form_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        await read_form(a_request(body, content_type=FORM), SessionAsk)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (parts((content_disposition("factor"), "a"), (content_disposition("factor"), "b")), "given twice"),
        (parts(('Content-Disposition: form-data; name="f"; filename="x.txt"', "a")), "files are not accepted"),
        (parts(("Content-Disposition: form-data", "a")), "no name"),
        (parts(('Content-Disposition: attachment; name="factor"', "a")), "no name"),
        (parts(("Content-Type: text/plain", "a")), "no name"),
        (
            parts((f"{content_disposition('factor')}\r\nContent-Transfer-Encoding: base64", "YQ==")),
            "transfer encoding",
        ),
        (parts((f"{content_disposition('factor')}\r\n{content_disposition('other')}", "a")), "repeats"),
        (parts((content_disposition("factor"), "\0")), "NUL"),
        (parts((content_disposition("factor"), "a")).replace(b"a\r", b"\xff\r"), "not UTF-8"),
        (parts((content_disposition("factor"), "a"))[:-6], "no closing delimiter"),
        (b"factor=a", "malformed"),
        (b"factor=a--frontier--\r\n", "malformed"),
        (b"--frontier\r\n\r\n--frontier\r\n\r\n--frontier--\r\n", "no name"),
        (parts((content_disposition("x" * 3_000), "a")), "malformed"),
        (parts(("\r\n".join(f"X-{n}: 1" for n in range(100)), "a")), "malformed"),
    ],
)
async def test_a_multipart_form_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        await read_form(a_request(body, content_type=MULTIPART), SessionAsk)


async def test_a_form_may_have_a_thousand_fields_and_no_more() -> None:
    thousand = b"&".join(b"fixed_ips[]=a" for _ in range(1_000))
    parsed = await read_form(a_request(thousand, content_type=FORM), SessionAsk)
    assert len(parsed.fixed_ips) == 1_000
    with pytest.raises(TooLarge):
        await read_form(a_request(thousand + b"&x=y", content_type=FORM), SessionAsk)
    many = parts(*[(content_disposition("fixed_ips[]"), "a")] * 1_001)
    with pytest.raises(TooLarge):
        await read_form(a_request(many, content_type=MULTIPART), SessionAsk)


def query(text: str) -> Any:
    return read_query(a_request(target=f"/?{text}"), Page)


def test_a_query_becomes_the_type() -> None:
    assert query("after=3&search=a%20b&either=7&maybe=9") == Page(after=3, search="a b", either="7", maybe=9)
    assert query("") == Page()


@pytest.mark.parametrize("text", ["after=1&after=2", "after=x", "unknown=1", "search=%00", "search=%ff"])
def test_a_query_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        query(text)


def test_the_pairs_of_a_query_keep_their_order_and_repetitions() -> None:
    pairs = query_pairs(a_request(target="/?state=a&client_id=x&state=&flag"))
    assert pairs == (("state", "a"), ("client_id", "x"), ("state", ""), ("flag", ""))
