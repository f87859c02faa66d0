"""Passkeys: as second factor, and as the whole of a sign-in."""

import secrets
from collections.abc import Sequence
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.errors import BadPasskeyName, EmailNotVerified, FactorMissing, PasskeyRefused
from gatehouse.accounts.second_factors.model import Factor, Passkey
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.relying_party import LIFETIME, Claim, RelyingParty, ceremony_of
from gatehouse.accounts.second_factors.store import PasskeyStore
from gatehouse.accounts.second_factors.telling import Telling
from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret, sha256
from gatehouse.kernel.text import is_plain_line, nfc
from gatehouse.keys.base64url import decode_base64url

CHALLENGE_BYTES: Final = 32
NAME_LONGEST: Final = 64
REGISTER: Final = "passkey-register"  # kinds of single-use things
SIGN_IN: Final = "passkey-sign-in"


class Passkeys:
    """`browser` is a digest of something only that browser has: nobody else answers its challenges."""

    def __init__(
        self, *, store: PasskeyStore, party: RelyingParty, recovery: RecoveryCodes, telling: Telling, clock: Clock
    ) -> None:
        self._store = store
        self._party = party
        self._recovery = recovery
        self._telling = telling
        self._clock = clock

    @property
    def are_possible(self) -> bool:
        return self._party.is_possible

    async def registration_options(self, user: User, *, browser: bytes) -> str:
        """JSON of PublicKeyCredentialCreationOptions. Raises EmailNotVerified."""
        if not user.may_add_factors:
            raise EmailNotVerified
        held = await self._store.passkeys(user.user_id)
        challenge = await self._challenge(REGISTER, browser, user)
        ceremony = await ceremony_of(self._party)
        return ceremony.registration_options(user, challenge, held)

    async def register(
        self, user: User, credential: str, *, name: str, browser: bytes, origin: Origin, device: str = ""
    ) -> tuple[str, ...]:
        """Keep what the browser made; returns recovery codes to show, if the account had none left.

        Raises PasskeyRefused, PasskeyTaken, TooManyPasskeys, BadPasskeyName.
        """
        checked_name = check_name(name)
        ceremony = await ceremony_of(self._party)
        claim = ceremony.read_registration(credential)
        await self._take(REGISTER, claim.challenge, browser, user)
        made = ceremony.check_registration(claim)
        passkey = Passkey(
            credential_id=made.credential_id,
            user_id=user.user_id,
            public_key=made.public_key,
            sign_count=made.sign_count,
            name=checked_name,
            transports=made.transports,
            created_at=self._clock.now(),
        )
        codes = self._recovery.draw(user)
        entry, mails = self._telling.added(Factor.PASSKEY, user, origin, device)
        kept = await self._store.add_passkey(passkey, codes.digests, entry, mails)
        return codes.shown if kept else ()

    async def sign_in_options(self, *, browser: bytes, user: User | None = None) -> str:
        """JSON of PublicKeyCredentialRequestOptions: for that account's passkeys, or for any the browser has."""
        allowed = () if user is None else await self._store.passkeys(user.user_id)
        challenge = await self._challenge(SIGN_IN, browser, user)
        ceremony = await ceremony_of(self._party)
        return ceremony.sign_in_options(challenge, allowed)

    async def sign_in(self, credential: str, *, browser: bytes, origin: Origin, user: User | None = None) -> Passkey:
        """Return the passkey that was proved, and with it whose it is; raise PasskeyRefused.

        With `user` it is a second factor and must be that account's, else the passkey names its account.
        Whether that account may sign in at all is for the caller to ask.
        """
        ceremony = await ceremony_of(self._party)
        claim = ceremony.read_sign_in(credential)
        await self._take(SIGN_IN, claim.challenge, browser, user)
        passkey = await self._owned(claim, user)
        count = ceremony.check_sign_in(claim, passkey.public_key)
        suspicion = self._telling.recorder.record(
            Event.PASSKEY_SUSPECTED,
            origin,
            subject=passkey.user_id,
            details={"passkey": passkey.passkey_id, "counter": count, "was": passkey.sign_count},
        )
        if not await self._store.use_passkey(passkey.credential_id, count, suspicion, self._clock.now()):
            raise PasskeyRefused(f"counter {count} after {passkey.sign_count}: the passkey may have been cloned")
        return passkey

    async def of_user(self, user_id: str) -> Sequence[Passkey]:
        return await self._store.passkeys(user_id)

    async def rename(self, user: User, passkey_id: str, name: str, *, origin: Origin) -> None:
        entry = self._telling.record(Event.PASSKEY_RENAMED, user, origin, passkey=passkey_id)
        await self._store.rename_passkey(user.user_id, credential_id_of(passkey_id), check_name(name), entry)

    async def remove(
        self, user: User, passkey_id: str, *, origin: Origin, device: str = "", reason: str = ""
    ) -> None:
        entry, mails = self._telling.removed(Factor.PASSKEY, user, origin, device, reason)
        await self._store.remove_passkey(user.user_id, credential_id_of(passkey_id), entry, mails)

    async def _owned(self, claim: Claim, user: User | None) -> Passkey:
        passkey = await self._store.passkey(claim.credential_id)
        if passkey is None:
            raise PasskeyRefused("unknown or removed")
        handle = claim.user_handle
        if handle is None and user is None:
            raise PasskeyRefused("no user handle")
        if handle is not None and not same_secret(handle, passkey.user_id):
            raise PasskeyRefused("user handle of another account")
        if user is not None and user.user_id != passkey.user_id:
            raise PasskeyRefused(f"belongs to {passkey.user_id}")
        return passkey

    async def _challenge(self, kind: str, browser: bytes, user: User | None) -> bytes:
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        now = self._clock.now()
        await self._store.put_challenge(kind, bound(challenge, browser, user), now=now, expires_at=now + LIFETIME)
        return challenge

    async def _take(self, kind: str, challenge: bytes, browser: bytes, user: User | None) -> None:
        """Spent before anything is checked: whatever comes of it, nobody answers it a second time."""
        if not await self._store.take_challenge(kind, bound(challenge, browser, user), self._clock.now()):
            raise PasskeyRefused("challenge is not from this browser, already answered, or expired")


def bound(challenge: bytes, browser: bytes, user: User | None) -> bytes:
    """What a challenge is kept under: asked by another browser or for another account it is unknown."""
    whose = "" if user is None else user.user_id
    return sha256(f"{whose}:{browser.hex()}:{challenge.hex()}")


def check_name(text: str) -> str:
    name = nfc(text.strip())
    if not name or len(name) > NAME_LONGEST or not is_plain_line(name):
        raise BadPasskeyName(f"the name must be 1 to {NAME_LONGEST} visible characters on one line")
    return name


def credential_id_of(passkey_id: str) -> bytes:
    try:
        return decode_base64url(passkey_id.encode())
    except ValueError:
        raise FactorMissing(f"no passkey with ID {passkey_id!r}") from None
