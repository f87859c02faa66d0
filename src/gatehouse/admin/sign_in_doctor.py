"""What a person would meet if they signed in now, by the checks that the sign-in makes; it changes nothing.

Administrators see everything. Readers of an application (canRead `all`) see what the application itself refuses, and
nothing about the account. Every question is recorded.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.accounts.bans.model import UserBan, find_ban
from gatehouse.accounts.model import AccountKind, User
from gatehouse.accounts.own_account.model import AccountDetails
from gatehouse.accounts.second_factors.model import enabled_factors
from gatehouse.accounts.terms.acceptance import Terms
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.login_rules import LoginRefusalReason, LoginRules
from gatehouse.permissions.questions.check import QuestionAccess, refuse_about_others
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, is_open

NO_ADDRESS_COUNTRY: Final = ""  # the country of the person's address is not known here


class FindingEffect(StrEnum):
    """What a finding does to the sign-in."""

    STOPS = "stops"
    ASKS = "asks"  # the person is asked something on the way
    NOTE = "note"


class FindingKind(StrEnum):
    """The texts are `doctor.<value>`; those of LoginRefusalReason are `access.barred_<value>`."""

    SERVICE_ACCOUNT = "service_account"
    ACCOUNT_BLOCKED = "account_blocked"
    BANNED = "banned"
    INVITED = "invited"  # nothing to sign in with yet
    LOCKED = "locked"
    NO_PASSWORD = "no_password"  # noqa: S105 - a finding, not a password
    EMAIL_UNVERIFIED = "email_unverified"
    SECOND_FACTOR = "second_factor"
    TERMS = "terms"
    AGE = "age"
    APPLICATION = "application"  # its login rules; `by` says which


class SignInFinding(Struct, frozen=True, kw_only=True):
    what: FindingKind
    effect: FindingEffect
    by: str = ""  # of APPLICATION, a LoginRefusalReason
    names: Sequence[str] = ()  # of factors, providers or documents
    until: int = 0  # Unix seconds; 0 for no end
    application_id: int = 0  # of a ban
    project_id: str = ""  # of a ban
    seconds: int = 0  # of a lock


class SignInDiagnosis(Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str  # empty for readers of an application
    application_id: int  # 0 for the account pages
    of_account: bool  # whether the account was examined too
    findings: Sequence[SignInFinding]

    @property
    def stopped_by(self) -> SignInFinding | None:
        return next((finding for finding in self.findings if finding.effect is FindingEffect.STOPS), None)


class DoctorStore(Protocol):
    async def account_details(self, user_id: str, now: int) -> AccountDetails: ...

    async def add_record(self, record: AuditRecord) -> None: ...


class FindAccount(Protocol):
    async def user(self, user_id: str) -> User:
        """Raises UserNotFound."""


class SignInDoctor(Struct, kw_only=True, eq=False):
    """`locked_seconds`: how long no password of the account is checked for an unknown browser.

    `signs_in_by_email`: whether the account can sign in with a link or code by email.
    """

    accounts: FindAccount
    store: DoctorStore
    question_access: QuestionAccess
    rules: LoginRules
    terms: Terms
    locked_seconds: Callable[[User], Awaitable[int]]
    signs_in_by_email: Callable[[User], Awaitable[bool]]
    recorder: Recorder
    clock: Clock

    async def examine(
        self, authenticated: AuthenticatedRequest, actor: Actor, user_id: str, application_id: int
    ) -> SignInDiagnosis:
        """Raises NoRight, before it says whether the account exists, and UserNotFound or PersonNotFound."""
        if is_open(authenticated.rights, Operation.ADMINISTER):
            diagnosis = await self._examine_account(await self.accounts.user(user_id), application_id)
        else:
            diagnosis = await self._examine_application(authenticated, user_id)
        details: Details = {"application_id": application_id}
        record = self.recorder.record(
            AuditEvent.SIGN_IN_EXAMINED, actor.origin, subject=diagnosis.user_id, details=details
        )
        await self.store.add_record(record)
        return diagnosis

    async def _examine_account(self, user: User, application_id: int) -> SignInDiagnosis:
        findings = [
            *self._find_account_refusals(user),
            *await self._find_methods(user),
            *await self._find_refusals(user, application_id),
            *await self._find_questions(user, application_id),
        ]
        return SignInDiagnosis(
            user_id=user.user_id,
            nick=user.nick,
            application_id=application_id,
            of_account=True,
            findings=sorted(findings, key=lambda finding: list(FindingEffect).index(finding.effect)),
        )

    async def _examine_application(self, authenticated: AuthenticatedRequest, user_id: str) -> SignInDiagnosis:
        refuse_about_others(authenticated)  # about themselves too
        application = authenticated.named_application().application
        loaded = await self.question_access.load_input(authenticated.caller, user_id)
        reason, ban = self.rules.application_refusal(loaded, application.application_id)
        return SignInDiagnosis(
            user_id=loaded.facts.subject.user_id,
            nick="",
            application_id=application.application_id,
            of_account=False,
            findings=[] if reason is None else [refusal_finding(reason, ban)],
        )

    def _find_account_refusals(self, user: User) -> Iterator[SignInFinding]:
        if user.kind is AccountKind.SERVICE:
            yield SignInFinding(what=FindingKind.SERVICE_ACCOUNT, effect=FindingEffect.STOPS)
        if user.blocked:
            yield SignInFinding(what=FindingKind.ACCOUNT_BLOCKED, effect=FindingEffect.STOPS)

    async def _find_methods(self, user: User) -> Sequence[SignInFinding]:
        if user.kind is AccountKind.SERVICE:
            return ()
        details = await self.store.account_details(user.user_id, self.clock.now())
        providers = tuple(dict.fromkeys(identity.provider for identity in details.identities))
        findings: list[SignInFinding] = []
        if user.password_hash is None:
            others = bool(user.passkeys or providers) or await self.signs_in_by_email(user)
            what, effect = (
                (FindingKind.NO_PASSWORD, FindingEffect.NOTE)
                if others
                else (FindingKind.INVITED, FindingEffect.STOPS)
            )
            findings.append(SignInFinding(what=what, effect=effect, names=providers))
        elif seconds := await self.locked_seconds(user):
            findings.append(SignInFinding(what=FindingKind.LOCKED, effect=FindingEffect.STOPS, seconds=seconds))
        if user.login is not None and not user.email_verified:
            findings.append(SignInFinding(what=FindingKind.EMAIL_UNVERIFIED, effect=FindingEffect.NOTE))
        return findings

    async def _find_refusals(self, user: User, application_id: int) -> Sequence[SignInFinding]:
        """What the installation and the application refuse."""
        ban = find_ban(user.bans, self.clock.now())
        findings = [] if ban is None else [refusal_finding(LoginRefusalReason.BANNED, ban)]
        refusal = await self.rules.find_refusal(user.user_id, (application_id,)) if application_id else None
        known = (LoginRefusalReason.ACCOUNT_BLOCKED, LoginRefusalReason.BANNED if ban else None)
        if refusal is not None and refusal.reason not in known:
            findings.append(refusal_finding(refusal.reason, refusal.ban))
        return findings

    async def _find_questions(self, user: User, application_id: int) -> Sequence[SignInFinding]:
        """What the person is asked on the way."""
        findings = []
        if factors := enabled_factors(user):
            names = tuple(factor.value for factor in factors)
            findings.append(SignInFinding(what=FindingKind.SECOND_FACTOR, effect=FindingEffect.ASKS, names=names))
        if application_id:
            pending = await self.terms.find_pending(user.user_id, (application_id,), country=NO_ADDRESS_COUNTRY)
            if pending is not None and pending.documents:
                documents = tuple(document.document_id for document in pending.documents)
                findings.append(SignInFinding(what=FindingKind.TERMS, effect=FindingEffect.ASKS, names=documents))
            if pending is not None and pending.minimum_age:
                findings.append(SignInFinding(what=FindingKind.AGE, effect=FindingEffect.ASKS))
        return findings


def refusal_finding(reason: LoginRefusalReason, ban: UserBan | None) -> SignInFinding:
    if reason is not LoginRefusalReason.BANNED or ban is None:
        return SignInFinding(what=FindingKind.APPLICATION, effect=FindingEffect.STOPS, by=reason.value)
    return SignInFinding(
        what=FindingKind.BANNED,
        effect=FindingEffect.STOPS,
        until=ban.until,
        application_id=ban.application_id,
        project_id=ban.project_id,
    )
