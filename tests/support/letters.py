"""The mailbox of everyone a service writes to."""

import re
from typing import Final

import msgspec

from gatehouse.mail.model import Letter, purpose_of
from tests.support.service import Service

FOR_EVER: Final = 10**9
MOST: Final = 1_000


async def new_letters(service: Service) -> list[Letter]:
    """What has been put into the outbox since the last look."""
    house = service.house
    claims = await house.storage.mail.claim(service.clock.now(), FOR_EVER, MOST)
    sealed = [claim.mail for claim in claims]
    return [
        msgspec.json.decode(house.masters.open(mail.sealed, purpose=purpose_of(mail.mail_id)), type=Letter)
        for mail in sealed
    ]


async def mailed_link(service: Service) -> str:
    """The link in the one letter since the last look, as a path of the service."""
    (letter,) = await new_letters(service)
    found = re.search(re.escape(service.base_url) + r"(/\S+)", letter.text)
    assert found is not None, letter.text
    return found.group(1)


def token_in(link: str) -> str:
    return link.partition("?token=")[2]
