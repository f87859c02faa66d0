"""exchangeJwt: returns a user JWT that is valid for a single application (R6)."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import refuse_other_factor
from gatehouse.permissions.authentication.credentials import EXCHANGE_JWT, RequestCredentials
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.tokens.claim_sizes import without_long_perm
from gatehouse.tokens.claims import InvalidToken, UserJwtClaims
from gatehouse.tokens.signer import Signer

FindRefusal: TypeAlias = Callable[[str, tuple[int, ...]], Awaitable[object]]


class JwtExchange:
    def __init__(
        self, *, authenticator: Authenticator, find_refusal: FindRefusal, signer: Signer, clock: Clock
    ) -> None:
        """`find_refusal`: why an application does not let a person sign in; None if it does."""
        self._authenticator = authenticator
        self._find_refusal = find_refusal
        self._signer = signer
        self._clock = clock

    async def exchange(self, credentials: RequestCredentials) -> str:
        """Exchange a user JWT; the new one ends with it. Raises InvalidToken, WrongCredentials."""
        if not credentials.access_key:
            raise InvalidToken("the Bearer token is not an access key")
        caller = await self._authenticator.identify(credentials, EXCHANGE_JWT)
        if not isinstance(caller.claims, UserJwtClaims) or caller.vouching_application_id is None:
            raise InvalidToken("not a user JWT")
        if credentials.factor:  # the factor counts here even with a service JWT, because `fac` is copied (R6)
            refuse_other_factor(caller.claims, credentials.factor)
        refusal = await self._find_refusal(caller.user_id, (caller.vouching_application_id,))
        if refusal is not None:  # the new JWT is a sign-in to the application (R10)
            raise WrongCredentials(f"the application does not let the person sign in: {refusal}")
        made = exchange_claims(
            caller.claims, caller.vouching_application_id, with_factor=bool(credentials.factor), now=self._clock.now()
        )
        return await self._signer.sign(made, keys_version=None if caller.facts is None else caller.facts.keys_version)


def exchange_claims(source: UserJwtClaims, application_id: int, *, with_factor: bool, now: int) -> UserJwtClaims:
    """Return the new claims.

    `fac` only if the factor was sent, permissions only if they are about this application.
    """
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
    return without_long_perm(claims)  # with its audience the new JWT is longer than the old one
