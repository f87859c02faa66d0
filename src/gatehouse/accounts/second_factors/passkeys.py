"""Passkeys, as a second factor and as a complete sign-in.

The WebAuthn ceremonies (ceremony.py) are imported with the first passkey.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from gatehouse.accounts.model import EnabledMethods, User
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.model import (
    BadPasskeyName,
    EmailNotVerified,
    Factor,
    FactorMissing,
    Passkey,
    PasskeyRefused,
    PasskeyStore,
    PasskeyUnknown,
)
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.second_factors.passkey_signals import (
    account_signals,
    deleted_account_signal,
    unknown_passkey_signal,
)
from gatehouse.accounts.second_factors.webauthn import (
    CHALLENGE_LIFETIME,
    RelyingParty,
    UnverifiedResponse,
    WebAuthnCeremony,
)
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.text import is_plain_line, nfc
from gatehouse.keys.encoding import decode_base64url


async def load_ceremony(party: RelyingParty) -> WebAuthnCeremony:
    """Import the library off the event loop and return the ceremony."""
    return await asyncio.to_thread(build_ceremony, party)


def build_ceremony(party: RelyingParty) -> WebAuthnCeremony:
    # The library takes a megabyte and 50 ms of CPU, and many servers never see a passkey.
    from gatehouse.accounts.second_factors.ceremony import WebAuthn  # noqa: PLC0415

    return WebAuthn(party)


CHALLENGE_BYTES: Final = 32
MAX_PASSKEY_NAME_LENGTH: Final = 64
REGISTRATION_CHALLENGE: Final = "passkey-register"  # kinds of challenges
SIGN_IN_CHALLENGE: Final = "passkey-sign-in"


class Passkeys:
    """`browser` is a digest of a secret that only this browser has, so that no other one answers its challenges."""

    def __init__(
        self,
        *,
        store: PasskeyStore,
        party: Callable[[], RelyingParty],
        recovery: RecoveryCodes,
        notifier: AccountNotifier,
        clock: Clock,
        methods: Callable[[], EnabledMethods],
    ) -> None:
        """`methods` returns what people can sign in with now."""
        self._methods = methods
        self._store = store
        self._party = party
        self._recovery = recovery
        self._notifier = notifier
        self._clock = clock
        self.outcomes: Counter[tuple[str, ...]] = Counter()  # factor and result, for the metrics of this process

    @property
    def are_supported(self) -> bool:
        return self._party().supports_passkeys

    @property
    def related_origins(self) -> tuple[str, ...]:
        """The origins that /.well-known/webauthn of the passkeys' host names."""
        return self._party().related_origins if self.are_supported else ()

    def signals_about(self, user: User, passkeys: Sequence[Passkey]) -> str:
        """Return what the account page tells passkey managers."""
        return account_signals(self._party().rp_id, user, passkeys) if self.are_supported else ""

    def signal_of_deletion(self, user_id: str) -> str:
        """Return what the page after the deletion of an account tells passkey managers."""
        return deleted_account_signal(self._party().rp_id, user_id) if self.are_supported else ""

    def signal_after(self, refused: Exception | None) -> str:
        """Return what the page of a refused sign-in tells passkey managers: that no account has the passkey."""
        if not isinstance(refused, PasskeyUnknown):
            return ""
        return unknown_passkey_signal(self._party().rp_id, refused.credential_id)

    async def registration_options(self, user: User, *, browser: bytes) -> str:
        """Return PublicKeyCredentialCreationOptions as JSON. Raises EmailNotVerified."""
        if not user.may_add_factors:
            raise EmailNotVerified
        passkeys = await self._store.passkeys_of_user(user.user_id)
        challenge = await self._new_challenge(REGISTRATION_CHALLENGE, browser, user)
        ceremony = await load_ceremony(self._party())
        return ceremony.registration_options(user, challenge, passkeys)

    async def register(
        self, user: User, credential: str, *, name: str, browser: bytes, origin: AuditOrigin, device: str = ""
    ) -> tuple[str, ...]:
        """Store the browser's new credential and return recovery codes to show, if the account had none left.

        Raises PasskeyRefused, PasskeyTaken, TooManyPasskeys, BadPasskeyName.
        """
        checked_name = check_passkey_name(name)
        ceremony = await load_ceremony(self._party())
        claim = ceremony.parse_registration(credential)
        await self._take_challenge(REGISTRATION_CHALLENGE, claim.challenge, browser, user)
        made = ceremony.verify_registration(claim)
        passkey = Passkey(
            credential_id=made.credential_id,
            user_id=user.user_id,
            public_key=made.public_key,
            sign_count=made.sign_count,
            name=checked_name,
            transports=made.transports,
            created_at=self._clock.now(),
        )
        codes = self._recovery.generate(user)
        entry, mails = self._notifier.factor_added(Factor.PASSKEY, user, origin, device)
        stores_codes = await self._store.add_passkey(passkey, codes.digests, entry, mails, host=self._party().rp_id)
        return codes.codes if stores_codes else ()

    async def sign_in_options(self, *, browser: bytes, user: User | None = None) -> str:
        """Return PublicKeyCredentialRequestOptions as JSON, for that account's passkeys or for any passkey."""
        allowed = () if user is None else await self._store.passkeys_of_user(user.user_id)
        challenge = await self._new_challenge(SIGN_IN_CHALLENGE, browser, user)
        ceremony = await load_ceremony(self._party())
        return ceremony.sign_in_options(challenge, allowed)

    async def authenticate(
        self, credential: str, *, browser: bytes, origin: AuditOrigin, user: User | None = None
    ) -> Passkey:
        """Return the verified passkey, which names its account. Raises PasskeyRefused.

        With `user` it is a second factor and must be that account's. The caller checks whether the account may sign
        in.
        """
        try:
            passkey = await self._authenticate(credential, browser, origin, user)
        except PasskeyRefused:
            self.outcomes[Factor.PASSKEY.value, "refused"] += 1
            raise
        self.outcomes[Factor.PASSKEY.value, "success"] += 1
        return passkey

    async def _authenticate(self, credential: str, browser: bytes, origin: AuditOrigin, user: User | None) -> Passkey:
        ceremony = await load_ceremony(self._party())
        claim = ceremony.parse_sign_in(credential)
        await self._take_challenge(SIGN_IN_CHALLENGE, claim.challenge, browser, user)
        passkey = await self._find_owned(claim, user)
        count = ceremony.verify_sign_in(claim, passkey.public_key)
        suspicion = self._notifier.recorder.record(
            AuditEvent.PASSKEY_SUSPECTED,
            origin,
            subject=passkey.user_id,
            details={"passkey": passkey.passkey_id, "counter": count, "was": passkey.sign_count},
        )
        if not await self._store.use_passkey(passkey.credential_id, count, suspicion, self._clock.now()):
            raise PasskeyRefused(f"counter {count} after {passkey.sign_count}: the passkey may have been cloned")
        return passkey

    async def of_user(self, user_id: str) -> Sequence[Passkey]:
        return await self._store.passkeys_of_user(user_id)

    async def rename(self, user: User, passkey_id: str, name: str, *, origin: AuditOrigin) -> None:
        entry = self._notifier.record(AuditEvent.PASSKEY_RENAMED, user, origin, passkey=passkey_id)
        await self._store.rename_passkey(user.user_id, credential_id_of(passkey_id), check_passkey_name(name), entry)

    async def remove(
        self,
        user: User,
        passkey_id: str,
        *,
        origin: AuditOrigin,
        device: str = "",
        reason: str = "",
        email_counts: bool = False,
    ) -> None:
        """`email_counts`: the person can sign in by email. Raises FactorMissing and LastSignInMethod."""
        entry, mails = self._notifier.factor_removed(Factor.PASSKEY, user, origin, device, reason)
        await self._store.remove_passkey(
            user.user_id,
            credential_id_of(passkey_id),
            entry,
            mails,
            methods=replace(self._methods(), by_email=email_counts),
        )

    async def _find_owned(self, response: UnverifiedResponse, user: User | None) -> Passkey:
        passkey = await self._store.find_passkey(response.credential_id)
        if passkey is None:
            raise PasskeyUnknown(response.credential_id)
        handle = response.user_handle
        if handle is None and user is None:
            raise PasskeyRefused("no user handle")
        if handle is not None and not constant_time_equal(handle, passkey.user_id):
            raise PasskeyRefused("user handle of another account")
        if user is not None and user.user_id != passkey.user_id:
            raise PasskeyRefused(f"belongs to {passkey.user_id}")
        return passkey

    async def _new_challenge(self, kind: str, browser: bytes, user: User | None) -> bytes:
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        now = self._clock.now()
        await self._store.put_challenge(
            kind, challenge_digest(challenge, browser, user), now=now, expires_at=now + CHALLENGE_LIFETIME
        )
        return challenge

    async def _take_challenge(self, kind: str, challenge: bytes, browser: bytes, user: User | None) -> None:
        """Use the challenge before anything is verified, so that it is never answered twice."""
        if not await self._store.take_challenge(kind, challenge_digest(challenge, browser, user), self._clock.now()):
            raise PasskeyRefused("challenge is not from this browser, already answered, or expired")


def challenge_digest(challenge: bytes, browser: bytes, user: User | None) -> bytes:
    """Return the digest a challenge is stored under, bound to its browser and account."""
    whose = "" if user is None else user.user_id
    return sha256(f"{whose}:{browser.hex()}:{challenge.hex()}")


def check_passkey_name(text: str) -> str:
    name = nfc(text.strip())
    if not name or len(name) > MAX_PASSKEY_NAME_LENGTH or not is_plain_line(name):
        raise BadPasskeyName(f"the name must be 1 to {MAX_PASSKEY_NAME_LENGTH} visible characters on one line")
    return name


def credential_id_of(passkey_id: str) -> bytes:
    try:
        return decode_base64url(passkey_id.encode())
    except ValueError:
        raise FactorMissing(f"no passkey with ID {passkey_id!r}") from None
