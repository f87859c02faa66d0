"""What processes race for around guests, their keys and what is used once (tests/support/racers.py)."""

from collections.abc import Awaitable, Callable
from typing import Final, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gatehouse.accounts.bans.model import INSTALLATION, Ban
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.guests.model import GUEST_ISSUER, ChallengeIntent, DeviceProof, GuestPolicy, read_device_key
from gatehouse.accounts.guests.sign_in import DeviceChallenges, GuestSignIn
from gatehouse.accounts.merge import GuestUpgrade
from gatehouse.accounts.model import GUEST_PROVIDER, EnabledMethods
from gatehouse.accounts.own_account.identities import IdentityAccounts, IdentitySignIn
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_record_id
from gatehouse.storage.database import Storage
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from gatehouse.throttle.proof_of_work import ProofOfWork, ProofOfWorkMode, ProofOfWorkPolicy
from gatehouse.throttle.quotas import Quota
from tests.support.builders import NOW, ORIGIN, a_game_session, a_record, a_user, an_identity
from tests.support.clock import MovableClock
from tests.support.guests import Device

IDLE_SINCE: Final = NOW - 30 * 86_400
ACCOUNTS: Final = ("3000000001", "3000000002")  # that a guest is merged into
DEVICES: Final = {
    name: Device(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))
    for number, name in enumerate(("merged twice", "banned", "accepts", "signs in", "idle"), start=1)
}
SUBJECTS: Final = {name: read_device_key(device.public_key).subject for name, device in DEVICES.items()}
GUEST_IDS: Final = {name: str(4_000_000_001 + number) for number, name in enumerate(DEVICES)}
NO_PUZZLES: Final = ProofOfWorkPolicy(mode=ProofOfWorkMode.OFF, difficulty=0, attack_rate=0)
POLICY: Final = GuestPolicy(
    enabled=True, application_ids=frozenset(), created_per_hour=1_000, total_per_hour=1_000, idle_days=30
)


async def prepare_guests(storage: Storage) -> None:
    """A guest and a game session of each account for every race; the last guest is idle."""
    for user_id in ACCOUNTS:
        await storage.accounts.create_user(a_user(user_id=user_id, password_hash="hash"), a_record())
    for name in DEVICES:
        await create_guest(storage, name, used_at=IDLE_SINCE - 1 if name == "idle" else NOW)
        for user_id in ACCOUNTS:
            await storage.game_sessions.register_session(
                a_game_session(f"{name} {user_id}", location=f"{name} {user_id}".encode())
            )


async def create_guest(storage: Storage, name: str, *, used_at: int = NOW) -> None:
    user = a_user(user_id=GUEST_IDS[name], login=None, reg_time=used_at)
    identity = an_identity(
        user.user_id, SUBJECTS[name], issuer=GUEST_ISSUER, provider=GUEST_PROVIDER, used_at=used_at
    )
    await storage.profile.create_with_identity(user, identity, a_record())


def identity_accounts(storage: Storage, clock: MovableClock) -> IdentityAccounts:
    return IdentityAccounts(
        store=storage.profile,
        notifier=cast("AccountNotifier", None),  # nothing is sent
        recorder=Recorder(mac_key=bytes(32), clock=clock),
        failures=FailedSignIns(store=storage.failed_sign_ins, clock=clock),
        clock=clock,
        methods=EnabledMethods,
    )


async def sign_in_guest(storage: Storage, name: str) -> IdentitySignIn:
    clock = MovableClock(NOW)
    challenges = DeviceChallenges(store=storage.profile, key=bytes(32), clock=clock)
    guests = GuestSignIn(
        store=storage.profile,
        identities=identity_accounts(storage, clock),
        challenges=challenges,
        proof_of_work=ProofOfWork(
            store=storage.throttle,
            use_puzzle=storage.throttle.use_puzzle,
            limiter=AttemptLimiter(store=storage.throttle, limit=AttemptLimit(), clock=clock),
            key=bytes(32),
            clock=clock,
            policy=lambda: NO_PUZZLES,
        ),
        quota=Quota(store=storage.throttle, clock=clock),
        policy=lambda: POLICY,
    )
    proof = DeviceProof(**DEVICES[name].sign(challenges.issue(ChallengeIntent.SIGN_IN)))
    return await guests.sign_in(proof, (), lang="en", source="192.0.2.1", origin=ORIGIN)


async def merge_guest(storage: Storage, name: str, user_id: str = ACCOUNTS[0]) -> None:
    upgrade = a_merge(name, user_id)
    await storage.profile.complete_upgrade(
        upgrade, lambda *_: [a_record(AuditEvent.ACCOUNT_MERGED)], lambda _: [], NOW
    )


def a_merge(name: str, user_id: str = ACCOUNTS[0]) -> GuestUpgrade:
    return GuestUpgrade(
        gsid=f"{name} {user_id}",
        session_created_at=NOW,
        guest_id=GUEST_IDS[name],
        user_id=user_id,
        rev=0,
        auth="login",
        second_factor="",
        auth_time=NOW,
    )


def a_ban(user_id: str) -> Ban:
    return Ban(ban_id=new_record_id(NOW), user_id=user_id, public_text="Cheating", created_at=NOW)


async def ban_guest(storage: Storage, name: str) -> None:
    user_id = GUEST_IDS[name]
    record = a_record(AuditEvent.USER_BANNED)
    await storage.bans.save_ban(user_id, INSTALLATION, lambda _: (a_ban(user_id), record), by="1", now=NOW)


# Each act wins or raises why not. Where two kinds race, one attempt of a process merges or erases.


async def use_device_challenge(storage: Storage, _n: int) -> None:
    expect(await storage.profile.use_challenge(b"challenge", NOW, NOW + 120))


async def use_puzzle(storage: Storage, _n: int) -> None:
    expect(await storage.throttle.use_puzzle(b"puzzle", NOW, NOW + 120))


async def merge_one_guest(storage: Storage, n: int) -> None:
    await merge_guest(storage, "merged twice", ACCOUNTS[n % 2])


async def ban_or_merge(storage: Storage, n: int) -> None:
    await (merge_guest if n == 2 else ban_guest)(storage, "banned")


async def accept_or_merge(storage: Storage, n: int) -> None:
    if n == 2:
        await merge_guest(storage, "accepts")
    else:
        record = a_record(AuditEvent.TERMS_ACCEPTED)
        await storage.terms.accept_terms(GUEST_IDS["accepts"], {"terms": "1"}, record)


async def sign_in_or_merge(storage: Storage, n: int) -> None:
    if n == 2:
        await merge_guest(storage, "signs in")
    else:
        await sign_in_guest(storage, "signs in")


async def sign_in_or_sweep(storage: Storage, n: int) -> None:
    if n == 2:
        record = a_record(AuditEvent.USER_ERASED)
        expect(await storage.profile.erase_idle_guests(IDLE_SINCE, lambda _: record, NOW) > 0)
    else:
        await sign_in_guest(storage, "idle")


def expect(won: bool) -> None:  # noqa: FBT001
    if not won:
        raise NotFound


ACTS: Final[tuple[Callable[[Storage, int], Awaitable[None]], ...]] = (
    *(use_device_challenge, use_puzzle, merge_one_guest),
    *(ban_or_merge, accept_or_merge, sign_in_or_merge, sign_in_or_sweep),
)
