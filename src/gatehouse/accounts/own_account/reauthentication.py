"""Reauthentication before an action that changes how a person signs in.

It asks for everything the sign-in asks for. Otherwise an attacker with the password and an open browser could
remove the second factor that protects against them. A code by text message is not accepted: numbers are taken over by
fraud (R11).
"""

from msgspec import Struct

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.own_account.model import (
    NothingToProve,
    OwnAccountStore,
    ReauthenticationClient,
    ReauthenticationInput,
    ReauthenticationMethods,
    SessionEnded,
)
from gatehouse.accounts.second_factors.model import Factor, enabled_factors
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.session_model import PASSWORD_PROOF, UserSession, passkey_proof
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret


class Reauthentication(Struct, kw_only=True, eq=False):
    store: OwnAccountStore
    sign_in: PasswordSignIn
    factors: SecondFactors
    passkeys: Passkeys
    recorder: Recorder
    clock: Clock

    async def methods_for(self, user: User) -> ReauthenticationMethods:
        offered = (await self.factors.load_factors(user)).accepted_factors
        factors = tuple(
            factor
            for factor in offered
            if factor is not Factor.PHONE and (factor is not Factor.PASSKEY or self.passkeys.are_supported)
        )
        return ReauthenticationMethods(
            password=user.password_hash is not None,
            factors=factors,
            lacks_factor=user.phone_code and not factors,
        )

    async def reauthenticate(
        self, signed_in: UserSession, proof: ReauthenticationInput, client: ReauthenticationClient
    ) -> str:
        """Return a new secret for the session's cookie, which replaces the old one (LG-01).

        Raises SignInRefused, SecondFactorWrong, PasskeyRefused or TooMany, counted as at sign-in; SessionEnded and
        NothingToProve.
        """
        auth, second_factor, proved = await self._verify(signed_in.user, proof, client)
        secret = new_secret()
        entry = self.recorder.record(
            AuditEvent.PROVED_AGAIN, client.origin, subject=signed_in.user.user_id, details={"auth": auth.value}
        )
        now = self.clock.now()
        renewed = await self.store.rotate_session_secret(
            signed_in.session.digest,
            sha256(secret),
            auth,
            entry,
            now,
            proved=signed_in.session.with_proofs(*proved),
            second_factor=second_factor,
        )
        if not renewed:
            raise SessionEnded
        return secret

    async def _verify(
        self, user: User, proof: ReauthenticationInput, client: ReauthenticationClient
    ) -> tuple[SignInMethod, str, list[str]]:
        """Return the method, the second factor that was used, if any, and what was proved."""
        if proof.credential:
            passkey = await self.passkeys.authenticate(
                proof.credential, browser=client.browser, origin=client.origin, user=user
            )
            return SignInMethod.PASSKEY, "", [passkey_proof(passkey.passkey_id)]
        second = bool(enabled_factors(user))
        if user.password_hash is None and not second:
            raise NothingToProve
        proved: list[str] = []
        if user.password_hash is not None:
            await self._verify_password(user, proof, client)
            proved.append(PASSWORD_PROOF)
        if not second:
            return SignInMethod.LOGIN, "", proved
        used = await self.factors.verify(user, proof.otp.strip(), origin=client.origin, device=client.device)
        return SignInMethod.TWO_STEP, "" if user.password_hash is None else used.value, [*proved, used.value]

    async def _verify_password(
        self, user: User, proof: ReauthenticationInput, client: ReauthenticationClient
    ) -> None:
        await self.sign_in.verify_owner(
            user,
            PasswordAttempt(password=proof.password, source=client.source, device_cookie=client.device_cookie),
        )
