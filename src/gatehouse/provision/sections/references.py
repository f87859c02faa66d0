"""Look up what an entry refers to, in the state after the stages before."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Generic, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.commands.user_schemas import refuse_unknown_rules
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import printable
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.rights.granting import refuse_protected_in_project
from gatehouse.provision.model import Change, FollowUpProblem, Problems, StoredState, one_line
from gatehouse.provision.sections.section import Context, Located, Options, ProvisionFile, SectionPlan

E = TypeVar("E", bound=Struct)


class Absent(Malformed):
    """Something is missing that the file adds: its own entry was refused."""


@contextmanager
def collect_problems(problems: Problems) -> Iterator[None]:
    """Collect a refusal, whose text names its place, as a problem."""
    try:
        yield
    except Absent as error:
        problems.lines.append(FollowUpProblem(one_line(str(error))))
    except BadInput as error:
        problems.lines.append(one_line(str(error)))


@contextmanager
def refusals_at(place: str) -> Iterator[None]:
    """Turn a refusal of the API into a problem of the file at this place."""
    try:
        yield
    except (Conflict, NotFound, Refused) as error:
        raise Malformed(f"{place}: {error.public}") from None


def known_user_ids(state: StoredState, file: ProvisionFile) -> AbstractSet[str]:
    named = {located.entry.user_id for located in file.entries_of("users") if located.entry.user_id is not UNSET}
    return {user.user_id for user in state.users} | named | state.permissions.service_accounts.keys()


class References:
    """`users`: the result of known_user_ids, so that a planner computes it once."""

    def __init__(self, state: StoredState, file: ProvisionFile, users: AbstractSet[str] | None = None) -> None:
        self._permissions = state.permissions
        self._file = file
        self._users = known_user_ids(state, file) if users is None else users

    def missing_error(self, name: object, words: str) -> Malformed:
        """The error for something that does not exist."""
        return Absent(words) if str(name) in names_in_file(self._file) else Malformed(words)

    def user(self, user_id: object, place: str) -> str:
        checked = grammar.check_user_id(user_id, place)
        if checked not in self._users:
            raise Malformed(f"{place}: no user {checked}")
        return checked

    def person(self, user_id: object, place: str) -> str:
        checked = self.user(user_id, place)
        if checked in self._permissions.service_accounts:
            raise Malformed(f"{place}: {checked} is a service account")
        return checked

    def project(self, name: object, place: str) -> ProjectModel:
        """By id or alias, if it is not removed."""
        found = self._permissions.project(grammar.check_project_id(name, place))
        if found is None:
            raise self.missing_error(name, f"{place}: no project {printable(name)}")
        if found.project.removed:
            raise Malformed(f"{place}: the project {printable(name)} was removed")
        return found

    def group(self, project: ProjectModel, name: object, place: str) -> Group:
        """By id or title."""
        by_title = {group.title_key: group for group in project.groups.values()}
        if isinstance(name, str):
            found = project.groups.get(name) or by_title.get(name.lower().replace(" ", "_"))
            if found is not None:
                return found
        raise self.missing_error(
            name, f"{place}: {printable(name)} is not a group of project {project.project.project_id}"
        )

    def application(self, application_id: int) -> ApplicationModel | None:
        """None unless it is live."""
        found = self._permissions.applications.get(application_id)
        return found if found is not None and self._permissions.is_live(found.application) else None

    def refuse_unknown_resources(self, scopes: Iterable[Scope], place: str) -> None:
        for scope in scopes:
            if not self._permissions.has_scope(scope):
                words = f"project {scope.project_id} has no {scope.kind} with the ID {scope.resource_id}"
                raise self.missing_error(scope.resource_id, f"{place}: {words}")

    def with_group_ids(self, document: object, project_name: object, place: str) -> object:
        """The same document with the ids of groups that are named by title."""
        if not isinstance(document, Mapping) or not isinstance(document.get("groups"), Mapping):
            return document
        project = self.project(project_name, place)
        groups = {
            self.group(project, name, f"{place}.groups").group_id: held for name, held in document["groups"].items()
        }
        return {**document, "groups": groups}


def names_in_file(file: ProvisionFile) -> AbstractSet[str]:
    """Ids, titles and aliases of the projects, groups and applications in the file."""
    projects = [located.entry for located in file.entries_of("projects")]
    groups = [located.entry for located in file.entries_of("groups")]
    given = [one.id for one in projects] + [one.title for one in (*projects, *groups)]
    given += [group.group_id for group in groups]
    given += [located.entry.application_id for located in file.entries_of("applications")]
    given += [alias for project in projects if project.aliases is not UNSET for alias in project.aliases or ()]
    names = {str(name) for name in given if name is not UNSET}
    return names | {grammar.project_id_of(name) for name in names}


def refuse_invalid_record(model: ApplicationModel, before: UserRecord, after: UserRecord, place: str) -> None:
    """What any user may hold: existing roles, protected ones only at the root, no conflicting rules (R5)."""
    for scope, held in after.scopes.items():
        known = {one.role for one in before.scopes.get(scope, NO_HOLDINGS).roles}
        for one in held.roles:
            role = model.roles.get(one.role)
            if role is None:
                number = model.application.application_id
                raise Malformed(f"{place}: application {number} has no role {one.role}")
            if one.role not in known:
                refuse_protected_in_project(role, scope, f"{place}: ")
    refuse_unknown_rules(model, before, after, place)


class EntryPlanner(ABC, Generic[E]):
    """Plans entry after entry, each on the state after the ones before."""

    def __init__(self, state: StoredState, context: Context, options: Options) -> None:
        self.changes: list[Change] = []
        self.problems = Problems()
        self._state = state
        self._permissions = state.permissions  # with what the entries before change
        self._context = context
        self._options = options
        self._places: dict[Hashable, str] = {}  # of the records that entries are about
        self._users = known_user_ids(state, context.file)

    @abstractmethod
    def plan_entry(self, located: Located[E]) -> Change | Iterable[Change] | None:
        """The changes of an entry. Raises BadInput."""

    def removals(self) -> Iterable[Change]:
        """Remove for --prune what no entry is about."""
        return ()

    @classmethod
    def plan(
        cls, entries: Iterable[Located[E]], state: StoredState, context: Context, options: Options
    ) -> SectionPlan:
        return cls(state, context, options).plan_entries(entries)

    def plan_entries(self, entries: Iterable[Located[E]]) -> SectionPlan:
        for located in entries:
            with collect_problems(self.problems):
                changes = self.plan_entry(located)
                self.changes += [changes] if isinstance(changes, Change) else changes or ()
        if self._options.prune:
            self.changes += self.removals()
        return SectionPlan(changes=tuple(self.changes), problems=tuple(self.problems.lines))

    def references(self) -> References:
        return References(self.state_now(), self._context.file, self._users)

    def state_now(self) -> StoredState:
        """With what the entries before change."""
        return replace(self._state, permissions=self._permissions)

    def refuse_second_entry(self, record: Hashable, what: str, place: str) -> None:
        first = self._places.setdefault(record, place)
        if first != place:
            raise Malformed(f"{place}: is the same {what} as {first}")


def central_application(state: StoredState) -> ApplicationModel:
    return state.permissions.applications[CENTRAL_APPLICATION]


def holdings_in_project(record: UserRecord, project_id: str) -> dict[Scope, ScopeHoldings]:
    return {scope: held for scope, held in record.scopes.items() if scope.project_id == project_id}
