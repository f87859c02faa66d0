"""Delivery of emails: what the worker needs of a mail server (smtp.py), and the terminal during development."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.mail.model import Channel, Message, OutboxMail


class DeliverySession(Protocol):
    async def deliver(self, mail: OutboxMail, content: Message) -> None:
        """Deliver the email. Raises RecipientRefused, ServerUnusable, or Undelivered for other failures."""


class MailTransport(Protocol):
    @property
    def timeout(self) -> float:
        """The maximum seconds for opening a session, and for one email."""

    def open_session(self) -> AbstractAsyncContextManager[DeliverySession]:
        """Open a session for any number of emails. Raises ServerUnusable."""


class SmtpSecurity(StrEnum):
    STARTTLS = "starttls"  # required: a server without it gets nothing
    TLS = "tls"
    NONE = "none"


class Sender(Struct, frozen=True, kw_only=True):
    address: str
    name: str

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


class SmtpServer(SecretRecord, frozen=True, kw_only=True):
    host: str
    port: int
    security: SmtpSecurity
    timeout: float
    username: str = ""
    password: SecretText = ""


class PrintingTransport:
    """Prints messages to the terminal, for development without a server that sends them."""

    timeout: Final = 1.0

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show

    @asynccontextmanager
    async def open_session(self) -> AsyncIterator[DeliverySession]:
        yield self

    async def deliver(self, mail: OutboxMail, content: Message) -> None:
        line = "-" * 72
        kind = "Email" if mail.channel is Channel.EMAIL else "Text message"
        subject = f": {content.subject}" if content.subject else ""
        self._show(f"{line}\n{kind} ({mail.template}) to {content.to}{subject}\n\n{content.text}\n{line}")
