"""Messages, an outbox in memory, and mail servers on loopback, both good and broken."""

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as modern
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from gatehouse.kernel.clock import Clock
from gatehouse.mail.composer import Composer, MailBrand
from gatehouse.mail.delivery import Sender, SmtpSecurity, SmtpServer
from gatehouse.mail.model import Channel, ClaimedMail, MailTemplate, Message, OutboxMail, OutboxStatus
from gatehouse.mail.smtp import SmtpTransport
from tests.support.builders import NOW
from tests.support.keys import master_keys
from tests.support.processes import LOOPBACK, free_port

BASE_URL: Final = "https://login.studio.example"
SENDER: Final = Sender(address="gatehouse@studio.example", name="Gatehouse")
TO: Final = "anna@studio.example"
VALUES: Final = {
    "path": "/reset?token=q3Zk-_tY",
    "minutes": "30",
    "days": "7",
    "address": "192.0.2.7",
    "device": "Firefox, Linux",
    "factor": "passkey",
    "left": "2",
    "provider": "Google",
    "ended": "password identity totp passkey",
    "guest": "Guest 3f2a",
    "code": "481202",
}


def a_mail(**fields: Any) -> OutboxMail:
    mail = OutboxMail(mail_id=secrets.token_hex(16), sealed=b"\x01sealed", template="verify", created_at=NOW)
    return replace(mail, **fields)


def a_composer(clock: Clock) -> Composer:
    return Composer(sealer=master_keys(), base_url=BASE_URL, clock=clock, brand=lambda: MailBrand("Gatehouse"))


def values_of(template: MailTemplate, **other: str) -> dict[str, str]:
    """The values the template needs, with those the test is about."""
    return {name: other.get(name, VALUES[name]) for name in template.needs}


def composed_mail(clock: Clock, template: MailTemplate = MailTemplate.VERIFY, to: str = TO) -> OutboxMail:
    return a_composer(clock).compose(template, to=to, lang="en", **values_of(template))


def a_message(
    clock: Clock, template: MailTemplate = MailTemplate.VERIFY, *, lang: str = "en", **other: str
) -> Message:
    return a_composer(clock).render(template, to=TO, lang=lang, **values_of(template, **other))


@dataclass(slots=True)
class QueuedMail:
    mail: OutboxMail
    next_try_at: int
    tries: int = 0
    trouble: str = ""


class OutboxInMemory:
    """An OutboxStore in memory."""

    def __init__(self, *mails: OutboxMail) -> None:
        self.queued = {mail.mail_id: QueuedMail(mail, mail.created_at) for mail in mails}
        self.leases: list[int] = []

    async def queue_mails(self, mails: Sequence[OutboxMail]) -> None:
        self.queued |= {mail.mail_id: QueuedMail(mail, mail.created_at) for mail in mails}

    async def claim_due(
        self, now: int, lease: int, limit: int, channel: Channel = Channel.EMAIL
    ) -> Sequence[ClaimedMail]:
        due = [
            queued_mail
            for queued_mail in self.queued.values()
            if 0 < queued_mail.next_try_at <= now and queued_mail.mail.channel is channel
        ]
        due = sorted(due, key=lambda queued_mail: queued_mail.next_try_at)[:limit]
        for queued_mail in due:
            queued_mail.next_try_at = now + lease
            queued_mail.tries += 1
        self.leases.append(lease)
        return [ClaimedMail(mail=queued_mail.mail, tries=queued_mail.tries) for queued_mail in due]

    async def delete_sent(self, mail_id: str) -> None:
        self.queued.pop(mail_id, None)

    async def record_failure(self, claim: ClaimedMail, trouble: str, next_try_at: int) -> None:
        queued_mail = self.queued[claim.mail.mail_id]
        if queued_mail.tries == claim.tries:
            queued_mail.trouble, queued_mail.next_try_at = trouble, next_try_at

    async def outbox_status(self, channel: Channel = Channel.EMAIL) -> OutboxStatus:
        of_channel = [queued_mail for queued_mail in self.queued.values() if queued_mail.mail.channel is channel]
        waiting = [queued_mail for queued_mail in of_channel if queued_mail.next_try_at]
        oldest = min(waiting, key=lambda queued_mail: queued_mail.mail.created_at, default=None)
        return OutboxStatus(
            waiting=len(waiting),
            given_up=len(of_channel) - len(waiting),
            oldest_at=oldest.mail.created_at if oldest else 0,
            trouble=oldest.trouble if oldest else "",
        )


@dataclass(slots=True)
class Mailbox:
    """What an SMTP server received; `answers` maps a recipient to the reply."""

    port: int = 0
    taken: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    connections: int = 0
    encrypted: bool = False
    signed_in: str = ""
    recipient_reply: Callable[[str], str] = lambda _: "250 OK"
    data_reply: str = "250 OK"

    async def handle_EHLO(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, session: Session, _envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        self.encrypted = session.ssl is not None
        return responses

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        answer = self.recipient_reply(address)
        if answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.data_reply.startswith("2"):
            assert isinstance(envelope.content, bytes)
            message = message_from_bytes(envelope.content, policy=modern)
            assert isinstance(message, EmailMessage)
            self.taken.append(message)
            self.recipients += envelope.rcpt_tos
            self.signed_in = str(session.auth_data or "")
        return self.data_reply

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, credentials: LoginPassword
    ) -> AuthResult:
        right = credentials.login == b"gatehouse" and credentials.password == b"of the mail server"
        return AuthResult(success=right, handled=False, auth_data=credentials.login.decode() if right else None)


@asynccontextmanager
async def mail_server(mailbox: Mailbox, *, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[int]:
    """Run a real SMTP server that delivers to the mailbox; yield its port."""
    loop = asyncio.get_running_loop()

    def smtp_protocol() -> SMTP:
        mailbox.connections += 1
        return SMTP(mailbox, hostname="mail.test", loop=loop, authenticator=mailbox.authenticate, **options)

    server = await loop.create_server(smtp_protocol, LOOPBACK, mailbox.port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def silent_server(accepted: asyncio.Event) -> AsyncIterator[int]:
    """Run a server that accepts connections and never responds; yield its port."""
    silence = asyncio.Event()

    async def listen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await silence.wait()
        writer.close()

    server = await asyncio.start_server(listen, LOOPBACK)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        silence.set()
        server.close()
        await server.wait_closed()


def refusing_port() -> int:
    """Return a port on which nothing listens."""
    return free_port()


def smtp_transport_to(port: int, *, tls: ssl.SSLContext | None = None, **fields: Any) -> SmtpTransport:
    server = SmtpServer(host=LOOPBACK, port=port, security=SmtpSecurity.NONE, timeout=5.0)
    return SmtpTransport(replace(server, **fields), SENDER, tls=tls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    server: ssl.SSLContext
    client: ssl.SSLContext  # trusts only that server


def certificates(directory: Path) -> Certificates:
    """A self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.test")])
    now = datetime.now(UTC)  # noqa: TID251 - OpenSSL uses the real clock
    certificate = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = directory / "mail.pem"
    file.write_bytes(private + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return Certificates(server=server, client=ssl.create_default_context(cadata=pem.decode()))
