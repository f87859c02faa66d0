"""Sign-in with a password, and the cookies of browsers that have signed in before (S-15, R1).

Failed attempts from a known browser are counted separately: an attacker who keeps failing does not lock the owner
out (checklist LG-09). The device cookie is authenticated by a MAC and proves nothing else.
"""

from collections.abc import Callable, Sequence
from typing import Final

from gatehouse.accounts.decoys import DecoyHashes
from gatehouse.accounts.errors import SignInRefused
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import UNKNOWN_ACCOUNT, FailureReason
from gatehouse.accounts.field_checks import username_key
from gatehouse.accounts.model import SignInMethod, User, login_key
from gatehouse.accounts.password_rules import is_too_long
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.sign_in_tally import SignInTally
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256
from gatehouse.kernel.errors import TooMany, Unavailable
from gatehouse.kernel.ids import new_record_id
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

COOKIE_LIFETIME: Final = 365 * 86_400  # seconds
COOKIE_FIELDS: Final = 3
MAX_PEOPLE: Final = 5  # on one browser; the one who signed in longest ago is forgotten
BETWEEN_PEOPLE: Final = "~"


class DeviceCookies:
    """Cookies that say who signed in on a browser before, with one part for each person."""

    def __init__(self, *, key: bytes, clock: Clock) -> None:
        self._key = key
        self._clock = clock

    def issue(self, user: User, cookie: str) -> str:
        """Return the cookie of this browser after that person's sign-in; other people in `cookie` stay in it."""
        key = account_key(user)
        now = self._clock.now()
        body = f"{new_record_id(now)}.{now + COOKIE_LIFETIME}"
        others = [part for part in _parts(cookie) if self._recognize_part(part, key) is None]
        return BETWEEN_PEOPLE.join([f"{body}.{self._mac(body, key)}", *others][:MAX_PEOPLE])

    def recognize(self, cookie: str, key: str) -> str | None:
        """Return the browser's name if the cookie is valid for this key of an account and has not expired."""
        names = (self._recognize_part(part, key) for part in _parts(cookie))
        return next((name for name in names if name is not None), None)

    def _recognize_part(self, part: str, key: str) -> str | None:
        name, ends_at, code = part.split(".")
        if not constant_time_equal(code, self._mac(f"{name}.{ends_at}", key)):
            return None
        return name if int(ends_at) > self._clock.now() else None

    def _mac(self, body: str, key: str) -> str:
        return hmac_sha256(self._key, body.encode() + sha256(key)).hex()


def _parts(cookie: str) -> list[str]:
    parts = cookie.split(BETWEEN_PEOPLE)[:MAX_PEOPLE] if cookie.isascii() else []
    return [part for part in parts if part.count(".") == COOKIE_FIELDS - 1]


def account_key(user: User) -> str:
    """Return what an account's failures are counted by, and its browsers recognized by.

    It is what the person types at the sign-in, so that failures there and at a reauthentication are one count.
    """
    if user.login_key is not None:
        return user.login_key
    return f"id:{user.user_id}" if user.username is None else login_key(user.username)


# Password authentication, shared by the browser and the login operation (R1).


ACCOUNT_LIMIT: Final = AttemptLimit(free_attempts=10)
PAIR_LIMIT: Final = AttemptLimit(free_attempts=10)
SOURCE_LIMIT: Final = AttemptLimit(free_attempts=100)  # for an office, a school, a mobile carrier's gateway
DEVICE_LIMIT: Final = AttemptLimit(free_attempts=10)


class PasswordAttempt(SecretRecord, frozen=True, kw_only=True):
    password: SecretText
    source: str
    device_cookie: str = ""  # if the browser sent one


class PasswordSignIn:
    def __init__(
        self,
        *,
        store: AccountStore,
        passwords: Passwords,
        decoys: DecoyHashes,
        limiter: AttemptLimiter,
        device_cookies: DeviceCookies,
        tally: SignInTally,
        failures: FailedSignIns,
        accepts_usernames: Callable[[], bool],
    ) -> None:
        self._tally = tally
        self._failures = failures
        self._accepts_usernames = accepts_usernames
        self._store = store
        self._passwords = passwords
        self._decoys = decoys
        self._limiter = limiter
        self._device_cookies = device_cookies

    async def verify(self, login: str, attempt: PasswordAttempt) -> User:
        """Return the account; raise SignInRefused, alike for wrong, unknown and blocked, or TooMany.

        An unknown account costs a hash as known ones have, and its failures count the same (LG-05, LG-06). They are
        counted by what was typed: shared counts would tell which address a user name belongs to.
        """
        self._passwords.refuse_when_full()  # before anything is written: overload is rejected at the lowest cost
        user = await self._find_user(login)
        typed = login_key(login)  # of a user name: @anna, which is no address
        return await self._check(
            user, attempt, counted_by=typed, device_key=typed if user is None else account_key(user)
        )

    async def verify_owner(self, user: User, attempt: PasswordAttempt) -> None:
        """Verify the password of an account that is signed in, whatever its owner signs in with; raise the same."""
        self._passwords.refuse_when_full()
        key = account_key(user)
        await self._check(user, attempt, counted_by=key, device_key=key)

    async def _check(self, user: User | None, attempt: PasswordAttempt, *, counted_by: str, device_key: str) -> User:
        """Check the password and count the attempt.

        It counts as a failure until it succeeds, so that concurrent attempts get no more checks than sequential ones.
        """
        known = self._known_device(device_key, attempt.device_cookie)
        subjects = self._unknown_device(counted_by, attempt.source) if known is None else [known]
        user_id = UNKNOWN_ACCOUNT if user is None else user.user_id
        try:
            guess = await self._limiter.begin_attempt(subjects)
        except TooMany:
            self._failures.count(user_id, FailureReason.LOCKED, attempt.source)
            raise
        try:
            proved = await self._matches(attempt.password, user, counted_by)
        except Unavailable:
            await self._limiter.cancel_attempt(guess)
            raise
        if user is None or not proved or user.blocked:
            self._tally.count_refused(SignInMethod.LOGIN)
            reason = FailureReason.BLOCKED if proved else FailureReason.WRONG_PASSWORD
            self._failures.count(user_id, reason, attempt.source)
            raise SignInRefused
        await self._limiter.mark_succeeded(guess)
        await self._upgrade_hash(user, attempt.password)
        return user

    async def locked_seconds(self, user: User) -> int:
        """Return for how long an unknown browser cannot try a password of the account; 0 if it can. Only reads."""
        keys = {account_key(user), *([] if user.username is None else [login_key(user.username)])}
        try:
            await self._limiter.refuse_blocked_subjects(
                [ThrottleSubject(("account", key), ACCOUNT_LIMIT) for key in sorted(keys)]
            )
        except TooMany as locked:
            return locked.retry_after
        return 0

    async def clear_failures(self, user: User, *, source: str, device_cookie: str) -> None:
        """Clear the failures of the account and of this client, which has authenticated in another way."""
        key = account_key(user)
        known = self._known_device(key, device_cookie)
        subjects = [*self._unknown_device(key, source), *([] if known is None else [known])]
        await self._limiter.clear_all_failures([subject for subject in subjects if not subject.is_shared])

    async def _find_user(self, login: str) -> User | None:
        """Return the account with this email address or, where they are accepted, user name; both cost one read."""
        if "@" in login:
            return await self._store.user_by_login(login)
        user = await self._store.user_by_username(username_key(login))
        return user if self._accepts_usernames() else None

    async def _matches(self, password: str, user: User | None, typed: str) -> bool:
        if is_too_long(password):
            return False  # not worth a hash: such a password cannot be set
        password_hash = user.password_hash if user is not None else None
        decoy = self._decoys.choose(typed)
        matches = await self._passwords.matches(
            password, password_hash or decoy or await self._passwords.decoy_hash()
        )
        return matches and password_hash is not None

    async def _upgrade_hash(self, user: User, password: str) -> None:
        if user.password_hash is not None and self._passwords.is_outdated(user.password_hash):
            fresh = await self._passwords.hash(password)
            await self._store.replace_password_hash(user.user_id, user.password_hash, fresh)

    def _known_device(self, key: str, device: str) -> ThrottleSubject | None:
        name = self._device_cookies.recognize(device, key) if device else None
        return None if name is None else ThrottleSubject(("device", key, name), DEVICE_LIMIT)

    def _unknown_device(self, key: str, source: str) -> Sequence[ThrottleSubject]:
        return [
            ThrottleSubject(("account", key), ACCOUNT_LIMIT),
            ThrottleSubject(("source", source), SOURCE_LIMIT, is_shared=True),
            ThrottleSubject(("pair", key, source), PAIR_LIMIT),
        ]
