"""A copy of everything that is kept about a person, for that person (checklist OP-14).

Secrets are left out, and so is what is other people's: who as an administrator did something, and from where.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from gatehouse.accounts.model import Session, User
from gatehouse.accounts.own.activity import address_in
from gatehouse.accounts.own.model import (
    AllowedClient,
    ApplicationAnswer,
    ClientSignIn,
    Everything,
    HeldRole,
    Holdings,
)
from gatehouse.accounts.own.store import ApplicationAnswers, ExportStore
from gatehouse.audit.events import Event
from gatehouse.audit.model import Details, Origin, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock

ADDRESS = "address"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    login: str | None
    new_login: str  # that waits for its proof
    nick: str
    has_password: bool
    lang: str
    country: str
    level: str
    registered: str
    email_verified: bool
    phone_verified: bool
    tags: Sequence[str]
    purchases: Sequence[str]
    meta: Mapping[str, str]


class OwnPasskey(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    added: str
    last_used: str
    transports: Sequence[str]


class OwnFactors(msgspec.Struct, frozen=True, kw_only=True):
    totp_since: str
    email_code: bool
    recovery_codes_left: int
    passkeys: Sequence[OwnPasskey]


class OwnSession(msgspec.Struct, frozen=True, kw_only=True):
    signed_in: str
    last_seen: str
    ends: str
    address: str
    browser: str
    proved_by: str


class OwnRole(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    role: str
    project_id: str
    ends: str


class OwnConsent(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    scopes: Sequence[str]
    allowed: str


class OwnSignIn(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    scopes: Sequence[str]
    signed_in: str
    ends: str
    revoked: str


class OwnRecord(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    event: str
    details: Details
    personal: Mapping[str, str]


class OwnApplicationData(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    answered: str
    data: msgspec.Raw


class PersonalData(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    made: str
    account: Account
    second_factors: OwnFactors
    sessions: Sequence[OwnSession]
    roles: Sequence[OwnRole]
    allowed_clients: Sequence[OwnConsent]
    client_sign_ins: Sequence[OwnSignIn]
    applications: Sequence[OwnApplicationData]  # what they answered by now; each answer is handed out once
    activity: Sequence[OwnRecord]


class Export:
    def __init__(
        self,
        *,
        store: ExportStore,
        applications: ApplicationAnswers,
        recorder: Recorder,
        clock: Clock,
        service: str,
    ) -> None:
        self._store = store
        self._applications = applications
        self._recorder = recorder
        self._clock = clock
        self._service = service

    async def of(self, user: User, origin: Origin) -> PersonalData:
        """Read it all; that it was read is on record, and in the copy."""
        await self._store.note(self._recorder.record(Event.DATA_EXPORTED, origin, subject=user.user_id))
        now = self._clock.now()
        everything = await self._store.everything(user.user_id, now)
        return self._written(user, everything, await self._applications.collect(user.user_id), now)

    def _written(
        self, user: User, everything: Everything, answers: Sequence[ApplicationAnswer], now: int
    ) -> PersonalData:
        holdings = everything.holdings
        return PersonalData(
            service=self._service,
            made=moment(now),
            account=account(user, holdings),
            second_factors=second_factors(user, holdings),
            sessions=[session(one) for one in holdings.sessions],
            roles=[role(one) for one in everything.roles],
            allowed_clients=[consent(one) for one in everything.allowed],
            client_sign_ins=[sign_in(one) for one in everything.sign_ins],
            applications=[application_data(one) for one in answers],
            activity=[record(one, user.user_id) for one in holdings.records],
        )


def account(user: User, holdings: Holdings) -> Account:
    return Account(
        user_id=user.user_id,
        login=user.login,
        new_login=holdings.pending_login,
        nick=user.nick,
        has_password=user.password_hash is not None,
        lang=user.lang,
        country=user.country,
        level=user.level,
        registered=moment(user.reg_time),
        email_verified=user.email_verified,
        phone_verified=user.phone_verified,
        tags=sorted(user.tags | user.kept_tags),
        purchases=sorted(user.purchases),
        meta=user.meta,
    )


def second_factors(user: User, holdings: Holdings) -> OwnFactors:
    return OwnFactors(
        totp_since=moment(holdings.overview.totp_since),
        email_code=user.email_code,
        recovery_codes_left=holdings.overview.recovery_left,
        passkeys=[
            OwnPasskey(
                name=passkey.name,
                added=moment(passkey.created_at),
                last_used=moment(passkey.used_at),
                transports=passkey.transports,
            )
            for passkey in holdings.passkeys
        ],
    )


def session(one: Session) -> OwnSession:
    return OwnSession(
        signed_in=moment(one.created_at),
        last_seen=moment(one.seen_at),
        ends=moment(min(one.idle_ends_at, one.ends_at)),
        address=one.address,
        browser=one.agent,
        proved_by=one.auth.value,
    )


def role(held: HeldRole) -> OwnRole:
    return OwnRole(
        application_id=held.application_id, role=held.role, project_id=held.project_id, ends=moment(held.ends_at)
    )


def consent(one: AllowedClient) -> OwnConsent:
    return OwnConsent(client_id=one.client_id, scopes=one.scopes, allowed=moment(one.given_at))


def sign_in(one: ClientSignIn) -> OwnSignIn:
    return OwnSignIn(
        client_id=one.client_id,
        scopes=one.scopes,
        signed_in=moment(one.created_at),
        ends=moment(one.ends_at),
        revoked=moment(one.revoked_at),
    )


def application_data(answer: ApplicationAnswer) -> OwnApplicationData:
    return OwnApplicationData(
        application_id=answer.application_id,
        application=answer.application,
        answered=moment(answer.answered_at),
        data=msgspec.Raw(answer.document),
    )


def record(one: Record, user_id: str) -> OwnRecord:
    told = {name: value for name, value in (one.personal or {}).items() if name != ADDRESS}
    address = address_in(one, user_id)
    return OwnRecord(
        at=moment(one.at),
        event=one.event,
        details=one.details,
        personal={**told, ADDRESS: address} if address else told,
    )


def moment(at: int) -> str:
    """ISO 8601 in UTC; nothing for never."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""
