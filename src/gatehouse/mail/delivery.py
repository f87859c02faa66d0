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

from gatehouse.mail.errors import RecipientRefused, ServerUnusable, Undelivered
from gatehouse.mail.model import Letter, Mail

PERMANENT: Final = 500  # SMTP replies from here on say: never (RFC 5321 §4.2.1)
TROUBLE_LONGEST: Final = 200  # characters
# An SMTPResponseException is the server's word about one letter; whatever else happens is about the connection.
BROKEN: Final = (aiosmtplib.SMTPException, OSError, TimeoutError)


class Courier(Protocol):
    async def deliver(self, mail: Mail, letter: Letter) -> None:
        """Have the letter taken. Raises RecipientRefused, ServerUnusable, or Undelivered for anything else."""


class Carrier(Protocol):
    @property
    def patience(self) -> float:
        """Seconds that getting ready, or one letter, takes at most."""

    def round(self) -> AbstractAsyncContextManager[Courier]:
        """Get ready for any number of letters. Raises ServerUnusable."""


class Security(StrEnum):
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
    security: Security
    timeout: float
    username: str = ""
    password: str = field(default="", repr=False)


class SmtpCarrier:
    def __init__(self, server: SmtpServer, sender: Sender, *, tls: ssl.SSLContext | None = None) -> None:
        """`tls` says whom to trust, if not the authorities this machine trusts."""
        self._server = server
        self._sender = sender
        self._tls = tls or ssl.create_default_context()

    @property
    def patience(self) -> float:
        return self._server.timeout

    @asynccontextmanager
    async def round(self) -> AsyncIterator[Courier]:
        connection = self._connection()
        try:
            await self._connect(connection)
            yield SmtpCourier(connection, self._sender, self.patience)
            await self._leave(connection)
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
            use_tls=server.security is Security.TLS,
            start_tls=server.security is Security.STARTTLS,
            tls_context=self._tls,
            local_hostname=self._sender.domain,  # else the library asks DNS for our own name, and waits
        )

    async def _connect(self, connection: aiosmtplib.SMTP) -> None:
        try:
            await within(self.patience, connection.connect())
        except BROKEN as error:
            raise ServerUnusable(f"{self._server.host}:{self._server.port}: {told(error)}") from error

    async def _leave(self, connection: aiosmtplib.SMTP) -> None:
        """Say goodbye; everything was taken already, so it does not matter how that goes."""
        try:
            await within(self.patience, connection.quit())
        except BROKEN:
            return


class SmtpCourier:
    def __init__(self, connection: aiosmtplib.SMTP, sender: Sender, patience: float) -> None:
        self._connection = connection
        self._sender = sender
        self._patience = patience

    async def deliver(self, mail: Mail, letter: Letter) -> None:
        try:
            message = as_message(mail, letter, self._sender)
            sending = self._connection.send_message(message, sender=self._sender.address, recipients=[letter.to])
            await within(self._patience, sending)
        except aiosmtplib.SMTPRecipientsRefused as refused:
            word = refused.recipients[0]
            kind = RecipientRefused if word.code >= PERMANENT else Undelivered
            raise kind(told(word, hiding=letter.to)) from refused
        except (aiosmtplib.SMTPNotSupported, ValueError) as error:  # an address in letters the server does not know
            raise RecipientRefused(told(error, hiding=letter.to)) from error
        except aiosmtplib.SMTPResponseException as error:
            raise Undelivered(told(error, hiding=letter.to)) from error
        except BROKEN as error:
            raise ServerUnusable(told(error, hiding=letter.to)) from error


class PrintingCarrier:
    """For development without a mail server: whoever started the service reads the mail."""

    patience: Final = 1.0

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show

    @asynccontextmanager
    async def round(self) -> AsyncIterator[Courier]:
        yield self

    async def deliver(self, mail: Mail, letter: Letter) -> None:
        line = "-" * 72
        self._show(f"{line}\nEmail ({mail.template}) to {letter.to}: {letter.subject}\n\n{letter.text}\n{line}")


async def within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
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


def as_message(mail: Mail, letter: Letter, sender: Sender) -> EmailMessage:
    message = EmailMessage(policy=SMTP_POLICY)  # which refuses a line break in a header
    message["From"] = Address(sender.name, addr_spec=sender.address)
    message["To"] = letter.to
    message["Subject"] = letter.subject
    message["Date"] = datetime.fromtimestamp(mail.created_at, UTC)
    message["Message-ID"] = f"<{mail.mail_id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # no out-of-office answers, please (RFC 3834 §5)
    message.set_content(letter.text)
    message.add_alternative(letter.html, subtype="html")
    message["Content-Language"] = letter.lang  # last: earlier it would become the text's alone
    return message


def told(error: Exception, *, hiding: str = "") -> str:
    """What went wrong in a line for the operator; servers like to repeat the recipient, whom it does not name."""
    words = f"{error.code} {error.message}" if isinstance(error, aiosmtplib.SMTPResponseException) else str(error)
    line = " ".join(words.split()) or "timeout"  # asyncio's TimeoutError has no words
    return (line.replace(hiding, "(recipient)") if hiding else line)[:TROUBLE_LONGEST]
