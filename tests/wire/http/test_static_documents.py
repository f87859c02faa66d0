"""Pre-rendered documents have the same responses as the ordinary path."""

import pytest

from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose
from gatehouse.web.server.static_documents import StaticDocuments
from tests.support.raw_http import raw_connection, send_request
from tests.support.service import RunningService, running_service

PATHS = (
    "/proxy/oauth/keys",
    "/api/permissions/keys",
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
)
OF_THIS_REQUEST = {"x-request-id", "date"}
LONG_WAY = {"If-None-Match": '"another"'}  # a condition that does not match


def a_get(path: str, *lines: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: localhost", *lines, "", "")).encode()


def port_of(service: RunningService) -> int:
    return int(service.base_url.rpartition(":")[2])


@pytest.fixture
def static(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request to one of the documents, whether it was answered without the application."""
    seen: list[bool] = []
    response = StaticDocuments.response

    def note_answer(documents: StaticDocuments, *arguments: object) -> bytes | None:
        answer = response(documents, *arguments)  # type: ignore[arg-type]
        if arguments[0] in {path.encode() for path in PATHS}:
            seen.append(answer is not None)
        return answer

    monkeypatch.setattr(StaticDocuments, "response", note_answer)
    return seen


@pytest.mark.parametrize("path", PATHS)
async def test_static_and_regular_paths_return_the_same_response(
    service: RunningService, path: str, static: list[bool]
) -> None:
    await service.client.get(path)  # the first checks whether the keys have changed
    static.clear()
    quick = await service.client.get(path)
    slow = await service.client.get(path, headers=LONG_WAY)
    assert static == [True, False]
    assert (quick.status_code, quick.content) == (slow.status_code, slow.content) == (200, quick.content)
    headers = [
        sorted((name, value) for name, value in response.headers.items() if name not in OF_THIS_REQUEST)
        for response in (quick, slow)
    ]
    assert headers[0] == headers[1]
    assert quick.headers["x-request-id"] != slow.headers["x-request-id"]


@pytest.mark.parametrize(
    "lines",
    [
        ("Connection: close",),
        ("Expect: 100-continue", "Content-Length: 0"),
        ("Content-Length: 0",),
        ("Upgrade: h2c", "Connection: Upgrade"),
        ('If-None-Match: "x"',),
    ],
)
async def test_whatever_asks_for_more_goes_the_long_way(
    service: RunningService, lines: tuple[str, ...], static: list[bool]
) -> None:
    response = await send_request(port_of(service), a_get(PATHS[0], *lines))
    assert response.status == 200
    assert set(static) == {False}


async def test_head_a_query_and_http_1_0_go_the_long_way(service: RunningService, static: list[bool]) -> None:
    assert (await service.client.head(PATHS[0])).status_code == 200
    assert (await service.client.get(f"{PATHS[0]}?x=1")).status_code == 200
    async with raw_connection(port_of(service)) as connection:
        connection.send(f"GET {PATHS[0]} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        assert (await connection.read_response()).status == 200
    assert static == []  # it was not requested


async def test_answers_to_pipelined_requests_keep_their_order(service: RunningService) -> None:
    async with raw_connection(port_of(service)) as connection:
        connection.send(a_get(PATHS[0]) + a_get("/healthz") + a_get(PATHS[2]) + a_get(PATHS[0]))
        bodies = [(await connection.read_response()).body for _ in range(4)]
    keys, alive, metadata, again = bodies
    assert keys == again
    assert b'"keys"' in keys
    assert alive == b'{"status":"ok"}'
    assert b'"issuer"' in metadata


async def test_a_new_key_is_in_the_next_answer(service: RunningService) -> None:
    before = (await service.client.get(PATHS[0])).json()["keys"]
    line = KeyLine(KeyPurpose.TOKENS, Algorithm.ES256)
    await service.services.key_rotation.rotate(line, origin=AuditOrigin(actor="test"))
    await service.services.keyring.reload()
    response = await service.client.get(PATHS[0])
    assert len(response.json()["keys"]) == len(before) + 1
    assert response.headers["content-length"] == str(len(response.content))


async def test_the_limit_holds_for_both_ways_together(
    migrated_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    limits = {"GATEHOUSE__RATES__KEYS": "6"}
    async with running_service(migrated_url, tmp_path_factory.mktemp("limited"), environment=limits) as service:
        statuses = [
            (await service.client.get(PATHS[number % 4], headers=LONG_WAY if number % 2 else {})).status_code
            for number in range(10)
        ]
    assert statuses == [200] * 6 + [429] * 4


async def test_a_strangers_chain_that_cannot_be_read_is_told_so_by_the_long_way(
    migrated_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    proxied = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.0/8"}
    async with running_service(migrated_url, tmp_path_factory.mktemp("proxied"), environment=proxied) as service:
        good = await service.client.get(PATHS[0], headers={"X-Forwarded-For": "192.0.2.9"})
        bad = await service.client.get(PATHS[0], headers={"X-Forwarded-For": "garbage"})
    assert (good.status_code, bad.status_code) == (200, 400)
