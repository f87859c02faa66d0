"""Steam tickets of a game client, verified by Steam's Web API with the publisher's key.

https://partner.steamgames.com/doc/webapi/ISteamUserAuth and https://partner.steamgames.com/doc/webapi/ISteamUser.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from msgspec import Struct

from gatehouse.accounts.identities import ForeignPerson
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.outbound.model import OutboundResponse
from gatehouse.providers.answers import ProviderCalls, object_in, text_in
from gatehouse.providers.model import Provider, ProviderUnavailable, TicketRefused, VerifiedTicket
from gatehouse.providers.steam import STEAM_ID

STEAM: Final = "https://steamcommunity.com"
STEAM_WEB_API: Final = "https://partner.steam-api.com"
TICKET: Final = re.compile(r"([0-9a-f]{2}){16,4096}", re.ASCII)
# The parts of an auth session ticket, each after its length: game connect token, session header, proof of ownership.
TOKEN_BYTES: Final = 20
HEADER_BYTES: Final = 24
LENGTH_BYTES: Final = 4  # of each length, little-endian
OTHER_APP: Final = 102  # errorcode: "Ticket for other app"
BAD_REQUEST: Final = 400
# Steam does not say when a ticket was made (docs/decisions/0046): it works until the client cancels it or is offline.
DIGEST_SECONDS: Final = 30 * 86_400


class SteamTickets(Struct, kw_only=True, eq=False):
    calls: ProviderCalls
    clock: Clock

    async def verify(self, provider: Provider, app_ids: Sequence[str], ticket: str) -> VerifiedTicket:
        """Ask Steam whose ticket it is, for one of these apps, and whether they own the app.

        Raises TicketRefused and ProviderUnavailable.
        """
        spelling = ticket.lower()
        if not TICKET.fullmatch(spelling):
            raise TicketRefused("the ticket is not hexadecimal")
        steam_ticket = read_ticket(bytes.fromhex(spelling))
        for app_id in app_ids:
            params = await self._authenticate(provider, app_id, steam_ticket.ticket.hex())
            if params is not None:
                return VerifiedTicket(
                    person=await self._person(provider, app_id, params),
                    digest=sha256(b"steam " + steam_ticket.single_use_part),
                    ends_at=self.clock.now() + DIGEST_SECONDS,
                )
        raise TicketRefused("the ticket is for another app")

    async def _authenticate(self, provider: Provider, app_id: str, ticket: str) -> Mapping[str, object] | None:
        """Return what Steam says about the owner of the ticket; None if it is for another app."""
        answer = await self._ask(
            provider,
            "ISteamUserAuth/AuthenticateUserTicket/v1",
            {"appid": app_id, "ticket": ticket, "identity": provider.ticket_identity},
        )
        if answer.status == BAD_REQUEST:
            raise TicketRefused("Steam cannot read the ticket")
        return ticket_params(content_of(answer))

    async def _person(self, provider: Provider, app_id: str, params: Mapping[str, object]) -> ForeignPerson:
        steam_id = text_in(params, "steamid")
        return ForeignPerson(
            issuer=f"{provider.issuer}/openid",  # the same person as in the browser
            subject=steam_id,
            claims=params,
            purchases={purchase_of_app(app_id): await self._owns(provider, app_id, steam_id)},
        )

    async def _owns(self, provider: Provider, app_id: str, steam_id: str) -> bool:
        answer = await self._ask(provider, "ISteamUser/CheckAppOwnership/v4", {"steamid": steam_id, "appid": app_id})
        return is_bought(content_of(answer), steam_id)

    async def _ask(self, provider: Provider, method: str, fields: Mapping[str, str]) -> OutboundResponse:
        base = STEAM_WEB_API if provider.issuer == STEAM else provider.issuer
        url = f"{base}/{method}/?{urlencode(fields)}"
        return await self.calls.get_response(url, headers={"x-webapi-key": provider.publisher_key})


def purchase_of_app(app_id: str) -> str:
    return f"steam:{app_id}"


class SteamTicketParts(NamedTuple):
    ticket: bytes  # without padding
    single_use_part: bytes


def read_ticket(buffer: bytes) -> SteamTicketParts:
    """Return a ticket, and the game connect token in it, which Steam issued once.

    What follows the parts is padding, with any content: it must not make a used ticket look new. An unknown layout is
    sent as it is and used once as a whole.
    """
    token = part_at(buffer, 0)
    header = part_at(buffer, LENGTH_BYTES + TOKEN_BYTES)
    ownership_at = 2 * LENGTH_BYTES + TOKEN_BYTES + HEADER_BYTES
    ownership = part_at(buffer, ownership_at)
    if (len(token), len(header)) != (TOKEN_BYTES, HEADER_BYTES) or not ownership:
        return SteamTicketParts(buffer, buffer.rstrip(b"\0"))
    return SteamTicketParts(buffer[: ownership_at + LENGTH_BYTES + len(ownership)], token)


def part_at(buffer: bytes, start: int) -> bytes:
    """Read a part that begins with its length; empty if the buffer ends first."""
    begin = start + LENGTH_BYTES
    end = begin + int.from_bytes(buffer[start:begin], "little")
    return buffer[begin:end] if end <= len(buffer) else b""


def content_of(answer: OutboundResponse) -> Mapping[str, object]:
    """Return the JSON object of a successful answer. Raises ProviderUnavailable: 403 if the key is wrong."""
    if not answer.is_success:
        raise ProviderUnavailable(f"Steam answered {answer.status}")
    return object_in(answer, "Steam")


def ticket_params(content: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return what Steam says about the owner of a ticket; None if it is for another app. Raises ProviderProblem."""
    response = member(content, "response")
    error = member(response, "error")
    if error.get("errorcode") == OTHER_APP:
        return None
    if error:
        raise TicketRefused(f"Steam answered error {error.get('errorcode')!r:.20}")
    params = member(response, "params")
    if params.get("result") != "OK" or not STEAM_ID.fullmatch(text_in(params, "steamid")):
        raise ProviderUnavailable("Steam answered neither a SteamID nor an error")
    return params


def is_bought(content: Mapping[str, object], steam_id: str) -> bool:
    """Whether the person bought the app; a borrowed copy and a free weekend do not count."""
    ownership = member(content, "appownership")
    if "ownsapp" not in ownership:
        raise ProviderUnavailable("Steam did not say who owns the app")
    is_owner = str(ownership.get("ownersteamid", "")) == steam_id
    return is_owner and ownership["ownsapp"] is True and ownership.get("permanent") is True


def member(values: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a member that is an object, else an empty one."""
    content = values.get(name)
    return content if isinstance(content, dict) else {}
