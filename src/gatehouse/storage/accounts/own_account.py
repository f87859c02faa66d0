"""Storage of the own account (accounts/own_account/model.py)."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import fields
from sqlalchemy import bindparam, null, or_, select, update

from gatehouse.accounts.bans.model import Ban
from gatehouse.accounts.errors import LinkDead, UserChanged, UsernameChangedRecently, UserNotFound
from gatehouse.accounts.model import OWN_FIELDS, EmailLink, LinkKind, SignInMethod, User, search_key
from gatehouse.accounts.own_account.model import (
    AGENT_KEY,
    MAX_ACTIVITY_SHOWN,
    AccountDetails,
    AssignedRole,
    ClientSignIn,
    ConsentedClient,
    EmailChange,
    PastSignIn,
    PersonalRecords,
    SiteSignInRecord,
    StoredView,
)
from gatehouse.audit.model import SIGN_IN_EVENTS, AuditRecord
from gatehouse.images.model import StoredImage, picture_owner
from gatehouse.kernel.digests import sha256
from gatehouse.mail.model import OutboxMail
from gatehouse.storage import mail, single_use
from gatehouse.storage.accounts.address_proofs import note_proved_address
from gatehouse.storage.accounts.ban_aware import BanAwareStore, BanFollower, write_with_bans
from gatehouse.storage.accounts.email_links import end_links
from gatehouse.storage.accounts.erasure import erase_user
from gatehouse.storage.accounts.failed_sign_ins import failures_of_user
from gatehouse.storage.accounts.former_ids import account_of_former_id, former_ids
from gatehouse.storage.accounts.guest_upgrades import complete_upgrade, is_merge
from gatehouse.storage.accounts.guests import erase_idle_guests, find_guest, is_retired_key, use_challenge
from gatehouse.storage.accounts.identities import (
    create_with_identity,
    identities_of_user,
    link_identity,
    record_identity_use,
    remove_password,
    save_provider_request,
    take_provider_request,
    unlink_identity,
    use_ticket,
    user_by_identity,
)
from gatehouse.storage.accounts.lost_addresses import erase_lost_accounts
from gatehouse.storage.accounts.passkeys import passkeys_of
from gatehouse.storage.accounts.provided_labels import end_labels_without_rule, find_sources, labels_of_user
from gatehouse.storage.accounts.registration import ADDRESS, find_link
from gatehouse.storage.accounts.second_factors import factor_overview
from gatehouse.storage.accounts.sessions import raise_rev, sessions_of_user
from gatehouse.storage.accounts.terms import accepted_by_user
from gatehouse.storage.accounts.users import (
    SET_USERNAME,
    assign_username,
    reserve_username,
    update_user,
    user_by_id,
    user_by_login,
)
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.images import put_image, remove_image
from gatehouse.storage.objects.endings import held_on_objects
from gatehouse.storage.runner import read, snapshot_read, write
from gatehouse.storage.single_use import IS_OPEN
from gatehouse.storage.statements import InNumberList, Statement, Verb
from gatehouse.storage.tables.accounts import bans as bans_table
from gatehouse.storage.tables.accounts import sessions, site_sessions, users
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.installation import once as once_table
from gatehouse.storage.tables.oauth import consents, grants
from gatehouse.storage.tables.permissions import applications, role_assignments
from gatehouse.storage.tables.saved_views import saved_views

MAX_FAILURES_EXPORTED: Final = 20_000  # rows; more than an account has in a year
NEW_LOGIN = "login"  # in a link's details: the new address, as typed
APP_ID = "app_id"  # in the details of a sign-in: the application that a game or service named
SESSION = "session"  # in a link's details: the session that asked
REV = "rev"  # in a link's details: the account's epoch at the request

_THIS_USER = users.c.user_id == bindparam("of")
_SAME_REV = bindparam("seen") == USER_REV
_BUMP_VERSION = {"version": users.c.version + 1}
_UPDATE_PROFILE = {**_BUMP_VERSION, "updated_at": bindparam("at")}
_RECORDS_ABOUT = select(audit_events).where(audit_events.c.subject == bindparam("of"))
_NEWEST_ABOUT = _RECORDS_ABOUT.order_by(audit_events.c.at.desc(), audit_events.c.record_id)

NEWEST_ABOUT = Statement(lambda: _NEWEST_ABOUT.limit(bindparam("most")))
NEWEST_SIGN_INS = Statement(
    lambda: _NEWEST_ABOUT.where(
        or_(*(audit_events.c.event == event for event in SIGN_IN_EVENTS)), audit_events.c.at > bindparam("after")
    ).limit(MAX_ACTIVITY_SHOWN)
)
ALL_ABOUT = Statement(lambda: _NEWEST_ABOUT)
APPLICATION_NAMES = Statement(
    lambda: select(applications.c.application_id, applications.c.name).where(
        InNumberList(applications.c.application_id, "numbers")
    )
)
PENDING_EMAIL_CHANGE = Statement(
    lambda: (
        select(once_table.c.details, USER_REV.label("rev"))
        .join(users, users.c.user_id == once_table.c.subject)
        .where(
            once_table.c.kind == LinkKind.CHANGE.value,
            once_table.c.subject == bindparam("of"),
            IS_OPEN,
        )
    )
)
CONSENTS_OF_USER = Statement(
    lambda: (
        select(*(consents.c[field.name] for field in fields(ConsentedClient)))
        .where(consents.c.user_id == bindparam("of"))
        .order_by(consents.c.client_id)
    )
)
GRANTS_OF_USER = Statement(
    lambda: (
        select(*(grants.c[field.name] for field in fields(ClientSignIn)))
        .where(grants.c.user_id == bindparam("of"))
        .order_by(grants.c.created_at, grants.c.grant_id)
    )
)
SITES_OF_USER = Statement(
    lambda: (
        select(*(site_sessions.c[field.name] for field in fields(SiteSignInRecord)))
        .where(site_sessions.c.user_id == bindparam("of"))
        .order_by(site_sessions.c.created_at, site_sessions.c.origin)
    )
)
ROLES_OF_USER = Statement(
    lambda: (
        select(role_assignments)
        .where(role_assignments.c.user_id == bindparam("of"))
        .order_by(role_assignments.c.application_id, role_assignments.c.project_id, role_assignments.c.position)
    )
)
SET_LANG = Statement(
    lambda: update(users).where(_THIS_USER).values(lang=bindparam("to"), **_UPDATE_PROFILE).returning(users.c.user_id)
)
SET_PICTURE = Statement(
    lambda: (
        update(users).where(_THIS_USER).values(picture=bindparam("to"), **_UPDATE_PROFILE).returning(users.c.user_id)
    )
)
PROFILE_COLUMNS = tuple(field.name for field in OWN_FIELDS)
SET_PROFILE = Statement(
    lambda: (
        update(users)
        .where(_THIS_USER)
        .values({name: bindparam(name) for name in (*PROFILE_COLUMNS, "nick_key", "name_key")} | _UPDATE_PROFILE)
        .returning(users.c.user_id)
    )
)
# Locks the account's row before the name is reserved; erasure takes the locks in the same order.
BEGIN_USERNAME_CHANGE = Statement(
    lambda: (
        update(users)
        .where(_THIS_USER, users.c.username_at <= bindparam("chosen_before"))
        .values(username_at=bindparam("at"), **_UPDATE_PROFILE)
        .returning(users.c.user_id)
    )
)
BEGIN_FIRST_USERNAME = Statement(
    lambda: (
        update(users)
        .where(_THIS_USER, users.c.username.is_(None))
        .values(**_UPDATE_PROFILE)
        .returning(users.c.user_id)
    )
)
# The write compares address and epoch again: neither changes between read and write.
SET_LOGIN = Statement(
    lambda: (
        update(users)
        .where(
            _THIS_USER,
            _SAME_REV,
            users.c.login_key.is_not_distinct_from(bindparam("old_key")),  # an account may have had none
            users.c.blocked.is_(False),
        )
        .values(
            login=bindparam("new"),
            login_key=bindparam("new_key"),
            shared_key=null(),
            email_verified=True,
            **_BUMP_VERSION,
        )
        .returning(users.c.user_id)
    )
)
SET_PASSWORD = Statement(
    lambda: (
        update(users)
        .where(_THIS_USER, _SAME_REV)
        .values(password_hash=bindparam("hash"), password_browser="", **_BUMP_VERSION)
        .returning(users.c.user_id)
    )
)
ADD_SESSION_PROOF = Statement(
    lambda: (
        update(sessions)
        .where(sessions.c.digest == bindparam("of"))
        .values(proved=bindparam("methods", type_=sessions.c.proved.type))
    )
)
RENEW_SESSION_PROOF = Statement(
    lambda: (
        update(sessions)
        .where(sessions.c.digest == bindparam("old"))
        .values(
            digest=bindparam("fresh"),
            auth=bindparam("by"),
            second_factor=bindparam("with_factor"),
            proved_at=bindparam("at"),
            proved=bindparam("methods", type_=sessions.c.proved.type),
        )
        .returning(sessions.c.session_id)
    )
)
BANS_OF_USER = Statement(
    lambda: select(bans_table).where(bans_table.c.user_id == bindparam("of")).order_by(bans_table.c.ban_id)
)


def account_details(user_id: str, now: int) -> Verb[AccountDetails]:
    rows = yield NEWEST_ABOUT(of=user_id, most=MAX_ACTIVITY_SHOWN)
    return (yield from _account_details(user_id, [AuditRecord(**row._asdict()) for row in rows], now))


def sign_in_history(user_id: str, after: int) -> Verb[Sequence[PastSignIn]]:
    rows = yield NEWEST_SIGN_INS(of=user_id, after=after)
    numbers = sorted({row.details.get(APP_ID, 0) for row in rows} - {0})
    names = {row.application_id: row.name for row in (yield APPLICATION_NAMES(numbers=numbers))} if numbers else {}
    return [past_sign_in(AuditRecord(**row._asdict()), names) for row in rows]


def past_sign_in(record: AuditRecord, applications: Mapping[int, str]) -> PastSignIn:
    personal, application_id = record.personal or {}, record.details.get(APP_ID)
    return PastSignIn(
        at=record.at,
        auth=str(record.details.get("auth", "")),
        application=applications.get(application_id, "") if isinstance(application_id, int) else "",
        address=personal.get("address", ""),
        agent=personal.get(AGENT_KEY, ""),
    )


VIEWS_OF_USER = Statement(
    lambda: (
        select(saved_views.c.list, saved_views.c.name, saved_views.c.query)
        .where(saved_views.c.user_id == bindparam("of"))
        .order_by(saved_views.c.list, saved_views.c.created_at)
    )
)


def personal_records(user_id: str, now: int) -> Verb[PersonalRecords]:
    rows = yield ALL_ABOUT(of=user_id)
    details = yield from _account_details(user_id, [AuditRecord(**row._asdict()) for row in rows], now)
    roles = yield ROLES_OF_USER(of=user_id)
    allowed = yield CONSENTS_OF_USER(of=user_id)
    sign_ins = yield GRANTS_OF_USER(of=user_id)
    sites = yield SITES_OF_USER(of=user_id)
    banned = yield BANS_OF_USER(of=user_id)
    terms = yield from accepted_by_user(user_id)
    return PersonalRecords(
        details=details,
        allowed=[ConsentedClient(**row._asdict()) for row in allowed],
        sign_ins=[ClientSignIn(**row._asdict()) for row in sign_ins],
        sites=[SiteSignInRecord(**row._asdict()) for row in sites],
        bans=[Ban(**row._asdict()) for row in banned],
        terms=terms,
        failures=(yield from failures_of_user(user_id, 0, MAX_FAILURES_EXPORTED)),
        objects=(yield from held_on_objects(user_id)),
        views=[StoredView(**row._asdict()) for row in (yield VIEWS_OF_USER(of=user_id))],
        former_ids=(yield from former_ids(user_id)),
        roles=[
            AssignedRole(
                application_id=row.application_id, role=row.role_key, project_id=row.project_id, ends_at=row.expired
            )
            for row in roles
        ],
    )


def _account_details(user_id: str, records: Sequence[AuditRecord], now: int) -> Verb[AccountDetails]:
    pending = [
        row.details for row in (yield PENDING_EMAIL_CHANGE(of=user_id, now=now)) if row.details[REV] == row.rev
    ]
    return AccountDetails(
        overview=(yield from factor_overview(user_id)),
        passkeys=(yield from passkeys_of(user_id)),
        sessions=(yield from sessions_of_user(user_id, now)),
        records=records,
        pending_login=pending[0][NEW_LOGIN] if pending else "",
        identities=(yield from identities_of_user(user_id)),
        labels=(yield from labels_of_user(user_id)),
    )


def set_lang(user_id: str, lang: str, entry: AuditRecord) -> Verb[None]:
    if not (yield SET_LANG(of=user_id, to=lang, at=entry.at)):
        raise UserNotFound
    yield from add_audit_record(entry)


def set_profile(after: User, entry: AuditRecord) -> Verb[None]:
    values = {name: getattr(after, name) for name in PROFILE_COLUMNS}
    keys = {"nick_key": search_key(after.nick), "name_key": search_key(after.name)}
    if not (yield SET_PROFILE(**values, **keys, of=after.user_id, at=entry.at)):
        raise UserNotFound
    yield from add_audit_record(entry)


def set_username(user_id: str, username: str, entry: AuditRecord, *, chosen_before: int) -> Verb[None]:
    if not (yield BEGIN_USERNAME_CHANGE(of=user_id, at=entry.at, chosen_before=chosen_before)):
        yield from user_by_id(user_id)
        raise UsernameChangedRecently
    yield from assign_username(user_id, username)
    yield from add_audit_record(entry)


def set_picture(user_id: str, image: StoredImage | None, entry: AuditRecord) -> Verb[None]:
    if not (yield SET_PICTURE(of=user_id, to="" if image is None else image.image_id, at=entry.at)):
        raise UserNotFound
    if image is None:
        yield from remove_image(picture_owner(user_id))
    else:
        yield from put_image(picture_owner(user_id), image, entry.at)
    yield from add_audit_record(entry)


def generate_username(user_id: str, candidates: Sequence[str], entry: AuditRecord) -> Verb[str | None]:
    if not (yield BEGIN_FIRST_USERNAME(of=user_id, at=entry.at)):
        return (yield from user_by_id(user_id)).username
    for username in candidates:
        if (yield from reserve_username(user_id, username)):
            yield SET_USERNAME(of=user_id, to=username)
            yield from add_audit_record(entry)
            return username
    return None


def change_account(
    bans: BanFollower,
    whole: User,
    entries: Sequence[AuditRecord],
    mails: Sequence[OutboxMail],
    *,
    ends_links: bool,
    picture: StoredImage | None = None,
) -> Verb[None]:
    former = yield from bans.verified_contacts(whole.user_id)
    yield from update_user(whole)
    yield from bans.contacts_changed(whole.user_id, former, entries[0].at)
    if picture is not None:
        yield from put_image(picture_owner(whole.user_id), picture, entries[0].at)
    elif not whole.picture:
        yield from remove_image(picture_owner(whole.user_id))
    if ends_links:
        yield from end_links(whole.user_id)
    yield from mail.queue_mails(mails, whole.user_id)
    for entry in entries:
        yield from add_audit_record(entry)


# -- email change -------------------------------------------------------------------------------------


def save_email_change(
    change: EmailChange, link: EmailLink, entry: AuditRecord, mails: Sequence[OutboxMail]
) -> Verb[None]:
    whose = change.owner
    yield from single_use.put_single_use(
        link.kind,
        link.digest,
        subject=whose.user_id,
        details={
            ADDRESS: sha256(whose.login_key or "").hex(),
            NEW_LOGIN: change.login,
            REV: whose.rev,
            SESSION: change.session_id,
        },
        now=link.created_at,
        expires_at=link.expires_at,
    )
    yield from mail.queue_mails(mails, whose.user_id)
    yield from add_audit_record(entry)


def find_email_change(digest: bytes, now: int) -> Verb[EmailChange | None]:
    owned_link = yield from find_link(LinkKind.CHANGE, digest, now)
    link = yield from single_use.find_single_use(LinkKind.CHANGE, digest, now)
    if owned_link is None or link is None or link.details[REV] != owned_link.owner.rev:
        return None
    return EmailChange(
        owner=owned_link.owner, login=link.details[NEW_LOGIN], session_id=link.details.get(SESSION, "")
    )


def apply_email_change(  # noqa: PLR0917 - `bans` comes first by itself
    bans: BanFollower,
    digest: bytes,
    wanted: EmailChange,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    now: int,
) -> Verb[None]:
    taken = yield from single_use.take_single_use(LinkKind.CHANGE, digest, now)
    if taken is None or (yield from user_by_login(wanted.login)) is not None:
        raise LinkDead
    whose = wanted.owner
    former = yield from bans.verified_contacts(whose.user_id)
    if not (
        yield SET_LOGIN(
            of=whose.user_id, seen=whose.rev, old_key=whose.login_key, new=wanted.login, new_key=wanted.new_key
        )
    ):
        raise LinkDead
    yield from note_proved_address((yield from user_by_id(whose.user_id)))
    yield from bans.contacts_changed(whose.user_id, former, now)
    yield from end_links(whose.user_id)
    yield from mail.queue_mails(mails, whose.user_id)
    yield from add_audit_record(entry)


# -- password and session -----------------------------------------------------------------------------


def set_password(
    user: User,
    password_hash: str,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    *,
    keep: bytes,
    proved: Sequence[str],
    now: int,
) -> Verb[None]:
    if not (yield SET_PASSWORD(of=user.user_id, seen=user.rev, hash=password_hash)):
        raise UserChanged
    yield from raise_rev(user.user_id, keep=keep, now=now)
    yield ADD_SESSION_PROOF(of=keep, methods=proved)
    yield from end_links(user.user_id)
    yield from mail.queue_mails(mails, user.user_id)
    yield from add_audit_record(entry)


def rotate_session_secret(
    digest: bytes,
    fresh: bytes,
    auth: SignInMethod,
    entry: AuditRecord,
    now: int,
    *,
    proved: Sequence[str],
    second_factor: str = "",
) -> Verb[bool]:
    renewed = yield RENEW_SESSION_PROOF(
        old=digest, fresh=fresh, by=auth.value, with_factor=second_factor, methods=proved, at=now
    )
    if not renewed:
        return False
    yield from add_audit_record(entry)
    return True


class OwnAccountStorage(BanAwareStore):
    account_details = read(account_details)
    sign_in_history = read(sign_in_history)
    personal_records = snapshot_read(personal_records)
    add_record = write(add_audit_record)
    user_by_login = read(user_by_login)
    set_lang = write(set_lang)
    set_profile = write(set_profile)
    set_username = write(set_username)
    generate_username = write(generate_username)
    set_picture = write(set_picture)
    change_account = write_with_bans(change_account)
    save_email_change = write(save_email_change)
    find_email_change = read(find_email_change)
    apply_email_change = write_with_bans(apply_email_change)
    set_password = write(set_password)
    rotate_session_secret = write(rotate_session_secret)
    erase_user = write_with_bans(erase_user)
    user_by_identity = read(user_by_identity)
    create_with_identity = write_with_bans(create_with_identity)
    link_identity = write_with_bans(link_identity)
    unlink_identity = write_with_bans(unlink_identity)
    remove_password = write(remove_password)
    record_identity_use = write(record_identity_use)
    find_sources = write(find_sources)
    end_labels_without_rule = write(end_labels_without_rule)
    use_ticket = write(use_ticket)
    save_provider_request = write(save_provider_request)
    take_provider_request = write(take_provider_request)
    use_challenge = write(use_challenge)
    find_guest = read(find_guest)
    is_retired_key = read(is_retired_key)
    erase_idle_guests = write_with_bans(erase_idle_guests)
    erase_lost_accounts = write_with_bans(erase_lost_accounts)
    is_merge = read(is_merge)
    complete_upgrade = write_with_bans(complete_upgrade)
    account_of_former_id = read(account_of_former_id)
