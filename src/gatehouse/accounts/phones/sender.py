"""Delivery of text messages by one HTTPS call; the outbox worker retries what failed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from gatehouse.accounts.phones.message_call import MessageCall, SenderAccount, message_request
from gatehouse.mail.model import Message, OutboxMail, RecipientRefused, ServerUnusable, Undelivered
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed

SERVER_ERRORS: Final = 500
RETRIED: Final = frozenset({408, 425, 429})
NOT_ALLOWED: Final = frozenset({401, 402, 403})  # the account, not this message: all others fail, too


class TextMessageTransport(Struct, frozen=True, kw_only=True, eq=False):
    """The sender of the settings of now."""

    client: OutboundClient
    call: MessageCall
    account: SenderAccount

    @property
    def timeout(self) -> float:
        return self.client.timeout

    @asynccontextmanager
    async def open_session(self) -> AsyncIterator["TextMessageTransport"]:
        yield self

    async def deliver(self, mail: OutboxMail, content: Message) -> None:  # noqa: ARG002 - as every transport
        """Send one message. Errors name neither the number nor the text."""
        try:
            request = message_request(self.call, self.account, to=content.to, text=content.text)
            response = await self.client.post(request)
        except CallFailed as error:
            raise ServerUnusable(f"{type(error).__name__}: {error.detail}") from None
        except ValueError:
            raise ServerUnusable("the settings of the sender have characters that no request may contain") from None
        if response.is_success:
            return
        trouble = f"HTTP {response.status}"
        if response.status in NOT_ALLOWED:
            raise ServerUnusable(trouble)
        if response.status in RETRIED or response.status >= SERVER_ERRORS:
            raise Undelivered(trouble)
        raise RecipientRefused(trouble)
