"""Accounts in a file: their fields, and the changes to them (R7)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.account_editor import with_address_origin
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import check_user_id
from gatehouse.accounts.model import (
    ACCOUNT_FIELDS,
    ADMINISTRATOR_ROLE,
    JOINED_KEY,
    UNPROVED_ORIGINS,
    AccountKind,
    User,
    check_login,
    check_new_login,
    has_public_domain,
    login_key,
)
from gatehouse.accounts.profile_fields import date_profile, with_phone_state
from gatehouse.audit.events import AuditEvent
from gatehouse.fields.derive import patch_members, with_members
from gatehouse.fields.model import Kind
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.images.loading import NewImage
from gatehouse.images.model import picture_owner
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import (
    AddUser,
    AuditNote,
    Change,
    ChangeUser,
    Problems,
    RecordKind,
    RemoveUser,
    StoredState,
    Write,
)
from gatehouse.provision.sections.images import image_writes, merged_image_id
from gatehouse.provision.sections.section import SectionPlan, merge_field

Flag = bool | UnsetType | None
USER: Final[RecordKind[User]] = RecordKind(
    "user", name_of=lambda user: user.login or user.user_id, subject_of=lambda user: user.user_id
)
Secret = FileSecret | UnsetType | None


@with_members(lambda: patch_members(ACCOUNT_FIELDS))
class UserFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    login: str | UnsetType | None = UNSET  # null: an account without an email address
    nick: str | UnsetType = UNSET
    username: str | UnsetType | None = UNSET
    password: Secret = UNSET
    totp_secret: Secret = UNSET
    picture: str | UnsetType | None = UNSET  # a URL
    joined: str | UnsetType | None = UNSET  # of an account whose address no one has proved by email
    phone_verified: Flag = UNSET
    blocked: Flag = UNSET
    administrator: Flag = UNSET


class UserEdit(SecretRecord, frozen=True, kw_only=True):
    """An entry and its account, with the secrets in stored form."""

    place: str
    entry: UserFileEntry
    before: User | None  # None: new
    user_id: str
    password_hash: SecretText | UnsetType | None = UNSET
    sealed_totp: bytes | UnsetType | None = UNSET
    picture: NewImage = UNSET


def check_joined(text: str) -> str:
    if text not in UNPROVED_ORIGINS:
        raise BadAccount(f"must be {' or '.join(sorted(UNPROVED_ORIGINS))}")
    return text


FIELD_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "user_id": check_user_id,
    **{one.name: one.field.check for one in ACCOUNT_FIELDS if one.field.check is not None},
    "login": check_login,  # of a new person `refuse_unreachable` asks for more
    "joined": check_joined,
}


def check_entry(entry: UserFileEntry, place: str, problems: Problems) -> UserFileEntry:
    """The entry with every value in its stored form."""
    given = {
        name: value for name in FIELD_CHECKS if (value := getattr(entry, name)) is not UNSET and value is not None
    }
    kept = {
        name: problems.check_value(f"{place}.{name}", FIELD_CHECKS[name], value, otherwise=value)
        for name, value in given.items()
    }
    return msgspec.structs.replace(entry, **kept)


def refuse_unreachable(entry: UserFileEntry, place: str, problems: Problems) -> None:
    """Refuse the login of a new person as forms do.

    Someone with an ID had an account before, perhaps with a login that is refused now: an export can always be
    applied elsewhere, and the plan warns.
    """
    if entry.login and entry.user_id is UNSET:
        problems.check_value(f"{place}.login", check_new_login, entry.login, otherwise=entry.login)


# From accounts in a file and the stored state to changes. Pure: hashes nothing and reads nothing.


# Fields of a file, and the fields of the account.
SECRET_FIELDS: Final[Mapping[str, str]] = {"password": "password_hash", "totp_secret": "sealed_totp"}
PLAIN_FIELDS: Final = (
    *(one.name for one in ACCOUNT_FIELDS if one.kind is not Kind.IMAGE),
    "blocked",
)
FIELDS: Final[Mapping[str, str]] = {
    **{name: name for name in PLAIN_FIELDS},
    "joined": "unproved_origin",
    "picture": "picture",
    **SECRET_FIELDS,
}
EMPTY_USER: Final = User(user_id="", login=None, nick="", reg_time=0)
ENDS_TOKENS: Final = frozenset({"password", "totp_secret", "blocked"})  # checklist LG-20


class MergedUser(msgspec.Struct, frozen=True, kw_only=True):
    """An account before and after the file."""

    place: str
    before: User | None
    after: User
    was_administrator: bool
    administrator: bool
    picture: NewImage = UNSET

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what differs."""
        before = self.before or EMPTY_USER
        names = [name for name, own in FIELDS.items() if getattr(before, own) != getattr(self.after, own)]
        return (*names, "administrator") if self.administrator != self.was_administrator else tuple(names)

    @property
    def administers(self) -> bool:
        return self.administrator and not self.after.blocked


def plan_users(wanted: Sequence[UserEdit], state: StoredState, *, now: int, prune: bool) -> SectionPlan:
    problems = Problems()
    merged = [merge_user(one, state, now, problems) for one in wanted]
    surplus = unnamed_users(merged, state) if prune else ()
    spared = last_administrator(merged, surplus, state)
    removed = [user for user in surplus if user is not spared]
    check_logins(merged, removed, state, problems)
    check_usernames(merged, state, problems)
    check_phones(merged, removed, state, problems)
    check_administrators(merged, removed, state, problems)
    return SectionPlan(
        changes=(
            *map(user_removal, removed),
            *filter(None, map(user_change, merged)),
        ),
        problems=tuple(problems.lines),
        spared=(
            *(() if spared is None else (f"user {USER.name_of(spared)} is kept as the last administrator",)),
            *cannot_sign_in(merged),
        ),
        warnings=tuple(
            f"{one.place}.login: {one.after.login} has a domain without a dot, so it may get no email"
            for one in merged
            if one.after.login and "login" in one.fields and not has_public_domain(one.after.login)
        ),
    )


def cannot_sign_in(merged: Sequence[MergedUser]) -> tuple[str, ...]:
    """A line about new accounts of guests and providers, whose keys and identities no file has."""
    number = sum(one.before is None and one.after.login is None and one.after.username is None for one in merged)
    return (f"{number} new users have no email address and cannot sign in until they get one",) if number else ()


def merge_user(found: UserEdit, state: StoredState, now: int, problems: Problems) -> MergedUser:
    base = found.before or new_user(found, now, problems)
    if found.before is not None and found.before.login is not None and found.entry.login is None:
        problems.add(f"{found.place}.login", "cannot be removed: it may be the only way to sign in")
    held = found.user_id in state.administrators
    given = {name: getattr(found.entry, name) for name in PLAIN_FIELDS}
    given |= {own: getattr(found, own) for own in SECRET_FIELDS.values()}
    after = {
        own: merge_field(value, kept=getattr(base, own), cleared=getattr(EMPTY_USER, own))
        for own, value in given.items()
    }
    after["picture"] = merged_image_id(found.picture, base.picture)
    merged = (
        replace(base, **after)
        if found.before is None
        else changed_user(base, after, now, vouches=found.entry.phone_verified is not UNSET)
    )
    return MergedUser(
        place=found.place,
        before=found.before,
        after=with_origin(merged, found.entry.joined),
        was_administrator=held,
        administrator=merge_field(found.entry.administrator, kept=held, cleared=False),
        picture=found.picture,
    )


def changed_user(before: User, fields: Mapping[str, Any], now: int, *, vouches: bool) -> User:
    changed = with_phone_state(before, replace(before, **fields), is_vouched=vouches)
    return date_profile(before, with_address_origin(before, changed), now)


def with_origin(user: User, joined: str | UnsetType | None) -> User:
    """Return the account with the origin that the file gives its address, if it gives one."""
    if joined is UNSET:
        return user
    meta = {name: value for name, value in user.meta.items() if name != JOINED_KEY or not user.unproved_origin}
    return replace(user, meta={**meta, JOINED_KEY: joined} if joined else meta)


def new_user(found: UserEdit, now: int, problems: Problems) -> User:
    for name in ("login", "nick"):
        if getattr(found.entry, name) is UNSET:
            problems.add(found.place, f"a new user needs a {name}")
    if found.entry.login is None and found.entry.user_id is UNSET:
        problems.add(found.place, "a new user without a login needs a user_id")
    return replace(EMPTY_USER, user_id=found.user_id, reg_time=now)


def unnamed_users(merged: Sequence[MergedUser], state: StoredState) -> tuple[User, ...]:
    named = {one.after.user_id for one in merged}
    return tuple(user for user in state.users if user.kind is AccountKind.PERSON and user.user_id not in named)


def last_administrator(merged: Sequence[MergedUser], surplus: Sequence[User], state: StoredState) -> User | None:
    """The oldest administrator, if --prune would remove all of them."""
    gone = {user.user_id for user in surplus}
    if any(one.administers for one in merged) or active_administrators(state) - gone - {
        one.after.user_id for one in merged
    }:
        return None
    candidates = [user for user in surplus if user.user_id in active_administrators(state)]
    return min(candidates, key=lambda user: (user.reg_time, user.user_id), default=None)


def active_administrators(state: StoredState) -> frozenset[str]:
    """Ids of users who hold the role and are not blocked."""
    return frozenset(
        user.user_id for user in state.users if user.user_id in state.administrators and not user.blocked
    )


def check_administrators(
    merged: Sequence[MergedUser], removed: Sequence[User], state: StoredState, problems: Problems
) -> None:
    before = active_administrators(state)
    settled = {user.user_id for user in removed} | {one.after.user_id for one in merged}
    if not before or before - settled or any(one.administers for one in merged):
        return
    for one in merged:
        if one.after.user_id in before:
            problems.add(one.place, "is the last administrator and must stay one, unblocked")


def check_logins(
    merged: Sequence[MergedUser], removed: Sequence[User], state: StoredState, problems: Problems
) -> None:
    """A login has one owner at all times, so one file cannot swap the logins of two accounts."""
    gone = {user.user_id for user in removed}
    named = [user for user in state.users if user.login and user.user_id not in gone]
    owners = {login_key(user.login or ""): user.user_id for user in named} | {
        user.login_key: user.user_id for user in named
    }
    for one in merged:
        if one.after.login is None:
            continue
        owner = owners.setdefault(one.after.login_key, one.after.user_id)
        if owner != one.after.user_id:
            problems.add(f"{one.place}.login", f"belongs to user {owner}")


def check_usernames(merged: Sequence[MergedUser], state: StoredState, problems: Problems) -> None:
    """A user name belongs to one account forever (R9)."""
    owners = dict(state.username_owners)
    for one in merged:
        username, user_id = one.after.username, one.after.user_id
        if username is not None and owners.setdefault(username, user_id) != user_id:
            problems.add(f"{one.place}.username", "belongs to another account, or did before")


def check_phones(
    merged: Sequence[MergedUser], removed: Sequence[User], state: StoredState, problems: Problems
) -> None:
    """A verified number has one owner at all times (R11)."""
    gone = {user.user_id for user in removed}
    owners = {
        user.phone: user.user_id
        for user in state.users
        if user.phone and user.phone_verified and user.user_id not in gone
    }
    for one in merged:
        if one.after.phone and one.after.phone_verified:
            owner = owners.setdefault(one.after.phone, one.after.user_id)
            if owner != one.after.user_id:
                problems.add(f"{one.place}.phone", f"is verified for user {owner}")


def user_change(one: MergedUser) -> Change | None:
    after = one.after
    picture = image_writes(picture_owner(after.user_id), one.picture)
    if one.before is None:
        return USER.addition(after, AddUser(after, one.administrator), *picture, notes=[creation_note(one)])
    role = one.administrator if "administrator" in one.fields else None
    write = ChangeUser(after, role, ends_tokens=not ENDS_TOKENS.isdisjoint(one.fields))
    writes: list[Write] = [write, *picture] if one.fields or picture else []
    return USER.change(one.before, one.fields, writes, notes=change_notes(one))


def creation_note(one: MergedUser) -> AuditNote:
    return AuditNote(
        event=AuditEvent.USER_CREATED,
        details={"administrator": one.administrator},
        personal={"login": one.after.login or "", "nick": one.after.nick},
    )


def change_notes(one: MergedUser) -> tuple[AuditNote, ...]:
    """The general event, and the special ones that are searched by name."""
    notes = [AuditNote(event=AuditEvent.USER_CHANGED, details={"fields": ", ".join(one.fields)})]
    if "blocked" in one.fields:
        notes.append(AuditNote(event=AuditEvent.USER_BLOCKED if one.after.blocked else AuditEvent.USER_UNBLOCKED))
    if "administrator" in one.fields and one.administrator:
        notes.append(AuditNote(event=AuditEvent.ROLE_ASSIGNED, details={"role": ADMINISTRATOR_ROLE}))
    return tuple(notes)


def user_removal(user: User) -> Change:
    return USER.removal(user, RemoveUser(user), AuditNote(event=AuditEvent.USER_REMOVED))
