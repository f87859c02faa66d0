"""Logos of clients: uploaded or fetched once, stored here, shown at sign-in and consent (R9)."""

import io
from base64 import b64encode
from html import unescape
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
from msgspec.structs import replace
from PIL import Image

from gatehouse.images.model import MAX_UPLOAD_BYTES
from gatehouse.images.upload_limit import PER_MINUTE
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.client_documents import DocumentServer
from tests.support.console import ADA, OLGA, PIA, SHOP, ConsoleBrowsers, login_of
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.images import SVG, png
from tests.support.service import RunningService
from tests.support.stub_server import http_response
from tests.wire.console.test_privileged_clients import GOOD, ORDINARY, PRIVILEGED, Callers, create_client

PAGE: Final = f"/console/applications/{SHOP}/clients/web"
AUTHORIZE: Final = "/proxy/oauth/authorize?" + urlencode(
    {"response_type": "code", "client_id": "web", "redirect_uri": GOOD, "scope": "openid email", "nonce": "n"}
)


async def upload(browser: HttpBrowser, content: bytes) -> httpx2.Response:
    csrf = hidden_fields((await browser.get(PAGE)).text)["csrf"]
    return await browser.client.post(f"{PAGE}/logo", data={"csrf": csrf}, files={"logo": ("a.png", content)})


async def remove(browser: HttpBrowser) -> httpx2.Response:
    csrf = hidden_fields((await browser.get(PAGE)).text)["csrf"]
    return await browser.client.post(f"{PAGE}/logo/remove", data={"csrf": csrf})


async def logo_of(studio: RunningService) -> str:
    return (await studio.services.oauth.clients.commands.get("web")).logo


async def read_json(response: Any) -> Any:
    assert response.status_code == 200, response.text
    return response.json()["data"]


async def test_cl_03_an_uploaded_logo_is_encoded_anew_shown_and_removed_with_its_client(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await create_client(studio, replace(ORDINARY, name='Web "shop" <1>'))
    olga = await console_browsers(OLGA)
    assert (await upload(olga, png("navy") + SVG)).status_code == 303
    assert "Logo saved" in (await olga.get(PAGE)).text
    logo = await logo_of(studio)
    served = await studio.client.get(f"/images/{logo}")
    shown = Image.open(io.BytesIO(served.content))
    assert (served.headers["content-type"], shown.format, shown.size) == ("image/webp", "WEBP", (512, 128))
    assert SVG not in served.content
    (record,) = await studio.services.storage.audit.newest_records(10, "web", "client.changed")
    assert (record.actor, record.details) == (OLGA, {"fields": "logo"})

    person = HttpBrowser(studio)
    await person.get(AUTHORIZE)
    sign_in = await person.follow()
    await person.post("/sign-in", login=login_of(PIA), password=PASSWORD)
    consent = await person.follow()
    for page in (sign_in, consent):
        assert f'<img src="/images/{logo}" alt="' in page.text
        assert 'alt="Logo of Web "shop" <1>" width="56" height="56"' in unescape(page.text)
        assert "<1>" not in page.text
        assert "img-src 'self';" in page.headers["content-security-policy"]
    await person.client.aclose()

    assert (await remove(olga)).status_code == 303
    assert (await logo_of(studio), (await studio.client.get(f"/images/{logo}")).status_code) == ("", 404)
    assert (await upload(olga, png("teal"))).status_code == 303
    logo = await logo_of(studio)
    assert (await Callers(studio).act(OLGA, "delete")).status_code == 200
    assert tables_that_mention(await read_all_tables(studio.services.storage), logo) == set()


async def test_cl_03_a_bad_upload_or_one_without_the_right_changes_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await create_client(studio, PRIVILEGED["first_party"])
    olga, ada, pia = await console_browsers(OLGA), await console_browsers(ADA), await console_browsers(PIA)
    assert (await upload(olga, png("navy"))).status_code == 403
    csrf = hidden_fields((await pia.get("/account")).text)["csrf"]
    for name, files in (("logo", {"logo": ("a.png", png("navy"))}), ("logo/remove", None)):
        response = await pia.client.post(f"{PAGE}/{name}", data={"csrf": csrf}, files=files)
        assert response.status_code == 403
    forged = await ada.client.post(f"{PAGE}/logo", data={"csrf": "x"}, files={"logo": ("a.png", png("navy"))})
    assert forged.status_code == 403
    for content, problem in (
        (b"", "PNG, JPEG or WebP"),
        (SVG, "PNG, JPEG or WebP"),
        (png("navy")[:60], "cannot be read"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * MAX_UPLOAD_BYTES, "at most 4 MB"),
    ):
        response = await upload(ada, content)
        assert (response.status_code, problem in response.text) == (400, True), problem
    assert await logo_of(studio) == ""
    assert (await upload(ada, png("navy"))).status_code == 303
    logo = await logo_of(studio)
    assert (await remove(olga)).status_code == 403
    assert await logo_of(studio) == logo


async def test_cl_04_a_logo_by_address_is_fetched_once_and_served_here(
    reaching_studio: RunningService, pictures: DocumentServer
) -> None:
    studio, callers = reaching_studio, Callers(reaching_studio)
    pictures.documents["/logo"] = http_response(png("navy"), Content_Type="image/png; charset=binary")
    created = await read_json(
        await callers.act(
            ADA, "create", name="Web", profile="oidc", redirect_uris=[GOOD], logo_uri=pictures.url("/logo")
        )
    )
    address = f"{studio.services.base_url}/images/{await logo_of(studio)}"
    assert created["logo_uri"] == address
    assert (await studio.client.get(f"/images/{await logo_of(studio)}")).status_code == 200
    assert pictures.fetches == ["/logo"]
    unchanged = await read_json(await callers.save(ADA, name="Shop", logo_uri=address))
    assert (unchanged["name"], unchanged["logo_uri"], pictures.fetches) == ("Shop", address, ["/logo"])

    for path, response in {
        "/missing": http_response(png("navy"), "404 Not Found", Content_Type="image/png"),
        "/moved": http_response(b"", "302 Found", Location=pictures.url("/logo")),
        "/page": http_response(png("navy"), Content_Type="text/html"),
        "/svg": http_response(SVG, Content_Type="image/svg+xml"),
        "/false": http_response(SVG, Content_Type="image/png"),
        "/large": http_response(b"\x89PNG\r\n\x1a\n" + b"\0" * MAX_UPLOAD_BYTES, Content_Type="image/png"),
    }.items():
        pictures.documents[path] = response
        refused = await callers.save(ADA, name="Other", logo_uri=pictures.url(path))
        assert (refused.status_code, refused.json()["error"].startswith("data.logo_uri: ")) == (400, True), path
    stored = await studio.services.oauth.clients.commands.get("web")
    assert (stored.name, address.endswith(stored.logo)) == ("Shop", True)

    by_data = await read_json(await callers.save(ADA, logo=b64encode(png("teal")).decode(), logo_uri=address))
    assert by_data["logo_uri"] not in ("", address)
    both = await callers.save(ADA, logo=b64encode(png("red")).decode(), logo_uri=pictures.url("/logo"))
    assert both.status_code == 400
    for bad in ("%%%", b64encode(SVG).decode()):
        assert (await callers.save(ADA, logo=bad)).status_code == 400
    assert "logo_uri" not in await read_json(await callers.save(ADA, logo_uri=None))
    assert len(pictures.fetches) == 7


async def test_lg_33_fetch_of_an_image_counts_as_one_whatever_the_answer(
    reaching_studio: RunningService, pictures: DocumentServer
) -> None:
    await create_client(reaching_studio, ORDINARY)
    callers = Callers(reaching_studio)
    pictures.documents["/missing"] = http_response(b"", "404 Not Found")
    statuses = [
        (await callers.save(OLGA, logo_uri=pictures.url("/missing"))).status_code for _ in range(PER_MINUTE + 1)
    ]
    assert statuses == [400] * PER_MINUTE + [429]
    assert len(pictures.fetches) == PER_MINUTE
    assert (await callers.save(ADA, logo_uri=pictures.url("/missing"))).status_code == 400


async def test_cl_04_a_logo_is_not_fetched_from_internal_or_malformed_addresses(studio: RunningService) -> None:
    await create_client(studio, ORDINARY)
    callers = Callers(studio)
    for uri in (
        *("https://127.0.0.1:1/logo.png", "https://localhost:1/logo.png", "https://[::ffff:10.0.0.5]/logo.png"),
        *("http://93.184.215.14/logo.png", "https://169.254.169.254/latest", "file:///etc/passwd"),
        *("https://user@a.example/logo.png", "https://a.example/#x", f"https://a.example/{'x' * 2_048}"),
    ):
        refused = await callers.save(OLGA, logo_uri=uri)
        assert (refused.status_code, refused.json()["error"].startswith("data.logo_uri: ")) == (400, True), uri
        assert "127.0.0.1" not in refused.text
    assert await logo_of(studio) == ""
    assert (await callers.save(PIA, logo_uri="https://127.0.0.1:1/logo.png")).status_code == 403
