"""`gatehouse mail test`, and the effect of `key rewrap` on the outbox."""

import asyncio
from pathlib import Path

import pytest

from gatehouse.app.rewrapping import rewrap_all
from gatehouse.app.services import open_services
from gatehouse.app.services.mail import outbox_worker
from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.sealing import new_master_key
from gatehouse.mail.model import MailTemplate, ServerUnusable
from tests.support.clock import MovableClock
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.mail import TO, Mailbox, mail_server, refusing_port
from tests.support.service import load_test_settings

MASTER = "GATEHOUSE__SECURITY__MASTER_KEY"
PREVIOUS = "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS"


def settings(port: int) -> dict[str, str]:
    return {
        "GATEHOUSE__MAIL__HOST": "127.0.0.1",
        "GATEHOUSE__MAIL__PORT": str(port),
        "GATEHOUSE__MAIL__SECURITY": "none",
        "GATEHOUSE__MAIL__FROM_ADDRESS": "gatehouse@studio.example",
        "GATEHOUSE__MAIL__FROM_NAME": "Studio login",
    }


@pytest.fixture
def gatehouse(migrated_sqlite_url: str, tmp_path: Path) -> CommandLine:
    return InstallationPaths(data=tmp_path / "data", url=migrated_sqlite_url).command_line()


async def test_a_test_mail_is_sent_at_once(gatehouse: CommandLine, mailbox: Mailbox) -> None:
    async with mail_server(mailbox) as port:
        output = await asyncio.to_thread(gatehouse, "mail", "test", TO, "--lang", "de", environment=settings(port))
        json = await asyncio.to_thread(gatehouse.json, "mail", "test", TO, environment=settings(port))
    assert f"Test email for {TO} sent to 127.0.0.1:{port}" in output
    assert json == {"to": TO, "taken_by": f"127.0.0.1:{port}"}
    assert [message["To"] for message in mailbox.taken] == [TO, TO]
    assert mailbox.taken[0]["From"] == "Studio login <gatehouse@studio.example>"
    assert mailbox.taken[0]["Subject"] == "Test-E-Mail von Studio login"


async def test_mail_server_reply_is_shown(gatehouse: CommandLine, mailbox: Mailbox) -> None:
    mailbox.recipient_reply = lambda _: "550 5.7.1 relaying denied"
    async with mail_server(mailbox) as port:
        output = await asyncio.to_thread(gatehouse.expect_failure, "mail", "test", TO, environment=settings(port))
    assert "550 5.7.1 relaying denied" in output
    assert "Connect" in gatehouse.expect_failure("mail", "test", TO, environment=settings(refusing_port()))


def test_test_email_is_printed_in_development_without_a_server(gatehouse: CommandLine) -> None:
    output = gatehouse("mail", "test", TO)
    assert f"to {TO}: Test email from Gatehouse" in output
    assert f"Test email for {TO} sent to this terminal" in output


def test_an_address_that_is_none_is_refused(gatehouse: CommandLine) -> None:
    assert "Email cannot be sent" in gatehouse.expect_failure("mail", "test", "anna", environment=settings(1))


async def test_a_new_master_key_reaches_the_outbox(migrated_url: str, tmp_path: Path) -> None:
    old, new, clock = new_master_key(), new_master_key(), MovableClock()
    first = load_test_settings(migrated_url, tmp_path, port=8080, **{MASTER: old})
    async with open_services(first, clock=clock, serving=False) as services:
        composer = services.mail.composer
        await services.storage.mail.queue_mails([composer.compose(MailTemplate.TEST, to=TO, lang="en")], "")
    both = load_test_settings(migrated_url, tmp_path, port=8080, **{MASTER: new, PREVIOUS: old})
    async with open_services(both, clock=clock, serving=False) as services:
        outcome = await rewrap_all(services, AuditOrigin(actor="test"))
    assert outcome.moved["outbox"] == 1
    output: list[str] = []
    only = load_test_settings(migrated_url, tmp_path, port=8080, **{MASTER: new})
    async with open_services(only, clock=clock, serving=False) as services:
        await outbox_worker(services.core, output.append).run_once()
    assert TO in output[0]


async def test_outside_development_mail_waits_for_a_server(migrated_url: str, tmp_path: Path) -> None:
    clock = MovableClock()
    async with open_services(
        load_test_settings(migrated_url, tmp_path, port=8080), clock=clock, serving=False
    ) as services:
        composer = services.mail.composer
        await services.storage.mail.queue_mails([composer.compose(MailTemplate.TEST, to=TO, lang="en")], "")
        worker = outbox_worker(services.core, None)
        await worker.run_once()
        assert (await services.storage.mail.outbox_status()).waiting == 1
        with pytest.raises(ServerUnusable):
            await worker.deliver_now(composer.compose(MailTemplate.TEST, to=TO, lang="en"))
