"""The public keys of applications, requested without credentials (interface §4.4; checklist UI-26, UI-27)."""

from urllib.parse import quote

import pytest

from tests.support.permission_builders import set_fields
from tests.support.studio import Studio

STRANGE = (
    *("../signing", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/secret.pem", "key.pem", "%00", "a%0ab", "*", "'", "\\"),
    *("a" * 5_000, "file:%2f%2f%2fetc%2fpasswd", "__class__", "private"),
)


@pytest.mark.parametrize("address", STRANGE)
async def test_ui_26_a_strange_key_id_is_simply_unknown(studio: Studio, address: str) -> None:
    response = await studio.service.client.get(f"/api/permissions/application/publicKey/{address}")
    assert response.status_code == 404
    assert response.json()["status"] == "ERROR"


async def test_ui_26_only_the_public_half_of_a_key_is_ever_served(studio: Studio) -> None:
    keys = await studio.service.client.get("/api/permissions/keys")
    for key in keys.json()["keys"]:
        response = await studio.service.client.get(f"/api/permissions/application/publicKey/{key['kid']}")
        assert response.status_code == 200
        assert response.json()["key"]["data"].startswith("-----BEGIN PUBLIC KEY-----")
        assert "PRIVATE" not in response.text


async def test_ui_27_ids_have_one_spelling_and_what_is_gone_looks_like_what_never_was(studio: Studio) -> None:
    shop = studio.shop.application_id
    path = "/api/permissions/application/publicKeys/"
    assert (await studio.service.client.get(f"{path}{shop}")).json() == {"status": "OK", "keys": []}
    unknown = await studio.service.client.get(f"{path}99999")
    for spelling in (
        f"0{shop}",
        f"+{shop}",
        f"{shop}.0",
        f" {shop}",
        "\uff11",
        "-1",
        "0",
        "0x1",
        "1_0",
        "9" * 30,
        "true",
    ):
        response = await studio.service.client.get(path + quote(spelling))
        assert (response.status_code, response.json()) == (unknown.status_code, unknown.json()), spelling
    await studio.service.services.storage.applications.edit_application(shop, set_fields(removed=True))
    removed = await studio.service.client.get(f"{path}{shop}")
    assert (removed.status_code, removed.json()) == (404, unknown.json())
