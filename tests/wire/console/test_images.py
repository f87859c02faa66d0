"""Logos of applications and of the installation, and pictures by URL: one way in for every image (R9)."""

import io
from functools import cache
from typing import Any, Final

import httpx2
from PIL import Image

from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.images.model import MAX_UPLOAD_BYTES
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.client_documents import DocumentServer
from tests.support.console import ADA, OLGA, PIA, SHOP, ConsoleBrowsers, apply_document, login_of
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.game import register_game
from tests.support.images import SVG, png, png_data_url
from tests.support.service import RunningService
from tests.support.stub_server import http_response
from tests.support.studio import FACTOR
from tests.wire.console.test_client_logos import AUTHORIZE
from tests.wire.console.test_privileged_clients import ORDINARY, create_client

PAGE: Final = f"/console/applications/{SHOP}/settings"
BRANDING: Final = "/console/settings/branding"
INTERNAL: Final = (
    *("https://127.0.0.1:1/a.png", "https://[::ffff:10.0.0.5]/a.png", "http://93.184.215.14/a.png"),
    *("file:///etc/passwd", "/etc/passwd", "https://user@a.example/a.png", "data:image/svg+xml;base64,PHN2Zy8+"),
)


@cache
def bomb() -> bytes:
    """Return 30 million pixels in 90 KB."""
    return png("navy", (6_000, 5_000))


class ImageCalls:
    """The three calls of the API that take the URL of an image, beside those of clients."""

    def __init__(self, studio: RunningService) -> None:
        self._studio = studio

    async def save_logo(self, url: str | None, user_id: str = ADA) -> httpx2.Response:
        data = {"application_id": SHOP, "logo_uri": url}
        return await self._post("application", {"action": "save", "data": data}, user_id)

    async def save_picture(self, url: str | None, user_id: str = ADA) -> httpx2.Response:
        data = {"user_id": PIA, "picture": url}
        return await self._post("user", {"action": "save", "data": data}, user_id)

    async def save_branding(self, url: str | None, user_id: str = ADA) -> httpx2.Response:
        settings = {"branding.logo": url}
        return await self._post("settings", {"action": "save", "data": {"settings": settings}}, user_id)

    async def _post(self, path: str, body: dict[str, Any], user_id: str) -> httpx2.Response:
        user = await self._studio.services.storage.accounts.user(user_id)
        jwt = await self._studio.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
        headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
        return await self._studio.client.post(f"/api/permissions/{path}", json=body, headers=headers)

    @property
    def each(self) -> tuple[Any, ...]:
        return self.save_logo, self.save_picture, self.save_branding

    async def stored(self) -> tuple[str, str, str]:
        storage = self._studio.services.storage
        application = await storage.applications.application(SHOP)
        person = await storage.accounts.user(PIA)
        await self._studio.services.core.live_settings.reload()
        return application.logo, person.picture, self._studio.services.settings.branding.logo


async def upload(browser: HttpBrowser, page: str, path: str, content: bytes) -> httpx2.Response:
    csrf = hidden_fields((await browser.get(page)).text)["csrf"]
    return await browser.client.post(path, data={"csrf": csrf}, files={"logo": ("a.png", content)})


async def test_cl_05_an_applications_logo_is_shown_for_clients_without_their_own(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await create_client(studio, ORDINARY)
    olga, pia = await console_browsers(OLGA), await console_browsers(PIA)
    assert (await upload(pia, "/account", f"{PAGE}/logo", png("navy"))).status_code == 403
    assert (await upload(olga, PAGE, f"{PAGE}/logo", png("navy") + SVG)).status_code == 303
    page = (await olga.get(PAGE)).text
    (logo, _, _) = await ImageCalls(studio).stored()
    served = await studio.client.get(f"/images/{logo}")
    shown = Image.open(io.BytesIO(served.content))
    assert (served.headers["content-type"], shown.format, shown.size) == ("image/webp", "WEBP", (512, 128))
    assert SVG not in served.content
    assert "Logo saved" in page
    assert f'<img src="/images/{logo}" alt="Logo of Shop"' in page
    (record,) = await studio.services.storage.audit.newest_records(1, f"application {SHOP}", "application.changed")
    assert (record.actor, list(record.details)) == (OLGA, ["logo"])

    person = HttpBrowser(studio)
    await person.get(AUTHORIZE)
    pages = [await person.follow()]
    await person.post("/sign-in", login=login_of(PIA), password=PASSWORD)
    pages.append(await person.follow())
    await person.post("/sign-in/consent", decision="allow")
    pages.append(await person.get("/account"))
    game = await register_game(studio, app_id=SHOP)
    await person.get(f"/?gsid={game.gsid}")
    pages.append(await person.follow())
    assert pages[-1].url.path == "/sign-in/confirm"
    assert all(f'src="/images/{logo}"' in page.text for page in pages)
    await person.client.aclose()

    for content, problem in ((b"", "PNG, JPEG or WebP"), (SVG, "PNG, JPEG or WebP"), (bomb(), "too many pixels")):
        refused = await upload(olga, PAGE, f"{PAGE}/logo", content)
        assert (refused.status_code, problem in refused.text) == (400, True), problem
    assert (await ImageCalls(studio).stored())[0] == logo
    csrf = hidden_fields((await olga.get(PAGE)).text)["csrf"]
    assert (await olga.client.post(f"{PAGE}/logo/remove", data={"csrf": csrf})).status_code == 303
    assert tables_that_mention(await read_all_tables(studio.services.storage), logo) == {"audit_events"}


async def test_cl_05_an_applications_logo_goes_with_the_application(studio: RunningService) -> None:
    calls = ImageCalls(studio)
    assert (await calls.save_logo(png_data_url("navy"))).json()["data"]["logo_uri"].startswith("http")
    (logo, _, _) = await calls.stored()
    removed = await calls._post("application", {"action": "delete", "data": {"application_id": SHOP}}, ADA)
    assert (removed.status_code, (await studio.client.get(f"/images/{logo}")).status_code) == (200, 404)
    assert (await calls.stored())[0] == ""


async def test_cl_06_no_url_of_an_image_leads_to_an_internal_address_or_a_file(studio: RunningService) -> None:
    calls = ImageCalls(studio)
    for save in calls.each:
        for url in INTERNAL:
            refused = await save(url)
            assert refused.status_code == 400, url
            assert "10.0.0.5" not in refused.text.replace(url, "")
        assert (await save(INTERNAL[0], PIA)).status_code == 403
    assert await calls.stored() == ("", "", "")


async def test_cl_06_images_by_url_are_fetched_once_encoded_anew_and_served_here(
    reaching_studio: RunningService, pictures: DocumentServer
) -> None:
    studio, calls = reaching_studio, ImageCalls(reaching_studio)
    pictures.documents["/good"] = http_response(png("navy") + SVG, Content_Type="image/png")
    for save in calls.each:
        assert (await save(pictures.url("/good"))).status_code == 200
    logo, picture, brand = await calls.stored()
    assert brand == f"image:{logo}"  # the same image of the same shape
    assert Image.open(io.BytesIO((await studio.client.get(f"/images/{picture}")).content)).size == (200, 200)
    assert pictures.fetches == ["/good"] * 3
    page = (await studio.client.get("/sign-in")).text
    assert f'src="/images/{logo}"' in page
    assert pictures.host not in page
    address = f"{studio.services.base_url}/images/"
    for save, image_id in zip(calls.each, (logo, picture, logo), strict=True):  # what was answered changes nothing
        assert (await save(f"{address}{image_id}")).status_code == 200
    assert (await calls.stored(), len(pictures.fetches)) == ((logo, picture, brand), 3)

    for path, response in {
        "/moved": http_response(b"", "302 Found", Location=pictures.url("/good")),
        "/svg": http_response(SVG, Content_Type="image/svg+xml"),
        "/false": http_response(SVG, Content_Type="image/png"),
        "/bomb": http_response(bomb(), Content_Type="image/png"),
        "/large": http_response(b"\x89PNG\r\n\x1a\n" + b"\0" * MAX_UPLOAD_BYTES, Content_Type="image/png"),
    }.items():
        pictures.documents[path] = response
        await studio.clock.advance(60)  # an account has ten a minute
        for save in calls.each:
            assert (await save(pictures.url(path))).status_code == 400, path
    assert await calls.stored() == (logo, picture, brand)
    for save in calls.each:
        assert (await save(None)).status_code == 200
    assert await calls.stored() == ("", "", "")
    left = tables_that_mention(await read_all_tables(studio.services.storage), picture)
    assert left <= {"audit_events"}


async def test_images_of_a_file_are_fetched_when_their_url_changes_and_are_exported(
    reaching_studio: RunningService, pictures: DocumentServer
) -> None:
    studio, calls, url = reaching_studio, ImageCalls(reaching_studio), pictures.url("/good")
    pictures.documents["/good"] = http_response(png("navy"), Content_Type="image/png")
    document = f"""
users:
  - {{user_id: "$pia", picture: "{url}"}}
applications:
  - {{application_id: $shop, logo_uri: "{url}"}}
settings:
  - {{name: branding.logo, value: "{png_data_url("teal")}"}}
"""
    await apply_document(studio, document)
    first = await calls.stored()
    assert all(first)
    await apply_document(studio, document)
    assert (await calls.stored(), pictures.fetches) == (first, ["/good"] * 2)
    exported: Any = await build_provisioning(studio.services).export(secrets=False)
    by_id = {one["user_id"]: one for one in exported["users"]}
    assert (by_id[PIA]["picture"], by_id[ADA]["picture"]) == (url, None)
    assert {one["application_id"]: one["logo_uri"] for one in exported["applications"]}[SHOP] == url
    [setting] = exported["settings"]
    assert setting["value"].startswith("data:image/webp;base64,")
    await apply_document(studio, f"settings: [{{name: branding.logo, value: '{setting['value']}'}}]")
    assert await calls.stored() == first  # its own export changes nothing
    await apply_document(studio, 'users: [{user_id: "$pia", picture: null}]')
    assert (await calls.stored())[1] == ""


async def test_cl_07_a_branding_logo_is_uploaded_shown_and_removed_by_administrators(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    assert (await upload(olga, "/account", f"{BRANDING}/light", png("navy"))).status_code == 403
    assert (await upload(ada, BRANDING, f"{BRANDING}/dark", png("navy"))).status_code == 400  # needs the light one
    assert (await upload(ada, BRANDING, f"{BRANDING}/light", SVG)).status_code == 400
    assert studio.services.settings.branding.logo == ""
    for theme, color in (("light", "navy"), ("dark", "teal")):
        assert (await upload(ada, BRANDING, f"{BRANDING}/{theme}", png(color))).status_code == 303
    branding = studio.services.settings.branding
    light, dark = (value.removeprefix("image:") for value in (branding.logo, branding.logo_dark))
    page = await studio.client.get("/sign-in")
    assert all(f'"/images/{one}"' in page.text for one in (light, dark))
    assert (await studio.client.get(f"/images/{light}")).headers["content-type"] == "image/webp"
    assert f"/images/{dark}" in (await ada.get(BRANDING)).text
    for theme in ("dark", "light"):
        csrf = hidden_fields((await ada.get(BRANDING)).text)["csrf"]
        assert (await ada.client.post(f"{BRANDING}/{theme}/remove", data={"csrf": csrf})).status_code == 303
    assert (await studio.client.get(f"/images/{light}")).status_code == 404
    assert "/images/" not in (await studio.client.get("/sign-in")).text
