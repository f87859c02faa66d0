"""Remedies of an answer on a page: each step in words, with the form that reviews it and comes back."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape
from msgspec import Struct

from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.evaluation.loader import EvaluationInput
from gatehouse.permissions.explanation.contributions import GroupReference
from gatehouse.permissions.explanation.failed_tests import FailedTest
from gatehouse.permissions.explanation.remedies import Remedy, RemedyStep, StepKind
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.web.console.paths import ConsoleEntry

REMOVE: Final = "remove"
MAX_NEEDS: Final = 4


class Review(Struct, frozen=True, kw_only=True):
    """A button that leads to the review of one change; a GET if it has no fields."""

    address: str
    fields: Sequence[tuple[str, str]] = ()


class RemedyLine(Struct, frozen=True, kw_only=True):
    """One step. The text is `access.step_<kind>`; `by` and `may` say who may make it."""

    step: RemedyStep
    role: Markup
    group: Markup
    place: Markup  # of the ban, or the project of the step
    review: Review | None

    @property
    def needs(self) -> Sequence[FailedTest]:
        return self.step.needs[:MAX_NEEDS]


class RemedyView(Struct, frozen=True, kw_only=True):
    lines: Sequence[RemedyLine]
    remedy: Remedy


class Nouns(Struct, frozen=True, kw_only=True):
    """Names as links to their pages, for readers who may open these."""

    authenticated: AuthenticatedRequest
    evaluation_input: EvaluationInput
    application_id: int

    def role(self, name: str) -> Markup:
        may = is_open(self.authenticated.rights, Operation.ROLES_GET, self.authenticated.target)
        return link_to(role_address(self.application_id, name), name) if may and name else escape(name)

    def project(self, project_id: str) -> Markup:
        model = self.evaluation_input.structure.projects.get(project_id)
        if model is None or not self._may(Operation.PROJECT_GET, project_id):
            return escape(project_id)
        return link_to(f"{ConsoleEntry.PROJECTS.path}/{project_id}", model.project.title or project_id)

    def group(self, scope: Scope, group: GroupReference) -> Markup:
        name = group.title or group.group_id
        if not self._may(Operation.GROUP_GET, scope.project_id, group.group_id):
            return escape(name)
        return link_to(f"{ConsoleEntry.PROJECTS.path}/{scope.project_id}/groups/{group.group_id}", name)

    def groups(self, scope: Scope, groups: Sequence[GroupReference]) -> Markup:
        return Markup(", ").join(self.group(scope, one) for one in groups)

    def application(self) -> Markup:
        name = self.evaluation_input.models[self.application_id].application.name
        if not is_open(self.authenticated.rights, Operation.APPLICATION_GET, self.authenticated.target):
            return escape(name)
        return link_to(f"{ConsoleEntry.APPLICATIONS.path}/{self.application_id}", name)

    def _may(self, operation: Operation, project_id: str, group_id: str | None = None) -> bool:
        return is_open(self.authenticated.rights, operation, GuardTarget(project_id=project_id, group_id=group_id))


class RemedyPages(Struct, frozen=True, kw_only=True):
    """Where each step is reviewed. `back`: the page that asked; it is shown again when the step was made."""

    nouns: Nouns
    user_id: str
    rule: Rule
    back: str

    def views(self, remedies: Sequence[Remedy]) -> Sequence[RemedyView]:
        return [RemedyView(lines=[self.line(step) for step in one.steps], remedy=one) for one in remedies]

    def line(self, step: RemedyStep) -> RemedyLine:
        nouns = self.nouns
        return RemedyLine(
            step=step,
            role=nouns.role(step.role),
            group=nouns.group(step.scope, step.group) if step.group else Markup(),
            place=nouns.application() if step.application_id else nouns.project(step.scope.project_id),
            review=self.review(step) if step.may else None,
        )

    def review(self, step: RemedyStep) -> Review | None:
        """The review of the step in the console; None where the console has none."""
        role = Review(address=role_address(self.nouns.application_id, step.role))
        match step.kind:
            case StepKind.ASSIGN_ROLE | StepKind.REMOVE_ROLE:
                return self._assignment_review(step)
            case StepKind.ALLOW_IN_ROLE | StepKind.UNSET_IN_ROLE:
                return self._matrix_review(step) if self._saves_schema else role
            case StepKind.ADD_TO_GROUP | StepKind.REMOVE_FROM_GROUP:
                return self._group_review(step)
            case StepKind.LIFT_BAN | StepKind.MEET_CONDITION:
                return self._person_review(step) if self.nouns.authenticated.rights.administers else None
            case StepKind.RAISE_LIMIT:
                return role
            case _:
                return None

    @property
    def _saves_schema(self) -> bool:
        return is_open(self.nouns.authenticated.rights, Operation.SCHEMA_SAVE, self.nouns.authenticated.target)

    @property
    def _application(self) -> str:
        return f"{ConsoleEntry.APPLICATIONS.path}/{self.nouns.application_id}"

    def _assignment_review(self, step: RemedyStep) -> Review | None:
        if step.scope.kind is not None:
            return None
        return assignment_review(
            self.nouns.application_id,
            self.user_id,
            step.role,
            project_id=step.scope.project_id,
            until=REMOVE if step.kind is StepKind.REMOVE_ROLE else "",
            back=self.back,
        )

    def _matrix_review(self, step: RemedyStep) -> Review:
        value = "allow" if step.kind is StepKind.ALLOW_IN_ROLE else "default"
        return matrix_review(self.nouns.application_id, str(self.rule), step.role, value, back=self.back)

    def _person_review(self, step: RemedyStep) -> Review:
        person = f"{ConsoleEntry.PEOPLE.path}/{self.user_id}"
        if step.kind is StepKind.MEET_CONDITION:
            return Review(address=f"{person}#tags")
        ban = {"application_id": str(step.application_id or ""), "project_id": step.project_id}
        return Review(address=f"{person}/bans/lift?{urlencode({**ban, 'back': self.back})}")

    def _group_review(self, step: RemedyStep) -> Review | None:
        project = self.nouns.evaluation_input.structure.projects.get(step.scope.project_id)
        group = project.groups.get(step.group.group_id) if project and step.group else None
        if group is None:
            return None
        name = "add" if step.kind is StepKind.ADD_TO_GROUP else "drop"
        address = f"{ConsoleEntry.PROJECTS.path}/{group.project_id}/groups/{group.group_id}/access"
        fields = [(name, self.user_id), ("version", str(group.version)), ("back", self.back)]
        return Review(address=address, fields=fields)


def assignment_review(
    application_id: int, user_id: str, role: str, *, project_id: str, until: str, back: str
) -> Review:
    """The review of one assignment. `until`: a day, a time, nothing for no end, or `remove`."""
    cell = {"row": user_id, "column": role, "scope": project_id, "value": until, "back": back}
    return Review(
        address=f"{ConsoleEntry.APPLICATIONS.path}/{application_id}/users/review",
        fields=[(name, value) for name, value in cell.items() if value],
    )


def matrix_review(application_id: int, rule: str, role: str, value: str, *, back: str) -> Review:
    """The review of one permission of a role. `value`: allow, deny or default."""
    fields = [("row", rule), ("column", role), ("value", value), ("back", back)]
    return Review(address=f"{ConsoleEntry.APPLICATIONS.path}/{application_id}/matrix/review", fields=fields)


def role_address(application_id: int, name: str) -> str:
    return f"{ConsoleEntry.ROLES.path}/{application_id}/{quote(name)}"


def link_to(address: str, name: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, name)
