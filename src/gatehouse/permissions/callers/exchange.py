"""exchangeJwt: a user JWT becomes one that is good for a single application (R6)."""

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import CallerIdentifier, refuse_other_factor
from gatehouse.permissions.callers.credentials import EXCHANGE_JWT, RequestCredentials
from gatehouse.tokens.claims import UserJwtClaims
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.signing import Signer
from gatehouse.tokens.sizes import without_long_perm


class JwtExchange:
    def __init__(self, *, caller_identifier: CallerIdentifier, signer: Signer, clock: Clock) -> None:
        self._caller_identifier = caller_identifier
        self._signer = signer
        self._clock = clock

    async def exchange(self, credentials: RequestCredentials) -> str:
        """Raises InvalidToken, WrongCredentials. The new JWT ends with the one it was made from."""
        if not credentials.access_key:
            raise InvalidToken("the Bearer token is not an access key")
        caller = await self._caller_identifier.identify(credentials, EXCHANGE_JWT)
        if not isinstance(caller.claims, UserJwtClaims) or caller.vouching_application_id is None:
            raise InvalidToken("not a user JWT")
        if credentials.factor:  # it counts here also beside a service JWT: `fac` goes along with it (R6)
            refuse_other_factor(caller.claims, credentials.factor)
        made = exchange_claims(
            caller.claims, caller.vouching_application_id, with_factor=bool(credentials.factor), now=self._clock.now()
        )
        return await self._signer.sign(made, keys_version=None if caller.facts is None else caller.facts.keys_version)


def exchange_claims(source: UserJwtClaims, application_id: int, *, with_factor: bool, now: int) -> UserJwtClaims:
    """`fac` goes along only when the factor was shown; permissions only when they are about this application."""
    about_it = source.app_perm == application_id
    claims = msgspec.structs.replace(
        source,
        iat=now,
        kid="",
        aud=str(application_id),
        fac=source.fac if with_factor else None,
        app_perm=source.app_perm if about_it else None,
        perm=source.perm if about_it else None,
        perm_exp=source.perm_exp if about_it else None,
        perm_omitted=source.perm_omitted and about_it,
    )
    return without_long_perm(claims)  # with its audience it is longer than its source
