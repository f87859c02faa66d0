"""Settings that administrators change while the service runs."""

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatehouse.app.housekeeping import housekeeping
from gatehouse.audit.model import AuditOrigin
from gatehouse.mail.model import MailTemplate
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.echo import wait_until
from tests.support.mail import Mailbox, mail_server
from tests.support.processes import free_port
from tests.support.service import running_service
from tests.support.studio import Person, Studio, a_studio, create_administrator

HOUR = 3_600


async def save(studio: Studio, admin: Person, **settings: object) -> dict[str, Any]:
    """Save settings and return all of them by name."""
    changes = {name.replace("__", "."): value for name, value in settings.items()}
    answer = await studio.expect_ok("settings", {"action": "save", "data": {"settings": changes}}, admin.headers)
    return {line["name"]: line for line in answer["data"]["settings"]}


async def refused(studio: Studio, admin: Person, **settings: object) -> str:
    changes = {name.replace("__", "."): value for name, value in settings.items()}
    return await studio.expect_error(
        400, "settings", {"action": "save", "data": {"settings": changes}}, admin.headers
    )


async def test_saved_settings_apply_at_once_and_are_removed_by_null(studio: Studio) -> None:
    admin, services = await create_administrator(studio), studio.service.services
    lines = await save(
        studio,
        admin,
        branding__name="Sky Studio",
        branding__accent="#aa3311",
        sessions__idle_hours=5,
        accounts__allowed_domains=["sky.example"],
    )
    assert (lines["branding.name"]["value"], lines["branding.name"]["source"]) == ("Sky Studio", "database")
    assert lines["mail.from_name"]["value"] == "Sky Studio"  # follows the name
    page = (await studio.service.client.get("/sign-in")).text
    assert "Sky Studio" in page
    style = page.partition('href="/branding/')[2].partition('"')[0]
    assert "--accent" in (await studio.service.client.get(f"/branding/{style}")).text
    assert services.accounts.sessions._lifetimes().idle == 5 * HOUR
    assert services.registration.self_registration.domains == ("sky.example",)
    lines = await save(studio, admin, branding__name=None, branding__accent=None)
    assert (lines["branding.name"]["value"], lines["branding.name"]["source"]) == ("Gatehouse", "default")
    assert "/branding/" not in (await studio.service.client.get("/sign-in")).text


async def test_registration_is_opened_and_closed_without_a_restart(studio: Studio) -> None:
    admin, client = await create_administrator(studio), studio.service.client
    await save(studio, admin, accounts__registration=False)
    assert (await client.get("/register")).status_code == 403
    await save(studio, admin, accounts__registration=True)
    assert (await client.get("/register")).status_code == 200
    assert 'href="/register' in (await client.get("/sign-in")).text


async def test_a_stored_secret_is_sealed_and_never_returned(studio: Studio) -> None:
    admin, services = await create_administrator(studio), studio.service.services
    lines = await save(
        studio,
        admin,
        mail__host="127.0.0.1",
        mail__security="none",
        mail__from_address="id@sky.example",
        mail__username="mailer",
        mail__password="s3cret-of-the-mail-server",
    )
    assert lines["mail.password"]["value"] == "********"
    assert services.settings.mail.password.reveal() == "s3cret-of-the-mail-server"
    stored = await services.storage.settings.read_all()
    assert stored["mail.password"].value is None
    assert b"s3cret" not in (stored["mail.password"].sealed or b"")
    (record, *_) = await services.storage.audit.newest_records(1, "installation", "")
    assert record.event == "installation.settings_changed"
    assert record.details["mail.password"] == "new value"
    assert record.details["mail.host"] == "nothing -> 127.0.0.1"
    assert "s3cret" not in str(record)


async def test_op_87_password_of_the_mail_server_is_not_sent_to_another_one(studio: Studio) -> None:
    admin, services = await create_administrator(studio), studio.service.services
    server = {"mail__host": "127.0.0.1", "mail__security": "none", "mail__from_address": "id@sky.example"}
    await save(studio, admin, **server, mail__username="mailer", mail__password="s3cret-of-the-mail-server")
    stored = await services.storage.settings.read_all()
    for changes in (
        {"mail__host": "127.0.0.2"},
        {"mail__port": 25},
        {"mail__security": "tls"},
        {"mail__username": "root"},
        {"mail__host": "127.0.0.2", "mail__from_name": "Sky"},
    ):
        assert "mail.password must be entered again" in await refused(studio, admin, **changes)
    assert await services.storage.settings.read_all() == stored
    await save(studio, admin, mail__from_name="Sky", mail__timeout_seconds=5)
    await save(studio, admin, mail__host="127.0.0.2", mail__password="s3cret-of-the-mail-server")
    await save(studio, admin, mail__host=None)  # nothing is sent anywhere
    assert "entered again" in await refused(studio, admin, mail__host="127.0.0.3")
    await save(studio, admin, mail__host="127.0.0.3", mail__username=None, mail__password=None)


async def test_op_87_secret_of_the_operator_is_not_sent_where_an_administrator_says(
    installed_url: str, tmp_path: Path
) -> None:
    operator = {
        "GATEHOUSE__MAIL__USERNAME": "mailer",
        "GATEHOUSE__MAIL__PASSWORD": "s3cret-of-the-mail-server",
        "GATEHOUSE__PROVIDERS__STUDIO__CLIENT_SECRET": "s3cret-of-the-studio",
        "GATEHOUSE__PROVIDERS__STUDIO__ENABLED": "false",
    }
    async with running_service(installed_url, tmp_path, environment=operator) as service:
        studio = await a_studio(service)
        admin = await create_administrator(studio)
        sender = {"mail__security": "none", "mail__from_address": "id@sky.example"}
        assert "mail.password is set by environment and would be sent to another server" in await refused(
            studio, admin, mail__host="127.0.0.1", **sender
        )
        assert await refused(studio, admin, providers__studio__issuer="https://evil.example")


async def test_invalid_locked_and_unknown_settings_change_nothing(studio: Studio) -> None:
    admin, services = await create_administrator(studio), studio.service.services
    assert "did you mean branding.accent?" in await refused(studio, admin, branding__acent="#aa3311")
    assert "set it in a file" in await refused(studio, admin, server__port=81)
    assert "must be between 1 and 8760 hours" in await refused(studio, admin, sessions__idle_hours=0)
    await refused(studio, admin, branding__name="Sky", mail__host="mail.sky.example")  # without a sender
    assert services.settings.branding.name == "Gatehouse"
    assert await services.storage.settings.read_all() == {}


async def test_provider_is_complete_or_turned_off_and_keeps_its_issuer(studio: Studio) -> None:
    admin, services = await create_administrator(studio), studio.service.services
    name = "providers__studio__"
    assert "providers.studio.client_id is missing" in await refused(
        studio, admin, **{f"{name}issuer": "https://id.studio.example"}
    )
    lines = await save(
        studio,
        admin,
        **{
            f"{name}issuer": "https://id.studio.example",
            f"{name}client_id": "hub",
            f"{name}client_secret": "s3cret-of-the-studio",
            f"{name}tags": ["department=art:artist"],
        },
    )
    assert lines["providers.studio.client_secret"]["value"] == "********"
    assert set(services.sign_in.providers.all_providers()) == {"studio"}
    for changed in ({"issuer": "https://evil.example"}, {"kind": "google"}, {"issuer": None}):
        ((key, value),) = changed.items()
        assert await refused(studio, admin, **{f"{name}{key}": value})
    assert "managed automatically" in await refused(studio, admin, **{f"{name}tags": ["a=b:linked_google"]})
    assert "did you mean providers.studio.scopes?" in await refused(studio, admin, **{f"{name}scope": ["openid"]})
    assert "is unknown" in await refused(studio, admin, providers__Studio__issuer="https://id.studio.example")
    gone = dict.fromkeys(f"{name}{key}" for key in ("issuer", "client_id", "client_secret", "tags"))
    assert "providers.studio.issuer" not in await save(studio, admin, **gone)
    assert services.sign_in.providers.all_providers() == {}


async def test_only_administrators_in_person_change_settings(studio: Studio) -> None:
    for person in (studio.other_user, studio.owner):
        ask = {"action": "save", "data": {"settings": {"branding.name": "Mine"}}}
        await studio.expect_error(403, "settings", ask, person.headers)
    assert studio.service.services.settings.branding.name == "Gatehouse"


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[tuple[Studio, Studio]]:
    environment = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    locked = {**environment, "GATEHOUSE__BRANDING__ACCENT": "#112233"}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        running_service(installed_postgres_url, tmp_path, environment=locked, clock=first.clock) as second,
    ):
        studio = await a_studio(first)
        yield studio, replace(studio, service=second)


async def test_other_nodes_use_saved_settings_within_a_second_except_what_their_environment_sets(
    nodes: tuple[Studio, Studio],
) -> None:
    first, second = nodes
    admin = await create_administrator(first)
    await save(first, admin, branding__name="Sky Studio", branding__accent="#aa3311")
    live = second.service.services.core.live_settings
    await live.reload()
    assert "Sky Studio" in (await second.service.client.get("/sign-in")).text
    assert live.current.settings.branding.accent == "#112233"
    assert "is set by environment" in await refused(second, admin, branding__accent="#445566")


async def test_mail_policy_session_token_and_language_settings_apply_on_the_other_node_within_a_second(
    nodes: tuple[Studio, Studio],
) -> None:
    first, second = nodes
    admin, services, mailbox = await create_administrator(first), second.service.services, Mailbox()
    person = await services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    async with mail_server(mailbox) as port, housekeeping(services):
        await save(
            first,
            admin,
            mail__host="127.0.0.1",
            mail__port=port,
            mail__security="none",
            mail__from_address="id@sky.example",
            accounts__registration=False,
            sessions__idle_hours=1,
            tokens__user_jwt_days=7,
            languages__default="de",
        )
        async with asyncio.timeout(1):
            await wait_until(lambda: services.settings.mail.port == port)
        message = services.mail.composer.compose(MailTemplate.TEST, to="anna@studio.example", lang="en")
        await services.mail.outbox.deliver_now(message)
        assert [str(mail["From"]) for mail in mailbox.taken] == ["Gatehouse <id@sky.example>"]
        assert (await second.service.client.get("/register")).status_code == 403
        assert 'lang="de"' in (await second.service.client.get("/sign-in")).text
        browser = HttpBrowser(second.service)
        await browser.sign_in("anna@studio.example")
        await browser.client.aclose()
        (session,) = await services.storage.sessions.sessions_of_user(person.user_id, second.service.clock.now())
        assert session.idle_ends_at - session.created_at == HOUR
        claims = msgspec.json.decode(
            base64url(await services.accounts.user_tokens.issue(person, auth="login", factor="f"))
        )
        assert claims["exp"] - claims["iat"] == 7 * 24 * HOUR


def base64url(jwt: str) -> bytes:
    """Return the payload of a JWT, unverified."""
    payload = jwt.split(".")[1]
    return urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
