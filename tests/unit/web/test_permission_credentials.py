"""The credentials of a request are read from headers, then from the body, and from nothing else."""

import pytest
from starlette.requests import Request

from gatehouse.kernel.addresses import parse_address
from gatehouse.permissions.authentication.credentials import RequestCredentials
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.http.client_address import CALLER_ADDRESS_KEY, CallerAddress
from gatehouse.web.http.parse import raw_body

CLIENT = parse_address("198.51.100.7")
BODY = b'{"action":"get"}'


async def read(
    *headers: tuple[str, str], fields: CredentialFields | None = None, query: bytes = b"", proven: bool = True
) -> RequestCredentials:
    assert CLIENT is not None

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": BODY, "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/permissions/meta/data",
        "raw_path": b"/api/permissions/meta/data",
        "query_string": query,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "state": {CALLER_ADDRESS_KEY: CallerAddress(address=CLIENT, source="198.51.100.7", proven=proven)},
    }
    request = Request(scope, receive)
    await raw_body(request)
    return credentials_of(request, fields or CredentialFields())


async def test_headers_carry_everything() -> None:
    credentials = await read(
        ("Authorization", "Bearer a.b.c"), ("Factor", "Gerät"), ("Service-Jwt", "d.e.f"), ("Request-Sign", "sig")
    )
    assert (credentials.bearer, credentials.factor, credentials.service_jwt, credentials.request_sign) == (
        "a.b.c",
        "Gerät",
        "d.e.f",
        "sig",
    )
    assert (credentials.user_jwt, credentials.access_key, credentials.signed) == ("a.b.c", "", None)
    assert (credentials.address, credentials.source, credentials.body) == (CLIENT, "198.51.100.7", BODY)


async def test_a_request_that_shows_nothing_has_nothing() -> None:
    credentials = await read()
    assert (credentials.user_jwt, credentials.access_key, credentials.factor, credentials.service_jwt) == (
        "",
        "",
        "",
        "",
    )


async def test_an_address_that_proves_nothing_is_not_told() -> None:
    assert (await read(proven=False)).address is None


async def test_the_deprecated_fields_of_the_body_still_work() -> None:
    credentials = await read(fields=CredentialFields(jwt="a.b.c", factor="device", service_jwt="d.e.f"))
    assert (credentials.user_jwt, credentials.factor, credentials.service_jwt) == ("a.b.c", "device", "d.e.f")


async def test_pa_03_headers_win_over_the_body() -> None:
    body = CredentialFields(jwt="m.a.l", factor="lory", service_jwt="l.o.ry")
    credentials = await read(
        ("Authorization", "Bearer a.b.c"), ("Factor", "f"), ("Service-Jwt", "d.e.f"), fields=body
    )
    assert (credentials.user_jwt, credentials.factor, credentials.service_jwt) == ("a.b.c", "f", "d.e.f")
    empty = await read(("Authorization", "Bearer a.b.c"), ("Factor", ""), ("Service-Jwt", ""), fields=body)
    assert (empty.user_jwt, empty.factor, empty.service_jwt) == ("a.b.c", "", "")


async def test_beside_an_access_key_the_user_jwt_is_the_bodys() -> None:
    credentials = await read(("Authorization", "bearer  abcdef"), fields=CredentialFields(jwt="a.b.c"))
    assert (credentials.access_key, credentials.user_jwt) == ("abcdef", "a.b.c")


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Basic YTpi", "a.b.c", "Bearer a.b.c d", "Bearer a,Bearer b", "Bearer\ta.b.c"]
)
async def test_pa_01_an_authorization_that_is_no_bearer_is_refused(value: str) -> None:
    with pytest.raises(InvalidToken):
        await read(("Authorization", value), fields=CredentialFields(jwt="a.b.c"))


@pytest.mark.parametrize("name", ["Authorization", "Factor", "Service-Jwt", "Request-Sign", "Signature"])
async def test_pa_01_a_doubled_header_is_refused(name: str) -> None:
    with pytest.raises(InvalidToken):
        await read((name, "Bearer a.b.c"), (name, "Bearer a.b.c"))


async def test_ak_11_nothing_is_read_off_the_query_or_a_cookie() -> None:
    credentials = await read(
        ("Cookie", "jwt=a.b.c; access_key=abcdef; authorization=abcdef"),
        query=b"jwt=a.b.c&access_key=abcdef&authorization=Bearer%20abcdef&factor=f&service_jwt=d.e.f",
    )
    assert (credentials.bearer, credentials.user_jwt, credentials.factor, credentials.service_jwt) == ("", "", "", "")


async def test_a_signature_is_over_the_request_as_it_came() -> None:
    fields = CredentialFields(ip="203.0.113.5", ts=1_800_000_000)
    credentials = await read(("Signature", "ab"), ("Application-Id", "50001"), fields=fields, query=b"x=%20y")
    assert credentials.signed is not None
    assert (credentials.signed.application_id, credentials.signed.signature) == ("50001", "ab")
    assert (credentials.signed.ip, credentials.signed.ts) == ("203.0.113.5", 1_800_000_000)
    assert credentials.signed.message == b"POST\n/api/permissions/meta/data\nx=%20y\n" + BODY


async def test_ip_and_ts_may_stand_in_the_query() -> None:
    credentials = await read(("Signature", "ab"), query=b"ip=2001%3Adb8%3A%3A1&ts=1800000000")
    assert credentials.signed is not None
    assert (credentials.signed.ip, credentials.signed.ts) == ("2001:db8::1", 1_800_000_000)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        (b"", CredentialFields()),
        (b"ip=203.0.113.5", CredentialFields()),
        (b"ts=1800000000", CredentialFields()),
        (b"ip=203.0.113.5&ip=203.0.113.6&ts=1800000000", CredentialFields()),
        (b"ip=203.0.113.5&ts=1800000000", CredentialFields(ip="203.0.113.6")),
        (b"ip=203.0.113.5&ts=1800000000", CredentialFields(ts=1_800_000_001)),
        (b"ip=203.0.113.5&ts=01800000000", CredentialFields()),
        (b"ip=203.0.113.5", CredentialFields(ts="soon")),
        (b"ip=203.0.113.5", CredentialFields(ts=-1)),
    ],
)
async def test_pa_09_a_signature_needs_one_address_and_one_time(query: bytes, fields: CredentialFields) -> None:
    with pytest.raises(InvalidToken):
        await read(("Signature", "ab"), query=query, fields=fields)
