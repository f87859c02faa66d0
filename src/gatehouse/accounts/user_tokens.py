"""The user JWT of an account (R2)."""

import secrets
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from gatehouse.accounts.errors import UserBlocked
from gatehouse.accounts.model import User
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.tokens.claim_sizes import tag_claims, without_long_perm
from gatehouse.tokens.claims import AuthMethod, PermissionClaims, UserJwtClaims, factor_digest, location_digest
from gatehouse.tokens.signer import Signer

SALT_BYTES = 16


class UserTokens(Struct, kw_only=True, eq=False):
    store: AccountStore
    signer: Signer
    recorder: Recorder
    clock: Clock
    issuer: str
    lifetime: Callable[[], int]

    async def issue_recorded(
        self, user_id: str, *, factor: str, origin: AuditOrigin, seconds: int | None = None
    ) -> str:
        """Issue a JWT without a sign-in, for an operator or a signed-in person; recorded before it is signed.

        `seconds`: how long it lives, if not as long as the settings say.
        """
        user = await self.store.user(user_id)
        if user.blocked:
            raise UserBlocked(f"user {user_id} is blocked")
        record = self.recorder.record(AuditEvent.USER_TOKEN_MADE, origin, subject=user_id)
        await self.store.add_record(record)
        claims = self.build_claims(user, auth="login", factor=factor)
        if seconds is not None:
            claims = msgspec.structs.replace(claims, exp=claims.iat + seconds)
        return await self.signer.sign(claims)

    async def issue(
        self,
        user: User,
        *,
        auth: AuthMethod,
        factor: str | None,
        jwt_public_key: str | None = None,
        fixed_ips: Sequence[str] = (),
        permissions: PermissionClaims | None = None,
    ) -> str:
        """Sign a JWT for a user who has just authenticated; the caller has recorded it."""
        claims = self.build_claims(
            user,
            auth=auth,
            factor=factor,
            jwt_public_key=jwt_public_key,
            fixed_ips=fixed_ips,
            permissions=permissions,
        )
        return await self.signer.sign(claims)

    def build_claims(
        self,
        user: User,
        *,
        auth: AuthMethod,
        factor: str | None,
        jwt_public_key: str | None = None,
        fixed_ips: Sequence[str] = (),
        permissions: PermissionClaims | None = None,
    ) -> UserJwtClaims:
        """Return the claims of a new JWT; without a factor there is no `fac`, and no factor check ever passes."""
        slt = secrets.token_urlsafe(SALT_BYTES)
        now = self.clock.now()
        claims = UserJwtClaims(
            iss=self.issuer,
            iat=now,
            exp=now + self.lifetime(),
            uid=user.user_id,
            sub=user.user_id,
            nick=user.nick,
            auth=auth,
            slt=slt,
            fac=None if factor is None else factor_digest(factor, slt),
            loc=location_digest(user.country, slt),
            **tag_claims(user.tag_text),
            cntry=user.country,
            lng=user.lang,
            rev=user.rev,
            pub_key=jwt_public_key,
            fip=tuple(fixed_ips) or None,
            app_perm=None if permissions is None else permissions.application_id,
            perm=None if permissions is None else permissions.entries,
            perm_exp=None if permissions is None else permissions.ends_at,
        )
        return without_long_perm(claims)
