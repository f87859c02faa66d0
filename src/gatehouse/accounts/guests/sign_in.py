"""Sign-in of guests: challenges, the account of a device key, and the end of idle guests (R10)."""

import secrets
from collections.abc import Callable
from typing import Final

import structlog
from msgspec.structs import replace

from gatehouse.accounts.guests.model import (
    CHALLENGE_SECONDS,
    GUEST_ISSUER,
    GUEST_NAME,
    ChallengeIntent,
    DeviceKey,
    DeviceProof,
    DeviceProofRefused,
    GuestPolicy,
    GuestsOff,
    read_device_key,
    read_signature,
)
from gatehouse.accounts.identities import ForeignPerson, IdentityRules
from gatehouse.accounts.model import GUEST_PROVIDER, User
from gatehouse.accounts.own_account.identities import IdentityAccounts, IdentitySignIn
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.kernel.times import DAY, HOUR
from gatehouse.throttle.limits import AttemptLimit, ThrottleSubject
from gatehouse.throttle.proof_of_work import ProofOfWork, Puzzle, PuzzlePurpose
from gatehouse.throttle.quotas import Quota, quota_limit

log = structlog.get_logger(__name__)

NONCE_BYTES: Final = 16
MAX_CHALLENGE_LENGTH: Final = 200
MAX_BATCHES: Final = 100  # of idle guests per sweep, so that changes to groups and roles do not wait long


class DeviceChallenges:
    """Challenges are signed and not stored: asking for them costs nothing. Only their use is stored."""

    def __init__(self, *, store: OwnAccountStore, key: bytes, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._clock = clock

    def issue(self, intent: ChallengeIntent) -> str:
        ends_at = self._clock.now() + CHALLENGE_SECONDS
        body = f"{intent.value}.{ends_at}.{secrets.token_urlsafe(NONCE_BYTES)}"
        return f"{body}.{self._mac(body)}"

    async def verify(self, proof: DeviceProof, intent: ChallengeIntent) -> DeviceKey:
        """Return the key that signed the challenge, which is used up. Raises BadInput and DeviceProofRefused."""
        key, signature = read_device_key(proof.device_key), read_signature(proof.signature)
        ends_at, now = self._end_of(proof.challenge, intent), self._clock.now()
        if ends_at <= now or not key.has_signed(proof.challenge, signature):
            raise DeviceProofRefused
        if not await self._store.use_challenge(sha256(proof.challenge), now, ends_at):
            raise DeviceProofRefused("the challenge was used before")
        return key

    def _end_of(self, challenge: str, intent: ChallengeIntent) -> int:
        """Return when a challenge of ours ends; 0 for any other text."""
        body, _, mac = challenge.rpartition(".")
        if len(challenge) > MAX_CHALLENGE_LENGTH or not challenge.isascii():
            return 0
        if not constant_time_equal(mac, self._mac(body)):
            return 0
        kind, ends_at, _ = body.split(".")
        return int(ends_at) if kind == intent.value else 0

    def _mac(self, body: str) -> str:
        return hmac_sha256(self._key, body.encode()).hex()


class GuestSignIn:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        identities: IdentityAccounts,
        challenges: DeviceChallenges,
        proof_of_work: ProofOfWork,
        quota: Quota,
        policy: Callable[[], GuestPolicy],
    ) -> None:
        self._store = store
        self._identities = identities
        self._challenges = challenges
        self._proof_of_work = proof_of_work
        self._quota = quota
        self._policy = policy

    def challenge(self, intent: ChallengeIntent, application_ids: tuple[int, ...]) -> str:
        """Return a challenge to sign. Raises GuestsOff, but guests who exist can always be upgraded."""
        if intent is ChallengeIntent.SIGN_IN:
            self._refuse_when_off(application_ids)
        return self._challenges.issue(intent)

    async def puzzle_for(self, device_key: str) -> Puzzle | None:
        """Return the puzzle that a new guest has to solve; None for an existing one, or while none is required.

        Raises BadInput for a malformed key; an empty one is new.
        """
        if device_key and await self._store.find_guest(read_device_key(device_key).subject) is not None:
            return None
        return await self._proof_of_work.issue_puzzle(PuzzlePurpose.GUEST, always=await self._is_rush())

    async def sign_in(
        self, proof: DeviceProof, application_ids: tuple[int, ...], *, lang: str, source: str, origin: AuditOrigin
    ) -> IdentitySignIn:
        """Return the guest of the key; the first sign-in creates it.

        Raises GuestsOff, BadInput, DeviceProofRefused, NotSignedIn; PuzzleUnsolved for a new guest without the proof
        of work that is required now; and TooMany when the source created too many.
        """
        self._refuse_when_off(application_ids)
        key = await self._challenges.verify(proof, ChallengeIntent.SIGN_IN)
        is_new = await self._store.find_guest(key.subject) is None
        if is_new:
            await self._refuse_creation(key, proof, source)
        person = ForeignPerson(issuer=GUEST_ISSUER, subject=key.subject)
        # A guest that is merged at this moment is not created again.
        rules = IdentityRules(provider_id=GUEST_PROVIDER, provider_name=GUEST_NAME, creates_accounts=is_new)
        return await self._identities.sign_in(person, rules, lang=lang, origin=origin)

    async def find_to_upgrade(self, proof: DeviceProof) -> User:
        """Return the guest whose key signed a challenge to upgrade. Raises BadInput and DeviceProofRefused."""
        key = await self._challenges.verify(proof, ChallengeIntent.UPGRADE)
        guest = await self._store.find_guest(key.subject)
        if guest is None or guest.blocked:
            raise DeviceProofRefused("no guest has this key")
        return guest

    def _refuse_when_off(self, application_ids: tuple[int, ...]) -> None:
        if not self._policy().admits(application_ids):
            raise GuestsOff

    async def _refuse_creation(self, key: DeviceKey, proof: DeviceProof, source: str) -> None:
        if await self._store.is_retired_key(key.subject):
            raise DeviceProofRefused("the guest of this key has an account now")
        is_rush, policy = await self._is_rush(), self._policy()
        await self._proof_of_work.require_solution(PuzzlePurpose.GUEST, proof.puzzle, proof.solution, always=is_rush)
        # One by one: a source that is over its own limit must not use up that of all.
        of_source = ThrottleSubject(("guest", source), quota_limit(policy.created_per_hour, HOUR))
        if not await self._quota.consume([of_source]):
            raise TooMany(HOUR, "guests created from one source")
        in_all = ThrottleSubject(("guests",), quota_limit(policy.total_per_hour, HOUR))
        if not await self._quota.consume([in_all]):
            raise TooMany(HOUR, "guests created by all sources")
        if not await self._quota.consume([rush_subject(policy)]) and not is_rush:
            log.warning("many new guests: proof of work required", purpose=PuzzlePurpose.GUEST)

    async def _is_rush(self) -> bool:
        """Return whether so many guests were created that new ones solve a puzzle, before they are refused."""
        return await self._quota.is_exceeded(rush_subject(self._policy()))


def rush_subject(policy: GuestPolicy) -> ThrottleSubject:
    """Return what counts new guests up to half of those allowed in all; then it is blocked for an hour."""
    half = policy.total_per_hour // 2
    limit = AttemptLimit(free_attempts=half, first_delay=HOUR, max_delay=HOUR, window=HOUR)
    return ThrottleSubject(("guests", "half"), limit)


class GuestExpiry:
    def __init__(
        self, *, store: OwnAccountStore, recorder: Recorder, clock: Clock, policy: Callable[[], GuestPolicy]
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._policy = policy

    async def erase_idle(self, origin: AuditOrigin) -> None:
        """Erase guests that were idle for too long, a few in each transaction; the next sweep erases the rest."""

        def record(user_id: str) -> AuditRecord:
            return self._recorder.record(
                AuditEvent.USER_ERASED, replace(origin, address=""), subject=user_id, details={"reason": "idle guest"}
            )

        days, now = self._policy().idle_days, self._clock.now()
        for _ in range(MAX_BATCHES):
            if not days or not await self._store.erase_idle_guests(now - days * DAY, record, now):
                return
