"""Tokens of game clients: JWTs that a trusted issuer signed for the game (R10)."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.providers.model import Provider, TicketRefused, VerifiedTicket
from gatehouse.providers.openid_connect import OpenIdConnect, person_of, refuse_other_time
from gatehouse.tokens.verifier import LEEWAY

MAX_AGE: Final = 300  # seconds since the token was issued, whatever its own end


class JwtTickets(Struct, kw_only=True, eq=False):
    openid_connect: OpenIdConnect
    clock: Clock

    async def verify(self, provider: Provider, audiences: Sequence[str], ticket: str) -> VerifiedTicket:
        """Raises TicketRefused and ProviderUnavailable."""
        metadata = await self.openid_connect.metadata(provider)
        jws = await self.openid_connect.verified_token(provider, metadata, ticket)
        if jws.typ.upper() != "JWT":
            raise TicketRefused("the token is of another type, like an access token")
        refuse_unlisted_audience(provider, jws.payload, audiences)
        now = self.clock.now()
        refuse_other_time(jws.payload, now, max_age=MAX_AGE)
        refuse_early_use(jws.payload, now)
        return VerifiedTicket(
            person=person_of(provider, metadata, jws.payload, name=""),
            # What was signed: a signature has several spellings, and an ECDSA signature a second value.
            digest=sha256(b"jwt " + jws.signing_input),
            ends_at=now + MAX_AGE + 2 * LEEWAY,
        )


def refuse_unlisted_audience(provider: Provider, claims: Mapping[str, object], audiences: Sequence[str]) -> None:
    """Refuse a token that is not for the game alone: another audience has it too and could send it here.

    `azp` is not compared: at Google it is the Android client, and the audience the server.
    """
    audience = claims.get("aud")
    several = audience if isinstance(audience, list) else [audience]
    if not any(element in audiences for element in several):
        raise TicketRefused("the token is for another game")
    if len(several) > 1 and not provider.preset.allows_several_audiences:
        raise TicketRefused("the token has several audiences")


def refuse_early_use(claims: Mapping[str, object], now: int) -> None:
    starts = claims.get("nbf", 0)
    if not isinstance(starts, int) or starts > now + LEEWAY:
        raise TicketRefused("the token is not valid yet")
