"""Accounts of people. Service accounts belong to a project and will have a section of their own."""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from gatehouse.accounts.logins import login_key
from gatehouse.accounts.model import AccountKind, User
from gatehouse.kernel.ids import new_user_id
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import ReadScope, StoredState
from gatehouse.provision.sections.section import Context, Located, Options, SectionPlan, gather_in_batches
from gatehouse.provision.sections.user_entry import FoundUser, UserFileEntry, check_entry
from gatehouse.provision.sections.user_plan import PLAIN_FIELDS, plan_users
from gatehouse.provision.sections.user_secrets import resolve_user_secrets, secrets_document


class UserSection:
    name = "users"
    entry = UserFileEntry

    def read_scope(self, entries: Sequence[Located[UserFileEntry]], *, prune: bool) -> ReadScope:
        given = [placed.entry for placed in entries]
        return ReadScope(
            all_users=prune,
            user_ids=frozenset(entry.user_id for entry in given if entry.user_id is not UNSET),
            login_keys=frozenset(login_key(entry.login) for entry in given if entry.login is not UNSET),
        )

    async def plan(
        self, entries: Sequence[Located[UserFileEntry]], state: StoredState, context: Context, options: Options
    ) -> SectionPlan:
        problems = Problems()
        found = resolve_users(entries, state, problems)
        if problems.lines:
            return SectionPlan(problems=tuple(problems.lines))
        wanted = await gather_in_batches([resolve_user_secrets(one, context, options, problems) for one in found])
        draft = plan_users(wanted, state, now=context.now, prune=options.prune)
        return SectionPlan(changes=draft.changes, problems=(*problems.lines, *draft.problems), spared=draft.spared)

    def export_documents(self, state: StoredState, context: Context, *, secrets: bool) -> list[Document]:
        return [
            user_document(user, context, administrator=user.user_id in state.administrators, secrets=secrets)
            for user in state.users
            if user.kind is AccountKind.PERSON
        ]


def resolve_users(
    entries: Sequence[Located[UserFileEntry]],
    state: StoredState,
    problems: Problems,
    new_id: Callable[[], str] = new_user_id,
) -> list[FoundUser]:
    """Find each entry's account: by its user_id if it names one, else by its login in any spelling."""
    index = UserIndex(state)
    # Ids the file names are reserved before any is made up (R7).
    taken = {placed.entry.user_id for placed in entries if placed.entry.user_id is not UNSET} | set(index.by_id)
    found = []
    for placed in entries:
        entry = check_entry(placed.entry, placed.place, problems)
        before = index.find_account(entry, placed.place, problems)
        user_id = user_id_for(entry, before, taken, new_id)
        taken.add(user_id)
        found.append(FoundUser(place=placed.place, entry=entry, before=before, user_id=user_id))
    refuse_duplicates(found, problems)
    return found


class UserIndex:
    def __init__(self, state: StoredState) -> None:
        self.by_id = {user.user_id: user for user in state.users}
        self._by_login = {user.login_key: user for user in state.users if user.login is not None}
        self._retired = state.retired_user_ids

    def find_account(self, entry: UserFileEntry, place: str, problems: Problems) -> User | None:
        if entry.user_id is not UNSET:
            return self._find_by_user_id(entry.user_id, place, problems)
        if entry.login is not UNSET:
            return self._by_login.get(login_key(entry.login))
        problems.add(place, "needs a user_id or a login")
        return None

    def _find_by_user_id(self, user_id: str, place: str, problems: Problems) -> User | None:
        user = self.by_id.get(user_id)
        if user is not None and user.kind is not AccountKind.PERSON:
            problems.add(f"{place}.user_id", f"{user_id} is a service account")
        if user_id in self._retired:
            problems.add(f"{place}.user_id", f"{user_id} belonged to a removed account; IDs are never reused")
        return user


def user_id_for(entry: UserFileEntry, before: User | None, taken: set[str], new_id: Callable[[], str]) -> str:
    if before is not None:
        return before.user_id
    if entry.user_id is not UNSET:
        return entry.user_id
    user_id = new_id()
    while user_id in taken:
        user_id = new_id()
    return user_id


def refuse_duplicates(found: Sequence[FoundUser], problems: Problems) -> None:
    first: dict[str, str] = {}
    for one in found:
        names = [one.user_id] if one.entry.login is UNSET else [one.user_id, login_key(one.entry.login)]
        earlier = {first.setdefault(name, one.place) for name in names} - {one.place}
        if earlier:
            problems.add(one.place, f"is the same account as {min(earlier)}")


def user_document(user: User, context: Context, *, administrator: bool, secrets: bool) -> Document:
    given = {name: getattr(user, name) for name in PLAIN_FIELDS}
    given |= {name: sorted(given[name]) for name in ("tags", "purchases")}
    hidden = secrets_document(user, context) if secrets else {}
    return {"user_id": user.user_id, **given, "administrator": administrator, **hidden}
