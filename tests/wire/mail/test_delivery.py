"""Messages reach a real SMTP server, with the encryption and login it requires, or wait."""

import ssl
from math import ceil
from pathlib import Path

import pytest

from gatehouse.mail.delivery import SmtpSecurity
from gatehouse.mail.model import MailTemplate, OutboxMail, RecipientRefused, ServerUnusable, Undelivered
from gatehouse.mail.outbox import BATCH_SIZE, OutboxWorker
from gatehouse.mail.smtp import SmtpTransport
from gatehouse.storage.database import Storage
from tests.support.clock import MovableClock
from tests.support.keys import master_keys
from tests.support.mail import (
    TO,
    Mailbox,
    OutboxInMemory,
    certificates,
    composed_mail,
    mail_server,
    refusing_port,
    smtp_transport_to,
)

CREDENTIALS = {"username": "gatehouse", "password": "of the mail server"}
NO_ONE = "no_one@studio.example"


async def deliver(carrier: SmtpTransport, mail: OutboxMail, clock: MovableClock) -> None:
    await OutboxWorker(
        store=OutboxInMemory(), find_transport=lambda: carrier, sealer=master_keys(), clock=clock
    ).deliver_now(mail)


async def test_queued_mail_is_delivered_and_the_outbox_is_emptied(
    storage: Storage, mailbox: Mailbox, clock: MovableClock
) -> None:
    mails = [composed_mail(clock, template) for template in MailTemplate]
    await storage.mail.queue_mails(mails, "")
    async with mail_server(mailbox) as port:
        outbox_worker = OutboxWorker(
            store=storage.mail, find_transport=lambda: smtp_transport_to(port), sealer=master_keys(), clock=clock
        )
        await outbox_worker.run_once()
        await outbox_worker.run_once()
    assert sorted(message["Message-ID"] for message in mailbox.taken) == sorted(
        f"<{mail.mail_id}@studio.example>" for mail in mails
    )
    assert set(mailbox.recipients) == {TO}
    assert mailbox.connections == ceil(len(mails) / BATCH_SIZE), "one connection per batch"
    assert (await storage.mail.outbox_status()).waiting == 0


async def test_a_letter_survives_the_wire(mailbox: Mailbox, clock: MovableClock) -> None:
    async with mail_server(mailbox) as port:
        await deliver(smtp_transport_to(port), composed_mail(clock, MailTemplate.RESET), clock)
    [message] = mailbox.taken
    text, html = (part.get_content() for part in message.iter_parts())
    assert "\nhttps://login.studio.example/reset?token=q3Zk-_tY\n" in text.replace("\r\n", "\n")
    assert 'href="https://login.studio.example/reset?token=q3Zk-_tY"' in html


async def test_a_mailbox_in_another_script_is_reached_where_the_server_can(
    mailbox: Mailbox, clock: MovableClock
) -> None:
    mail = composed_mail(clock, to="jörg@studio.example")
    async with mail_server(mailbox, enable_SMTPUTF8=True) as port:
        await deliver(smtp_transport_to(port), mail, clock)
    assert mailbox.recipients == ["jörg@studio.example"]
    async with mail_server(mailbox) as port:
        with pytest.raises(RecipientRefused, match="SMTPUTF8"):
            await deliver(smtp_transport_to(port), mail, clock)


async def test_we_sign_in_where_the_server_wants_it(mailbox: Mailbox, clock: MovableClock) -> None:
    async with mail_server(mailbox, auth_require_tls=False) as port:
        await deliver(smtp_transport_to(port, **CREDENTIALS), composed_mail(clock), clock)
    assert mailbox.signed_in == "gatehouse"


async def test_a_wrong_password_is_told_and_nothing_is_sent(mailbox: Mailbox, clock: MovableClock) -> None:
    async with mail_server(mailbox, auth_require_tls=False) as port:
        with pytest.raises(ServerUnusable, match="535") as error:
            await deliver(
                smtp_transport_to(port, username="gatehouse", password="wrong word"), composed_mail(clock), clock
            )
    assert mailbox.taken == []
    assert "wrong word" not in str(error.value)


async def test_starttls_encrypts_before_anything_is_said(
    mailbox: Mailbox, clock: MovableClock, tmp_path: Path
) -> None:
    pair = certificates(tmp_path)
    async with mail_server(mailbox, tls_context=pair.server, require_starttls=True) as port:
        carrier = smtp_transport_to(port, security=SmtpSecurity.STARTTLS, tls=pair.client, **CREDENTIALS)
        await deliver(carrier, composed_mail(clock), clock)
    assert mailbox.encrypted
    assert mailbox.signed_in == "gatehouse"


async def test_tls_from_the_first_byte(mailbox: Mailbox, clock: MovableClock, tmp_path: Path) -> None:
    pair = certificates(tmp_path)
    async with mail_server(mailbox, tls=pair.server) as port:
        await deliver(
            smtp_transport_to(port, security=SmtpSecurity.TLS, tls=pair.client), composed_mail(clock), clock
        )
    assert len(mailbox.taken) == 1


async def test_error_names_the_other_way_of_tls(mailbox: Mailbox, clock: MovableClock, tmp_path: Path) -> None:
    pair = certificates(tmp_path)
    async with mail_server(mailbox, tls_context=pair.server) as port:
        with pytest.raises(ServerUnusable, match=r"set mail\.security to starttls"):
            await deliver(
                smtp_transport_to(port, security=SmtpSecurity.TLS, tls=pair.client), composed_mail(clock), clock
            )
    async with mail_server(mailbox, tls=pair.server) as port:
        carrier = smtp_transport_to(port, security=SmtpSecurity.STARTTLS, tls=pair.client, timeout=0.2)
        with pytest.raises(ServerUnusable, match=r"set mail\.security to tls"):
            await deliver(carrier, composed_mail(clock), clock)
    with pytest.raises(ServerUnusable, match=rf"^127.0.0.1:{port}: \[Errno 111\] Connect"):
        await deliver(carrier, composed_mail(clock), clock)


async def test_a_server_that_does_not_offer_encryption_gets_nothing(mailbox: Mailbox, clock: MovableClock) -> None:
    async with mail_server(mailbox, auth_require_tls=False) as port:
        with pytest.raises(ServerUnusable, match="STARTTLS"):
            await deliver(
                smtp_transport_to(port, security=SmtpSecurity.STARTTLS, **CREDENTIALS), composed_mail(clock), clock
            )
    assert mailbox.taken == []


@pytest.mark.parametrize("security", [SmtpSecurity.STARTTLS, SmtpSecurity.TLS])
async def test_a_server_that_cannot_prove_its_name_gets_nothing(
    mailbox: Mailbox, clock: MovableClock, tmp_path: Path, security: SmtpSecurity
) -> None:
    pair = certificates(tmp_path)
    console_browsers = {"tls": pair.server} if security is SmtpSecurity.TLS else {"tls_context": pair.server}
    async with mail_server(mailbox, **console_browsers) as port:
        carrier = smtp_transport_to(port, security=security, tls=ssl.create_default_context())
        with pytest.raises(ServerUnusable, match=r"(?i)certificate"):
            await deliver(carrier, composed_mail(clock), clock)
    assert mailbox.taken == []


async def test_a_recipient_refused_for_good_is_given_up_and_one_put_off_is_kept(
    storage: Storage, mailbox: Mailbox, clock: MovableClock
) -> None:
    replies = {NO_ONE: f"550 5.1.1 <{NO_ONE}> no such mailbox", "later@studio.example": "451 4.7.1 come back later"}
    mailbox.recipient_reply = lambda address: replies.get(address, "250 OK")
    await storage.mail.queue_mails([composed_mail(clock, to=to) for to in (NO_ONE, "later@studio.example", TO)], "")
    async with mail_server(mailbox) as port:
        outbox_worker = OutboxWorker(
            store=storage.mail, find_transport=lambda: smtp_transport_to(port), sealer=master_keys(), clock=clock
        )
        await outbox_worker.run_once()
        assert mailbox.recipients == [TO]
        outstanding = await storage.mail.outbox_status()
        assert (outstanding.waiting, outstanding.given_up) == (1, 1)
        assert outstanding.trouble == "451 4.7.1 come back later"
        replies.clear()
        await clock.advance(60)
        await outbox_worker.run_once()
    assert mailbox.recipients == [TO, "later@studio.example"], "the refused one is not retried"
    assert mailbox.connections == 2


async def test_the_recipient_is_not_named_in_what_went_wrong(mailbox: Mailbox, clock: MovableClock) -> None:
    mailbox.recipient_reply = lambda address: f"550 5.1.1 <{address}> no such mailbox"
    async with mail_server(mailbox) as port:
        with pytest.raises(RecipientRefused) as error:
            await deliver(smtp_transport_to(port), composed_mail(clock, to=NO_ONE), clock)
    assert str(error.value) == "550 5.1.1 <(recipient)> no such mailbox"


async def test_a_letter_whose_content_is_refused_is_put_off(mailbox: Mailbox, clock: MovableClock) -> None:
    mailbox.data_reply = "554 5.7.1 looks like spam"
    async with mail_server(mailbox) as port:
        with pytest.raises(Undelivered, match="554") as error:
            await deliver(smtp_transport_to(port), composed_mail(clock), clock)
    assert type(error.value) is Undelivered


async def test_a_server_that_closes_the_door_between_two_letters_gets_the_second_one_later(
    storage: Storage, mailbox: Mailbox, clock: MovableClock
) -> None:
    mailbox.recipient_reply = lambda _: "421 4.3.2 going down" if mailbox.taken else "250 OK"
    await storage.mail.queue_mails([composed_mail(clock), composed_mail(clock)], "")
    async with mail_server(mailbox) as port:
        outbox_worker = OutboxWorker(
            store=storage.mail, find_transport=lambda: smtp_transport_to(port), sealer=master_keys(), clock=clock
        )
        await outbox_worker.run_once()
        assert (await storage.mail.outbox_status()).trouble == "421 4.3.2 going down"
        mailbox.recipient_reply = lambda _: "250 OK"
        await clock.advance(60)
        await outbox_worker.run_once()
    assert len(mailbox.taken) == 2


async def test_unreachable_mail_server_is_reported_with_its_address(clock: MovableClock) -> None:
    port = refusing_port()
    with pytest.raises(ServerUnusable, match=rf"127\.0\.0\.1:{port}"):
        await deliver(smtp_transport_to(port), composed_mail(clock), clock)
