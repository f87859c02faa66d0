"""Accounts of people. Service accounts belong to a project and will have a section of their own."""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from gatehouse.accounts.logins import login_key
from gatehouse.accounts.model import Kind, User
from gatehouse.kernel.ids import new_user_id
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Scope, State
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools, few_at_a_time
from gatehouse.provision.sections.user_entry import FoundUser, UserEntry, checked
from gatehouse.provision.sections.user_plan import PLAIN, plan_users
from gatehouse.provision.sections.user_secrets import secrets_document, settled


class UserSection:
    name = "users"
    entry = UserEntry

    def scope(self, entries: Sequence[Placed[UserEntry]], *, prune: bool) -> Scope:
        given = [placed.entry for placed in entries]
        return Scope(
            all_users=prune,
            user_ids=frozenset(entry.user_id for entry in given if entry.user_id is not UNSET),
            login_keys=frozenset(login_key(entry.login) for entry in given if entry.login is not UNSET),
        )

    async def draft(self, entries: Sequence[Placed[UserEntry]], state: State, tools: Tools, terms: Terms) -> Draft:
        problems = Problems()
        found = identify(entries, state, problems)
        if problems.lines:
            return Draft(problems=tuple(problems.lines))
        wanted = await few_at_a_time([settled(one, tools, terms, problems) for one in found])
        draft = plan_users(wanted, state, now=tools.now, prune=terms.prune)
        return Draft(changes=draft.changes, problems=(*problems.lines, *draft.problems), spared=draft.spared)

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:
        return [
            document(user, tools, administrator=user.user_id in state.administrators, secrets=secrets)
            for user in state.users
            if user.kind is Kind.PERSON
        ]


def identify(
    entries: Sequence[Placed[UserEntry]],
    state: State,
    problems: Problems,
    new_id: Callable[[], str] = new_user_id,
) -> list[FoundUser]:
    """Find each entry's account: by its user_id if it names one, else by its login in any spelling."""
    index = Index(state)
    # Ids the file names are reserved before any is made up (R7).
    taken = {placed.entry.user_id for placed in entries if placed.entry.user_id is not UNSET} | set(index.by_id)
    found = []
    for placed in entries:
        entry = checked(placed.entry, placed.place, problems)
        before = index.account_of(entry, placed.place, problems)
        user_id = identity(entry, before, taken, new_id)
        taken.add(user_id)
        found.append(FoundUser(place=placed.place, entry=entry, before=before, user_id=user_id))
    refuse_doubles(found, problems)
    return found


class Index:
    def __init__(self, state: State) -> None:
        self.by_id = {user.user_id: user for user in state.users}
        self._by_login = {user.login_key: user for user in state.users if user.login is not None}
        self._retired = state.retired_user_ids

    def account_of(self, entry: UserEntry, place: str, problems: Problems) -> User | None:
        if entry.user_id is not UNSET:
            return self._by_user_id(entry.user_id, place, problems)
        if entry.login is not UNSET:
            return self._by_login.get(login_key(entry.login))
        problems.add(place, "needs a user_id or a login")
        return None

    def _by_user_id(self, user_id: str, place: str, problems: Problems) -> User | None:
        user = self.by_id.get(user_id)
        if user is not None and user.kind is not Kind.PERSON:
            problems.add(f"{place}.user_id", f"{user_id} is a service account")
        if user_id in self._retired:
            problems.add(f"{place}.user_id", f"{user_id} belonged to a removed account; IDs are never reused")
        return user


def identity(entry: UserEntry, before: User | None, taken: set[str], new_id: Callable[[], str]) -> str:
    if before is not None:
        return before.user_id
    if entry.user_id is not UNSET:
        return entry.user_id
    user_id = new_id()
    while user_id in taken:
        user_id = new_id()
    return user_id


def refuse_doubles(found: Sequence[FoundUser], problems: Problems) -> None:
    first: dict[str, str] = {}
    for one in found:
        names = [one.user_id] if one.entry.login is UNSET else [one.user_id, login_key(one.entry.login)]
        earlier = {first.setdefault(name, one.place) for name in names} - {one.place}
        if earlier:
            problems.add(one.place, f"is the same account as {min(earlier)}")


def document(user: User, tools: Tools, *, administrator: bool, secrets: bool) -> Document:
    given = {name: getattr(user, name) for name in PLAIN}
    given |= {name: sorted(given[name]) for name in ("tags", "purchases")}
    hidden = secrets_document(user, tools) if secrets else {}
    return {"user_id": user.user_id, **given, "administrator": administrator, **hidden}
