"""Delivery to an SMTP server; imported where one is configured.

Every step has a deadline, also against a server that accepts and never responds (faults R-27).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from typing import Any, Final

import aiosmtplib

from gatehouse.mail.delivery import DeliverySession, Sender, SmtpSecurity, SmtpServer
from gatehouse.mail.model import Message, OutboxMail, RecipientRefused, ServerUnusable, Undelivered

PERMANENT_FAILURE: Final = 500  # SMTP replies from here on are permanent (RFC 5321 §4.2.1)
MAX_ERROR_LENGTH: Final = 200  # characters
# An SMTPResponseException is about one email; every other error is about the connection.
CONNECTION_ERRORS: Final = (aiosmtplib.SMTPException, OSError, TimeoutError)


class SmtpTransport:
    def __init__(self, server: SmtpServer, sender: Sender, *, tls: ssl.SSLContext | None = None) -> None:
        """`tls` replaces the certificate authorities this machine trusts."""
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

    async def certificate_end(self) -> int | None:
        """Connect and sign in; return when the server's certificate ends, None without TLS. Raises ServerUnusable."""
        connection = self._connection()
        try:
            await self._connect(connection)
            certificate = connection.get_transport_info("peercert")
            await self._quit(connection)
        finally:
            connection.close()
        return ssl.cert_time_to_seconds(str(certificate["notAfter"])) if certificate else None

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
            local_hostname=self._sender.domain,  # otherwise the library blocks on a DNS lookup of our name
        )

    async def _connect(self, connection: aiosmtplib.SMTP) -> None:
        try:
            await run_with_deadline(self.timeout, connection.connect())
        except CONNECTION_ERRORS as error:
            cause = (
                error.__cause__ if isinstance(error.__cause__, OSError) else error
            )  # the library repeats the address
            hint = security_hint(self._server.security, cause)
            raise ServerUnusable(f"{self._server.host}:{self._server.port}: {error_text(cause)}{hint}") from error

    async def _quit(self, connection: aiosmtplib.SMTP) -> None:
        """End the session and ignore errors: everything was accepted already."""
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
        except (aiosmtplib.SMTPNotSupported, ValueError) as error:  # the server does not support the address
            raise RecipientRefused(error_text(error, redacted=content.to)) from error
        except aiosmtplib.SMTPResponseException as error:
            raise Undelivered(error_text(error, redacted=content.to)) from error
        except CONNECTION_ERRORS as error:
            raise ServerUnusable(error_text(error, redacted=content.to)) from error


async def run_with_deadline(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Wait for the library at most that long, and stop at once when this task is canceled.

    The work runs in its own task, because the `asyncio.wait_for` inside the library can swallow a cancellation
    (Python 3.11). The caller closes the connection after a timeout.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # marked as retrieved
            task.cancel()
    if not done:
        raise TimeoutError
    await task


def to_email_message(mail: OutboxMail, content: Message, sender: Sender) -> EmailMessage:
    message = EmailMessage(policy=SMTP_POLICY)  # rejects line breaks in headers
    message["From"] = Address(sender.name, addr_spec=sender.address)
    message["To"] = content.to
    message["Subject"] = content.subject
    message["Date"] = datetime.fromtimestamp(mail.created_at, UTC)
    message["Message-ID"] = f"<{mail.mail_id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # suppresses out-of-office replies (RFC 3834 §5)
    message.set_content(content.text)
    message.add_alternative(content.html, subtype="html")
    message["Content-Language"] = content.lang  # last: earlier it would apply to the text part only
    return message


def security_hint(security: SmtpSecurity, error: Exception) -> str:
    """Name the setting to try if the server uses TLS in the other way: a common mistake that the error hides."""
    if (
        security is SmtpSecurity.TLS
        and isinstance(error, ssl.SSLError)
        and not isinstance(error, ssl.CertificateError)
    ):
        return "; if this port does not start with TLS, set mail.security to starttls"
    if security is SmtpSecurity.STARTTLS and isinstance(error, TimeoutError):
        return "; if this port starts with TLS, set mail.security to tls"
    return ""


def error_text(error: Exception, *, redacted: str = "") -> str:
    """Return the error as one line for the operator, without the recipient's address."""
    words = f"{error.code} {error.message}" if isinstance(error, aiosmtplib.SMTPResponseException) else str(error)
    line = " ".join(words.split()) or "timeout"  # asyncio's TimeoutError has no message
    return (line.replace(redacted, "(recipient)") if redacted else line)[:MAX_ERROR_LENGTH]
