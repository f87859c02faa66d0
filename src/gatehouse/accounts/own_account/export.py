"""Export of everything stored about a person, for that person (checklist OP-14).

Secrets are left out, and so are other people's data: which administrator did something, and from where.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from gatehouse.accounts.bans.model import Ban
from gatehouse.accounts.failed_sign_ins.model import FailedSignIn
from gatehouse.accounts.model import ACCOUNT_FIELDS, Identity, ProvidedLabel, User, account_values
from gatehouse.accounts.own_account.model import (
    AccountDetails,
    ApplicationData,
    ApplicationDataSource,
    AssignedRole,
    ClientSignIn,
    ConsentedClient,
    HeldOnObject,
    OwnAccountStore,
    PersonalRecords,
    SiteSignInRecord,
)
from gatehouse.accounts.own_account.profile import visible_address
from gatehouse.accounts.session_model import Session
from gatehouse.accounts.terms.model import AcceptedVersion
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import copy_as, entry_members, with_members
from gatehouse.images.model import image_path
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import iso8601

ADDRESS_KEY = "address"


class ExportedLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A tag or purchase that a provider set."""

    name: str
    is_purchase: bool
    provider: str
    issuer: str
    subject: str
    kept: bool  # stays after the sign-in was disconnected


@with_members(lambda: entry_members(ACCOUNT_FIELDS))
class ExportedAccount(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    new_login: str  # not verified yet
    has_password: bool
    username_chosen: str
    picture: str  # path of the image
    updated: str
    level: str
    registered: str
    phone_verified: bool
    tags: Sequence[str]
    purchases: Sequence[str]
    provided: Sequence[ExportedLabel]  # which of them providers set
    meta: Mapping[str, str]
    former_ids: Sequence[str]  # IDs that ended when a guest was upgraded or merged


class ExportedPasskey(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    added: str
    last_used: str
    transports: Sequence[str]


class ExportedFactors(msgspec.Struct, frozen=True, kw_only=True):
    totp_since: str
    email_code: bool
    phone_code: bool
    recovery_codes_left: int
    passkeys: Sequence[ExportedPasskey]


class ExportedSession(msgspec.Struct, frozen=True, kw_only=True):
    signed_in: str
    last_seen: str
    ends: str
    address: str
    browser: str
    proved_by: str
    second_factor: str


class ExportedRole(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    role: str
    project_id: str
    ends: str


class ExportedConsent(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    scopes: Sequence[str]
    allowed: str
    ends: str


class ExportedSignIn(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    scopes: Sequence[str]
    signed_in: str
    ends: str
    revoked: str


class ExportedSiteSignIn(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    signed_in: str
    ends: str


class ExportedIdentity(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    issuer: str
    subject: str
    label: str
    connected: str
    last_used: str


class ExportedRecord(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    event: str
    details: Details
    personal: Mapping[str, str]


class ExportedApplicationData(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    answered: str
    data: msgspec.Raw


class ExportedHolding(msgspec.Struct, frozen=True, kw_only=True):
    """A role or a permission on an object of an application."""

    application_id: int
    object: str
    held: str
    allowed: bool
    ends: str


class ExportedBan(msgspec.Struct, frozen=True, kw_only=True):
    """Without the reason, which others wrote for each other."""

    application_id: int  # 0 for none; without an application and a project it is about the whole installation
    project_id: str
    text: str
    since: str
    until: str
    lifted: str
    copied: bool  # from another account of the same person


class ExportedTerms(msgspec.Struct, frozen=True, kw_only=True):
    document: str  # `age`: the version is the lowest age of the person's band
    version: str
    accepted: str


class ExportedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Failed sign-ins of an hour, counted by reason and network."""

    hour: str
    reason: str
    network: str
    times: int


class ExportedView(msgspec.Struct, frozen=True, kw_only=True):
    """A search of a list in the console that the person saved."""

    list: str
    name: str
    query: str


class PersonalDataExport(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    made: str
    account: ExportedAccount
    second_factors: ExportedFactors
    identities: Sequence[ExportedIdentity]
    sessions: Sequence[ExportedSession]
    roles: Sequence[ExportedRole]
    objects: Sequence[ExportedHolding]
    allowed_clients: Sequence[ExportedConsent]
    client_sign_ins: Sequence[ExportedSignIn]
    site_sign_ins: Sequence[ExportedSiteSignIn]
    failed_sign_ins: Sequence[ExportedFailure]
    bans: Sequence[ExportedBan]
    terms: Sequence[ExportedTerms]
    saved_views: Sequence[ExportedView]
    applications: Sequence[ExportedApplicationData]  # answered so far; each answer is exported once
    activity: Sequence[ExportedRecord]


class DataExport(Struct, kw_only=True, eq=False):
    store: OwnAccountStore
    applications: ApplicationDataSource
    recorder: Recorder
    clock: Clock
    service: str

    async def export_user(self, user: User, origin: AuditOrigin) -> PersonalDataExport:
        """Return the export; that it was made is recorded, and part of it."""
        await self.store.add_record(self.recorder.record(AuditEvent.DATA_EXPORTED, origin, subject=user.user_id))
        now = self.clock.now()
        everything = await self.store.personal_records(user.user_id, now)
        return self._build(user, everything, await self.applications.collect(user.user_id), now)

    def _build(
        self, user: User, everything: PersonalRecords, answers: Sequence[ApplicationData], now: int
    ) -> PersonalDataExport:
        details = everything.details
        return PersonalDataExport(
            service=self.service,
            made=iso8601(now),
            account=exported_account(user, everything),
            second_factors=exported_factors(user, details),
            identities=[exported_identity(identity) for identity in details.identities],
            sessions=[exported_session(session) for session in details.sessions],
            roles=[exported_role(role) for role in everything.roles],
            objects=[exported_holding(held) for held in everything.objects],
            allowed_clients=[exported_consent(client) for client in everything.allowed],
            client_sign_ins=[exported_sign_in(sign_in) for sign_in in everything.sign_ins],
            site_sign_ins=[exported_site_sign_in(sign_in) for sign_in in everything.sites],
            failed_sign_ins=[exported_failure(failure) for failure in everything.failures],
            bans=[exported_ban(ban) for ban in everything.bans],
            terms=[exported_terms(terms) for terms in everything.terms],
            saved_views=[copy_as(ExportedView, view) for view in everything.views],
            applications=[exported_application_data(answer) for answer in answers],
            activity=[exported_record(record, user.user_id) for record in details.records],
        )


def exported_ban(ban: Ban) -> ExportedBan:
    return ExportedBan(
        application_id=ban.application_id,
        project_id=ban.project_id,
        text=ban.public_text,
        since=iso8601(ban.created_at),
        until=iso8601(ban.until) if ban.until else "",
        lifted=iso8601(ban.lifted_at) if ban.lifted_at else "",
        copied=bool(ban.source),
    )


def exported_failure(failure: FailedSignIn) -> ExportedFailure:
    return ExportedFailure(
        hour=iso8601(failure.hour), reason=failure.reason.value, network=failure.network, times=failure.times
    )


def exported_terms(terms: AcceptedVersion) -> ExportedTerms:
    return ExportedTerms(document=terms.document, version=terms.version, accepted=iso8601(terms.accepted_at))


def exported_account(user: User, everything: PersonalRecords) -> ExportedAccount:
    values = account_values(user) | {
        "tags": sorted(user.all_tags),
        "purchases": sorted(user.all_purchases),
        "picture": image_path(user.picture),
    }
    return copy_as(
        ExportedAccount,
        user,
        new_login=everything.details.pending_login,
        has_password=user.password_hash is not None,
        username_chosen=iso8601(user.username_at),
        updated=iso8601(user.updated_at or user.reg_time),
        registered=iso8601(user.reg_time),
        provided=[exported_label(label) for label in everything.details.labels],
        former_ids=everything.former_ids,
        **values,
    )


def exported_label(label: ProvidedLabel) -> ExportedLabel:
    return copy_as(ExportedLabel, label)


def exported_factors(user: User, details: AccountDetails) -> ExportedFactors:
    return ExportedFactors(
        totp_since=iso8601(details.overview.totp_since),
        email_code=user.email_code,
        phone_code=user.phone_code,
        recovery_codes_left=details.overview.recovery_left,
        passkeys=[
            ExportedPasskey(
                name=passkey.name,
                added=iso8601(passkey.created_at),
                last_used=iso8601(passkey.used_at),
                transports=passkey.transports,
            )
            for passkey in details.passkeys
        ],
    )


def exported_identity(identity: Identity) -> ExportedIdentity:
    return ExportedIdentity(
        provider=identity.provider,
        issuer=identity.issuer,
        subject=identity.subject,
        label=identity.label,
        connected=iso8601(identity.created_at),
        last_used=iso8601(identity.used_at),
    )


def exported_session(session: Session) -> ExportedSession:
    return ExportedSession(
        signed_in=iso8601(session.created_at),
        last_seen=iso8601(session.seen_at),
        ends=iso8601(min(session.idle_ends_at, session.ends_at)),
        address=session.address,
        browser=session.agent,
        proved_by=session.auth.value,
        second_factor=session.second_factor,
    )


def exported_holding(held: HeldOnObject) -> ExportedHolding:
    return ExportedHolding(
        application_id=held.application_id,
        object=held.object_key,
        held=held.item,
        allowed=held.value,
        ends=iso8601(held.ends_at),
    )


def exported_role(assignment: AssignedRole) -> ExportedRole:
    return ExportedRole(
        application_id=assignment.application_id,
        role=assignment.role,
        project_id=assignment.project_id,
        ends=iso8601(assignment.ends_at),
    )


def exported_consent(client: ConsentedClient) -> ExportedConsent:
    return ExportedConsent(
        client_id=client.client_id,
        scopes=client.scopes,
        allowed=iso8601(client.given_at),
        ends=iso8601(client.ends_at),
    )


def exported_sign_in(sign_in: ClientSignIn) -> ExportedSignIn:
    return ExportedSignIn(
        client_id=sign_in.client_id,
        scopes=sign_in.scopes,
        signed_in=iso8601(sign_in.created_at),
        ends=iso8601(sign_in.ends_at),
        revoked=iso8601(sign_in.revoked_at),
    )


def exported_site_sign_in(sign_in: SiteSignInRecord) -> ExportedSiteSignIn:
    return ExportedSiteSignIn(
        site=sign_in.origin, signed_in=iso8601(sign_in.created_at), ends=iso8601(sign_in.ends_at)
    )


def exported_application_data(answer: ApplicationData) -> ExportedApplicationData:
    return ExportedApplicationData(
        application_id=answer.application_id,
        application=answer.application,
        answered=iso8601(answer.answered_at),
        data=msgspec.Raw(answer.document),
    )


def exported_record(record: AuditRecord, user_id: str) -> ExportedRecord:
    personal = {name: value for name, value in (record.personal or {}).items() if name != ADDRESS_KEY}
    address = visible_address(record, user_id)
    return ExportedRecord(
        at=iso8601(record.at),
        event=record.event,
        details=record.details,
        personal={**personal, ADDRESS_KEY: address} if address else personal,
    )
