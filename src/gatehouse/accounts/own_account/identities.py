"""Accounts by identity: found, created, linked and unlinked (R10)."""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.email_links import as_owner
from gatehouse.accounts.errors import (
    AddressHasAccount,
    ForeignDomainRefused,
    IdentityBlocked,
    IdentityTaken,
    LoginTaken,
    NoAccountForIdentity,
    UserIdTaken,
    UserNotFound,
)
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.field_checks import MAX_NICK_LENGTH
from gatehouse.accounts.identities import ForeignPerson, IdentityRules
from gatehouse.accounts.model import EnabledMethods, Identity, User, check_login, login_key
from gatehouse.accounts.own_account.model import AddressRelease, OwnAccountStore
from gatehouse.accounts.second_factors.model import EmailNotVerified
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.ids import new_user_id
from gatehouse.kernel.text import is_plain_line, nfc
from gatehouse.mail.model import MailTemplate

SHOWN_DIGITS: Final = 4  # of a subject, in a nick that was made up


class IdentitySignIn(Struct, frozen=True, kw_only=True):
    user: User
    created: bool


class IdentityAccounts:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        notifier: AccountNotifier,
        recorder: Recorder,
        failures: FailedSignIns,
        clock: Clock,
        methods: Callable[[], EnabledMethods],
    ) -> None:
        """`methods` returns what people can sign in with now."""
        self._methods = methods
        self._store = store
        self._notifier = notifier
        self._recorder = recorder
        self._failures = failures
        self._clock = clock

    async def sign_in(
        self, person: ForeignPerson, rules: IdentityRules, *, lang: str, origin: AuditOrigin
    ) -> IdentitySignIn:
        """Return the account of the identity; create it if the rules allow that. Raises NotSignedIn, PersonBanned.

        Of two first sign-ins at the same time one creates the account and the other finds it.
        """
        refuse_domain(person, rules.domains)
        while (known := await self._store.user_by_identity(person.issuer, person.subject)) is None:
            if not rules.creates_accounts:
                raise NoAccountForIdentity
            refuse_domain(person, rules.account_domains)
            try:
                return await self._create(person, rules, lang, origin)
            except (IdentityTaken, UserIdTaken):
                continue
        if known.blocked:
            self._failures.count(known.user_id, FailureReason.BLOCKED, origin.address)
            raise IdentityBlocked
        return IdentitySignIn(user=await self._record_use(person, rules, known, origin), created=False)

    async def link(
        self, person: ForeignPerson, rules: IdentityRules, user: User, *, origin: AuditOrigin, device: str
    ) -> None:
        """Connect the identity to the account of its signed-in owner.

        Raises IdentityTaken, TooManyIdentities, NotSignedIn, and EmailNotVerified for an account that a stranger may
        have registered: the identity would still open it after the owner of the address has set a password. Raises
        UserChanged when the sessions of the account ended since `user` was read.
        """
        if not user.may_add_factors:
            raise EmailNotVerified
        refuse_domain(person, rules.domains)
        record = self._notifier.record(
            AuditEvent.IDENTITY_LINKED, user, origin, provider=rules.provider_id, issuer=person.issuer
        )
        mails = self._notifier.mails(MailTemplate.IDENTITY_LINKED, user, origin, device, provider=rules.provider_name)
        await self._store.link_identity(self._identity(person, rules, user.user_id), record, mails, rev=user.rev)
        await self._record_use(person, rules, user, origin)

    async def unlink(
        self,
        user: User,
        issuer: str,
        subject: str,
        *,
        provider_name: str,
        origin: AuditOrigin,
        device: str,
        email_counts: bool = False,
        keep: str | None = None,
    ) -> None:
        """Disconnect the identity; with `keep`, every other session that was made with it ends too.

        `email_counts`: the person can sign in by email. Raises IdentityNotFound and LastSignInMethod.
        """
        record = self._notifier.record(
            AuditEvent.IDENTITY_UNLINKED, user, origin, issuer=issuer, ends_sessions=keep is not None
        )
        mails = self._notifier.mails(MailTemplate.IDENTITY_UNLINKED, user, origin, device, provider=provider_name)
        await self._store.unlink_identity(
            user.user_id,
            issuer,
            subject,
            record,
            mails,
            methods=replace(self._methods(), by_email=email_counts),
            keep=keep,
        )

    async def _create(
        self, person: ForeignPerson, rules: IdentityRules, lang: str, origin: AuditOrigin
    ) -> IdentitySignIn:
        login = verified_login(person)
        user = User(
            user_id=new_user_id(),
            login=login,
            nick=new_nick(person, rules),
            name=clean_line(person.name),
            lang=lang,
            reg_time=self._clock.now(),
            email_verified=login is not None,
        )
        record = self._recorder.record(
            AuditEvent.USER_REGISTERED,
            as_owner(origin, user),
            subject=user.user_id,
            details={"provider": rules.provider_id},
            personal={"nick": user.nick, **({"login": login} if login else {})},
        )
        try:
            await self._store.create_with_identity(
                user,
                self._identity(person, rules, user.user_id),
                record,
                release=AddressRelease(
                    record=lambda user_id: self._lost_record(user_id, rules, origin),
                    by_username=self._methods().by_username,
                ),
            )
        except LoginTaken:
            raise AddressHasAccount from None
        return IdentitySignIn(user=await self._record_use(person, rules, user, origin), created=True)

    def _lost_record(self, user_id: str, rules: IdentityRules, origin: AuditOrigin) -> AuditRecord:
        return self._recorder.record(
            AuditEvent.ADDRESS_LOST, origin, subject=user_id, details={"provider": rules.provider_id}
        )

    async def _record_use(self, person: ForeignPerson, rules: IdentityRules, user: User, origin: AuditOrigin) -> User:
        try:
            return await self._store.record_identity_use(
                self._identity(person, rules, user.user_id),
                rules.read_answer(person),
                partial(self._labels_record, user, rules, origin),
            )
        except UserNotFound:  # unlinked or erased since it was read
            raise NoAccountForIdentity from None

    def _labels_record(self, user: User, rules: IdentityRules, origin: AuditOrigin, user_id: str) -> AuditRecord:
        """`user_id`: of the account whose tags or purchases changed; another one may have had the identity before."""
        return self._recorder.record(
            AuditEvent.USER_TAGS_SAVED,
            as_owner(origin, user) if user_id == user.user_id else origin,
            subject=user_id,
            details={"provider": rules.provider_id},
        )

    def _identity(self, person: ForeignPerson, rules: IdentityRules, user_id: str) -> Identity:
        now = self._clock.now()
        return Identity(
            issuer=person.issuer,
            subject=person.subject,
            user_id=user_id,
            provider=rules.provider_id,
            label=clean_line(person.label),
            created_at=now,
            used_at=now,
        )


def refuse_domain(person: ForeignPerson, domains: tuple[str, ...]) -> None:
    """Refuse a person without a verified address of these domains, if there are any."""
    if not domains:
        return
    login = verified_login(person)
    if login is None or login_key(login).rpartition("@")[2] not in domains:
        raise ForeignDomainRefused


def verified_login(person: ForeignPerson) -> str | None:
    """Return the address if the provider verified it; another one is ignored, and nothing is said about it (R10)."""
    if not person.email_verified:
        return None
    try:
        return check_login(person.email)
    except BadInput:
        return None


def new_nick(person: ForeignPerson, rules: IdentityRules) -> str:
    chosen = clean_line(person.nick) or clean_line(person.name)
    return chosen[:MAX_NICK_LENGTH].strip() or f"{rules.provider_name} {person.subject[-SHOWN_DIGITS:]}"


def clean_line(text: str) -> str:
    """Return the text as it may be shown: one line, nothing invisible."""
    return nfc("".join(character for character in text if is_plain_line(character)).strip())
