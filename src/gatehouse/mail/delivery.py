"""Who carries letters out of the house: an SMTP server, or the terminal of whoever develops.

Every step has a deadline, also against a server that accepts and never answers (faults R-27).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from enum import StrEnum
from typing import Any, Final, Protocol

import aiosmtplib

from gatehouse.mail.model import Message, OutboxMail, RecipientRefused, ServerUnusable, Undelivered

PERMANENT_FAILURE: Final = 500  # SMTP replies from here on say: never (RFC 5321 §4.2.1)
MAX_ERROR_LENGTH: Final = 200  # characters
# An SMTPResponseException is the server's word about one letter; whatever else happens is about the connection.
CONNECTION_ERRORS: Final = (aiosmtplib.SMTPException, OSError, TimeoutError)


class DeliverySession(Protocol):
    async def deliver(self, mail: OutboxMail, content: Message) -> None:
        """Have the letter taken. Raises RecipientRefused, ServerUnusable, or Undelivered for anything else."""


class MailTransport(Protocol):
    @property
    def timeout(self) -> float:
        """Seconds that getting ready, or one letter, takes at most."""

    def open_session(self) -> AbstractAsyncContextManager[DeliverySession]:
        """Get ready for any number of letters. Raises ServerUnusable."""


class SmtpSecurity(StrEnum):
    STARTTLS = "starttls"  # and nothing is sent to a server that does not offer it
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    address: str
    name: str

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    host: str
    port: int
    security: SmtpSecurity
    timeout: float
    username: str = ""
    password: str = field(default="", repr=False)


class SmtpTransport:
    def __init__(self, server: SmtpServer, sender: Sender, *, tls: ssl.SSLContext | None = None) -> None:
        """`tls` says whom to trust, if not the authorities this machine trusts."""
        self._server = server
        self._sender = sender
        self._tls = tls or ssl.create_default_context()

    @property
    def timeout(self) -> float:
        return self._server.timeout

    @asynccontextmanager
    async def open_session(self) -> AsyncIterator[DeliverySession]:
        connection = self._connection()
        try:
            await self._connect(connection)
            yield SmtpSession(connection, self._sender, self.timeout)
            await self._quit(connection)
        finally:
            connection.close()

    def _connection(self) -> aiosmtplib.SMTP:
        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            timeout=server.timeout,
            username=server.username or None,
            password=server.password or None,
            use_tls=server.security is SmtpSecurity.TLS,
            start_tls=server.security is SmtpSecurity.STARTTLS,
            tls_context=self._tls,
            local_hostname=self._sender.domain,  # else the library asks DNS for our own name, and waits
        )

    async def _connect(self, connection: aiosmtplib.SMTP) -> None:
        try:
            await run_with_deadline(self.timeout, connection.connect())
        except CONNECTION_ERRORS as error:
            raise ServerUnusable(f"{self._server.host}:{self._server.port}: {error_text(error)}") from error

    async def _quit(self, connection: aiosmtplib.SMTP) -> None:
        """Say goodbye; everything was taken already, so it does not matter how that goes."""
        try:
            await run_with_deadline(self.timeout, connection.quit())
        except CONNECTION_ERRORS:
            return


class SmtpSession:
    def __init__(self, connection: aiosmtplib.SMTP, sender: Sender, timeout: float) -> None:
        self._connection = connection
        self._sender = sender
        self._timeout = timeout

    async def deliver(self, mail: OutboxMail, content: Message) -> None:
        try:
            message = to_email_message(mail, content, self._sender)
            sending = self._connection.send_message(message, sender=self._sender.address, recipients=[content.to])
            await run_with_deadline(self._timeout, sending)
        except aiosmtplib.SMTPRecipientsRefused as refused:
            word = refused.recipients[0]
            kind = RecipientRefused if word.code >= PERMANENT_FAILURE else Undelivered
            raise kind(error_text(word, redacted=content.to)) from refused
        except (aiosmtplib.SMTPNotSupported, ValueError) as error:  # an address in letters the server does not know
            raise RecipientRefused(error_text(error, redacted=content.to)) from error
        except aiosmtplib.SMTPResponseException as error:
            raise Undelivered(error_text(error, redacted=content.to)) from error
        except CONNECTION_ERRORS as error:
            raise ServerUnusable(error_text(error, redacted=content.to)) from error


class PrintingTransport:
    """For development without a mail server: whoever started the service reads the mail."""

    timeout: Final = 1.0

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show

    @asynccontextmanager
    async def open_session(self) -> AsyncIterator[DeliverySession]:
        yield self

    async def deliver(self, mail: OutboxMail, content: Message) -> None:
        line = "-" * 72
        self._show(f"{line}\nEmail ({mail.template}) to {content.to}: {content.subject}\n\n{content.text}\n{line}")


async def run_with_deadline(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Wait for the library no longer than that, and not at all once this task is cancelled.

    In a task of its own: the `asyncio.wait_for` inside the library can swallow a cancellation (Python 3.11), which
    then would be neither a deadline nor the end of the service. Whoever gives up waiting closes the connection.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody asks any more
            task.cancel()
    if not done:
        raise TimeoutError
    await task


def to_email_message(mail: OutboxMail, content: Message, sender: Sender) -> EmailMessage:
    message = EmailMessage(policy=SMTP_POLICY)  # which refuses a line break in a header
    message["From"] = Address(sender.name, addr_spec=sender.address)
    message["To"] = content.to
    message["Subject"] = content.subject
    message["Date"] = datetime.fromtimestamp(mail.created_at, UTC)
    message["Message-ID"] = f"<{mail.mail_id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # no out-of-office answers, please (RFC 3834 §5)
    message.set_content(content.text)
    message.add_alternative(content.html, subtype="html")
    message["Content-Language"] = content.lang  # last: earlier it would become the text's alone
    return message


def error_text(error: Exception, *, redacted: str = "") -> str:
    """What went wrong in a line for the operator; servers like to repeat the recipient, whom it does not name."""
    words = f"{error.code} {error.message}" if isinstance(error, aiosmtplib.SMTPResponseException) else str(error)
    line = " ".join(words.split()) or "timeout"  # asyncio's TimeoutError has no words
    return (line.replace(redacted, "(recipient)") if redacted else line)[:MAX_ERROR_LENGTH]
