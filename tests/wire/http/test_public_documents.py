"""The key sets, the metadata and the guides: the same for everyone."""

import re
from pathlib import Path

import pytest

from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose
from gatehouse.web.pages.guides import GROUPS, find_guides
from gatehouse.web.pages.markdown import render_markdown
from tests.support.find_programs import ROOT
from tests.support.raw_http import raw_connection, send_request
from tests.support.service import RunningService, running_service

PATHS = (
    "/proxy/oauth/keys",
    "/api/permissions/keys",
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
)


def a_get(path: str, *lines: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: localhost", *lines, "", "")).encode()


def port_of(service: RunningService) -> int:
    return int(service.base_url.rpartition(":")[2])


@pytest.mark.parametrize("path", PATHS)
async def test_a_document_is_cacheable_tagged_and_open_to_every_origin(service: RunningService, path: str) -> None:
    answer = await service.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"].startswith("public, max-age=")
    assert answer.headers["access-control-allow-origin"] == "*"
    known = await service.client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", answer.headers["etag"])
    other = await service.client.get(path, headers={"If-None-Match": '"another"'})
    assert (other.status_code, other.content) == (200, answer.content)


@pytest.mark.parametrize(
    "lines",
    [
        ("Connection: close",),
        ("Expect: 100-continue", "Content-Length: 0"),
        ("Content-Length: 0",),
        ("Upgrade: h2c", "Connection: Upgrade"),
    ],
)
async def test_unusual_requests_get_the_document_too(service: RunningService, lines: tuple[str, ...]) -> None:
    answer = await send_request(port_of(service), a_get(PATHS[0], *lines))
    assert answer.status == 200
    assert b'"keys"' in answer.body


async def test_head_a_query_and_http_1_0_are_answered(service: RunningService) -> None:
    head = await service.client.head(PATHS[0])
    assert (head.status_code, head.content) == (200, b"")
    assert (await service.client.get(f"{PATHS[0]}?x=1")).status_code == 200
    async with raw_connection(port_of(service)) as connection:
        connection.send(f"GET {PATHS[0]} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        assert (await connection.read_response()).status == 200


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
    await service.services.keys.rotation.rotate(line, origin=AuditOrigin(actor="test"))
    await service.services.keys.keyring.reload()
    response = await service.client.get(PATHS[0])
    assert len(response.json()["keys"]) == len(before) + 1
    assert response.headers["content-length"] == str(len(response.content))


async def test_all_documents_share_one_rate_limit(
    migrated_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    limits = {"GATEHOUSE__RATES__KEYS": "6"}
    async with running_service(migrated_url, tmp_path_factory.mktemp("limited"), environment=limits) as service:
        statuses = [(await service.client.get(PATHS[number % 4])).status_code for number in range(10)]
    assert statuses == [200] * 6 + [429] * 4


async def test_an_unreadable_chain_of_addresses_is_refused(
    migrated_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    proxied = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.0/8"}
    async with running_service(migrated_url, tmp_path_factory.mktemp("proxied"), environment=proxied) as service:
        good = await service.client.get(PATHS[0], headers={"X-Forwarded-For": "192.0.2.9"})
        bad = await service.client.get(PATHS[0], headers={"X-Forwarded-For": "garbage"})
    assert (good.status_code, bad.status_code) == (200, 400)


async def test_security_contact_is_served_from_the_operators_file(migrated_url: str, tmp_path: Path) -> None:
    contact = tmp_path / "security.txt"
    contact.write_text("Contact: mailto:security@example.org\nExpires: 2027-01-01T00:00:00Z\n")
    environment = {"GATEHOUSE__OPERATIONS__SECURITY_TXT": str(contact)}
    async with running_service(migrated_url, tmp_path / "data", environment=environment) as service:
        response = await service.client.get("/.well-known/security.txt")
        head = await service.client.head("/.well-known/security.txt")
    assert (response.status_code, response.text) == (200, contact.read_text())
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert (head.status_code, head.text) == (200, "")


async def test_installation_without_a_security_contact_has_none(service: RunningService) -> None:
    assert (await service.client.get("/.well-known/security.txt")).status_code == 404


# -- the guides -------------------------------------------------------------------------------------------

LINK = re.compile(r'<(?:a|img)\b[^>]*? (?:href|src)="([^"]+)"')
ANCHOR = re.compile(r' id="([^"]+)"')


async def test_every_link_of_every_guide_leads_somewhere(service: RunningService) -> None:
    index = (await service.client.get("/docs/guides")).text
    names = set(re.findall(r'href="/docs/guides/([a-z-]+)"', index))
    assert names == {file.stem for file in (ROOT / "docs" / "guides").glob("*.md")}
    pages = {f"/docs/guides/{name}": (await service.client.get(f"/docs/guides/{name}")).text for name in names}
    linked = {(path, link) for path, page in pages.items() for link in LINK.findall(page.partition("<main")[2])}
    assert len(linked) > 100
    for path, link in linked:
        if link.startswith(("http://", "https://")):
            continue
        target, _, anchor = link.partition("#")
        target = target or path
        if target not in pages and not target.startswith("?"):
            answer = await service.client.get(target)
            assert answer.status_code == 200, (path, link)
            assert not target.endswith(".png") or answer.headers["content-type"] == "image/png"
        assert not anchor or anchor in ANCHOR.findall(pages[target]), (path, link)


async def test_guides_are_grouped_and_searched(service: RunningService) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(find_guides().guides)
    found = (await service.client.get("/docs/guides?q=Reverse+PROXY")).text
    assert 'href="/docs/guides/protect-a-site"' in found
    assert 'href="/docs/guides/glossary"' not in found
    none = (await service.client.get("/docs/guides?q=%3Cb%3Eblockchain")).text
    assert "No guide has “&lt;b&gt;blockchain”." in none


def test_screens_link_only_to_guides_that_exist() -> None:
    templates = (ROOT / "src" / "gatehouse" / "web" / "templates").rglob("*.html")
    named = {name for file in templates for name in re.findall(r'guide="([^"]+)"', file.read_text())}
    assert len(named) > 3
    assert named | {"game-login", "protect-a-site", "permissions", "connect-a-client"} <= set(find_guides().guides)


async def test_a_guide_is_public_and_runs_nothing(service: RunningService) -> None:
    answer = await service.client.get("/docs/guides/webhooks", headers={"Accept-Language": "de"})
    assert answer.status_code == 200
    assert (
        "script-src 'self'" in answer.headers["content-security-policy"]
        or "default-src 'self'" in (answer.headers["content-security-policy"])
    )
    assert "<script" not in answer.text
    assert '<html lang="de"' in answer.text
    assert '<div lang="en"><h1 id="' in answer.text
    for path in ("/docs/guides/none", "/docs/guides/../decisions", "/docs/guides/pictures/none.png"):
        assert (await service.client.get(path)).status_code == 404


def test_markdown_is_rendered_without_its_html_and_without_links_to_nowhere() -> None:
    text = "See [this](gone.md) and ![x](gone.png) <script>alert(1)</script> [that](https://a.example).\n\n<b>x</b>\n"
    html = render_markdown(text, lambda address: address if address.startswith("https:") else None)
    assert html == '<p>See this and  alert(1) <a href="https://a.example">that</a>.</p>\n<p>x</p>\n'
