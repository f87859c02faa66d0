"""From wanted accounts and the stored state to changes. Pure: no hash is made here and nothing is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import UNSET

from gatehouse.accounts.model import ADMINISTRATOR, Kind, User
from gatehouse.audit.events import Event
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, AddUser, Change, ChangeUser, Note, RemoveUser, State
from gatehouse.provision.sections.section import Draft, chosen
from gatehouse.provision.sections.user_entry import FoundUser, WantedUser

# What a file calls a field, and what the account calls it.
SECRETS: Final[Mapping[str, str]] = {"password": "password_hash", "totp_secret": "sealed_totp"}
PLAIN: Final = (
    *("login", "nick", "lang", "country", "tags", "purchases"),
    *("email_verified", "phone_verified", "blocked"),
)
FIELDS: Final[Mapping[str, str]] = {**{name: name for name in PLAIN}, **SECRETS}
CLEARED: Final = User(user_id="", login=None, nick="", reg_time=0)
ENDS_TOKENS: Final = frozenset({"password", "totp_secret", "blocked"})  # checklist LG-20


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """An account as it is and as it shall be."""

    place: str
    before: User | None
    after: User
    was_administrator: bool
    administrator: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what differs."""
        before = self.before or CLEARED
        names = [name for name, own in FIELDS.items() if getattr(before, own) != getattr(self.after, own)]
        return (*names, "administrator") if self.administrator != self.was_administrator else tuple(names)

    @property
    def administers(self) -> bool:
        return self.administrator and not self.after.blocked


def plan_users(wanted: Sequence[WantedUser], state: State, *, now: int, prune: bool) -> Draft:
    problems = Problems()
    merged = [merge(one, state, now, problems) for one in wanted]
    surplus = unnamed(merged, state) if prune else ()
    spared = last_administrator(merged, surplus, state)
    removed = [user for user in surplus if user is not spared]
    check_logins(merged, removed, state, problems)
    check_administrators(merged, removed, state, problems)
    return Draft(
        changes=(*map(removal, removed), *(change_of(one) for one in merged if one.before is None or one.fields)),
        problems=tuple(problems.lines),
        spared=() if spared is None else (f"user {name_of(spared)} is kept as the last administrator",),
    )


def merge(wanted: WantedUser, state: State, now: int, problems: Problems) -> Merged:
    found = wanted.found
    base = found.before or blank(found, now, problems)
    held = found.user_id in state.administrators
    given = {name: getattr(found.entry, name) for name in PLAIN}
    given |= {own: getattr(wanted, own) for own in SECRETS.values()}
    after = {
        own: chosen(value, kept=getattr(base, own), cleared=getattr(CLEARED, own)) for own, value in given.items()
    }
    return Merged(
        place=found.place,
        before=found.before,
        after=replace(base, **after),
        was_administrator=held,
        administrator=chosen(found.entry.administrator, kept=held, cleared=False),
    )


def blank(found: FoundUser, now: int, problems: Problems) -> User:
    for name in ("login", "nick"):
        if getattr(found.entry, name) is UNSET:
            problems.add(found.place, f"a new user needs a {name}")
    return replace(CLEARED, user_id=found.user_id, reg_time=now)


def unnamed(merged: Sequence[Merged], state: State) -> tuple[User, ...]:
    named = {one.after.user_id for one in merged}
    return tuple(user for user in state.users if user.kind is Kind.PERSON and user.user_id not in named)


def last_administrator(merged: Sequence[Merged], surplus: Sequence[User], state: State) -> User | None:
    """Whom --prune has to spare so that somebody can still administer: the one who has done so longest."""
    gone = {user.user_id for user in surplus}
    if any(one.administers for one in merged) or administering(state) - gone - {one.after.user_id for one in merged}:
        return None
    candidates = [user for user in surplus if user.user_id in administering(state)]
    return min(candidates, key=lambda user: (user.reg_time, user.user_id), default=None)


def administering(state: State) -> frozenset[str]:
    """Who can administer now: holds the role and is not blocked."""
    return frozenset(
        user.user_id for user in state.users if user.user_id in state.administrators and not user.blocked
    )


def check_administrators(merged: Sequence[Merged], removed: Sequence[User], state: State, problems: Problems) -> None:
    before = administering(state)
    settled = {user.user_id for user in removed} | {one.after.user_id for one in merged}
    if not before or before - settled or any(one.administers for one in merged):
        return
    for one in merged:
        if one.after.user_id in before:
            problems.add(one.place, "is the last administrator and must stay one, unblocked")


def check_logins(merged: Sequence[Merged], removed: Sequence[User], state: State, problems: Problems) -> None:
    """A login has one owner at every moment, so two accounts do not swap theirs in one go."""
    gone = {user.user_id for user in removed}
    owners = {user.login_key: user.user_id for user in state.users if user.login and user.user_id not in gone}
    for one in merged:
        owner = owners.setdefault(one.after.login_key, one.after.user_id)
        if owner != one.after.user_id:
            problems.add(f"{one.place}.login", f"belongs to user {owner}")


def change_of(one: Merged) -> Change:
    after = one.after
    if one.before is None:
        return Change(
            action=Action.ADD,
            kind="user",
            name=name_of(after),
            act=AddUser(after, one.administrator),
            subject=after.user_id,
            notes=(created(one),),
        )
    role = one.administrator if "administrator" in one.fields else None
    return Change(
        action=Action.CHANGE,
        kind="user",
        name=name_of(one.before),
        fields=one.fields,
        act=ChangeUser(after, role, ends_tokens=not ENDS_TOKENS.isdisjoint(one.fields)),
        subject=after.user_id,
        notes=changed(one),
    )


def created(one: Merged) -> Note:
    return Note(
        event=Event.USER_CREATED,
        details={"administrator": one.administrator},
        personal={"login": one.after.login or "", "nick": one.after.nick},
    )


def changed(one: Merged) -> tuple[Note, ...]:
    """The general event, and those that people look for by name."""
    notes = [Note(event=Event.USER_CHANGED, details={"fields": ", ".join(one.fields)})]
    if "blocked" in one.fields:
        notes.append(Note(event=Event.USER_BLOCKED if one.after.blocked else Event.USER_UNBLOCKED))
    if "administrator" in one.fields and one.administrator:
        notes.append(Note(event=Event.ROLE_ASSIGNED, details={"role": ADMINISTRATOR}))
    return tuple(notes)


def removal(user: User) -> Change:
    return Change(
        action=Action.REMOVE,
        kind="user",
        name=name_of(user),
        act=RemoveUser(user),
        subject=user.user_id,
        notes=(Note(event=Event.USER_REMOVED),),
    )


def name_of(user: User) -> str:
    return user.login or user.user_id
