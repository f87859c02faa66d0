"""Read the messages that a service has queued."""

import re
from typing import Final

import msgspec

from gatehouse.mail.model import Message, mail_sealing_purpose
from tests.support.service import RunningService

FOR_EVER: Final = 10**9
MAX_MESSAGES: Final = 1_000


async def new_messages(service: RunningService) -> list[Message]:
    """Return the messages queued since the last call."""
    services = service.services
    claims = await services.storage.mail.claim_due(service.clock.now(), FOR_EVER, MAX_MESSAGES)
    sealed = [claim.mail for claim in claims]
    return [
        msgspec.json.decode(
            services.core.masters.open(mail.sealed, purpose=mail_sealing_purpose(mail.mail_id)), type=Message
        )
        for mail in sealed
    ]


async def link_in_new_message(service: RunningService) -> str:
    """Return the link in the only new message, as a path of the service."""
    (message,) = await new_messages(service)
    return link_in_message(service, message)


def link_in_message(service: RunningService, message: Message) -> str:
    match = re.search(re.escape(service.base_url) + r"(/\S+)", message.text)
    assert match is not None, message.text
    return match.group(1)


def token_in_link(link: str) -> str:
    return link.partition("?token=")[2]
