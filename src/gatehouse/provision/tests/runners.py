"""Run permission tests, on a model in memory or on a running service.

The model is what apply would make of an empty installation.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from secrets import token_bytes
from typing import Any, Final

from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION, User, check_login, login_key, login_keys
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.documents.records import parse_assignments
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.contributions import direct_entries
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.evaluation.loader import EvaluationInput as Bench
from gatehouse.permissions.explanation.reasons import explain_rule
from gatehouse.permissions.explanation.wording import explanation_sentences
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.facts import (
    ApplicationModel,
    ApplicationState,
    Facts,
    ScopeHoldings,
    Structure,
    UserRecord,
)
from gatehouse.permissions.model.rules import ROOT, End, Rule, Scope
from gatehouse.permissions.questions.explain import known_rules
from gatehouse.permissions.questions.parsing import ResourceDraft, RuleReference, read_scope
from gatehouse.permissions.rights.granting import PROJECT_OWNER
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSeal, SecretResolver
from gatehouse.provision.model import PermissionState, StoredState, ignore_progress
from gatehouse.provision.plan import SECTIONS, FileAttempt, resolve_sections
from gatehouse.provision.sections.references import References, refuse_invalid_record
from gatehouse.provision.sections.section import Context, Options, ProvisionFile, read_entries
from gatehouse.provision.tests.cases import CaseFailure, ExpectedPermission, HypotheticalPerson, PermissionCase
from gatehouse.provision.tests.model import empty_state, run_on_empty_installation

SECRET_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {"users": ("password",), "applications": ("access_keys",)}
ANY_TOTP: Final = "JBSWY3DPEHPK3PXP"  # a fact is whether a user has one, not which
WITHOUT_EFFECT: Final = ("clients", "settings")  # on permissions
UNKNOWN_RULE: Final = "The rule is not in the schema of the application, and no role or entry contains it."


async def build_model_runner(document: Document, clock: Clock) -> "ModelRunner":
    """A runner on the model of these sections, without secrets: no permission depends on them. Raises Unfit."""
    now = clock.now()
    entries = read_entries(without_secrets(document), SECTIONS)
    file = ProvisionFile({one.section.name: one.entries for one in entries})
    masters = MasterKeys(token_bytes(32))
    tools = Context(
        masters=masters,
        seal=FileSeal(masters),
        passwords=Passwords(PasswordCost(memory_kib=8, time_cost=1, workers=1)),
        rules=PasswordRules(),
        file=file,
        now=now,
    )
    terms = Options(secrets=SecretResolver(environment={}, read_file=refuse_file), allow_weak=True)
    resolved = await resolve_sections(entries, empty_state(now), tools, terms, ignore_progress)
    attempt = FileAttempt(resolved, tools, terms, ignore_progress)
    return ModelRunner(run_on_empty_installation(attempt.run, now), file, now)


def without_secrets(document: Document) -> Document:
    kept: dict[str, Any] = {name: records for name, records in document.items() if name not in WITHOUT_EFFECT}
    kept = deepcopy(kept)
    for name, fields in SECRET_FIELDS.items():
        for record in dicts_in(kept.get(name)):
            for field in fields:
                record.pop(field, None)
    for user in dicts_in(kept.get("users")):
        if user.get("totp_secret") is not None:
            user["totp_secret"] = ANY_TOTP
    for application in dicts_in(kept.get("applications")):
        meta = application.get("service_meta")
        if isinstance(meta, dict):
            meta.pop("private_key", None)
    return kept


def dicts_in(records: object) -> list[dict[str, Any]]:
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def refuse_file(path: str) -> str:
    raise BadInput(f"{path} is not read for a test")


class ModelRunner:
    def __init__(self, state: StoredState, file: ProvisionFile, now: int) -> None:
        self._state = state
        self._now = now
        self._references = References(state, file)
        self._structure = build_structure(state.permissions)

    def failures(self, case: PermissionCase) -> list[CaseFailure]:
        """The failures of a case. Raises Malformed for what the model does not have."""
        found = []
        for question in case.questions:
            sentences = self._failure_sentences(case, question)
            if sentences is not None:
                found.append(CaseFailure(expected=expectation_text(question), sentences=sentences))
        if case.roles is not None and case.user is not None:
            found += self._role_failures(case, case.user, case.roles)
        return found

    def _failure_sentences(self, case: PermissionCase, question: ExpectedPermission) -> tuple[str, ...] | None:
        """The failure of one expectation, or None."""
        model, bench = self._application_model(case), self._evaluation_input(case, question.user)
        known = known_rules(bench, case.application_id)
        explanation = explain_rule(
            model,
            bench.facts,
            bench.structure,
            self._scope(case),
            question.rule.resolve(known),
            now=self._now if case.at is None else case.at,
            address=case.address,
            holders=self._holders(case.application_id),
        )
        if explanation.allowed is not (question.expected == "may"):
            return tuple(explanation_sentences(explanation))
        return None if self._is_known_rule(case.application_id, question.rule, known) else (UNKNOWN_RULE,)

    def _is_known_rule(self, application_id: int, asked: RuleReference, known: frozenset[Rule]) -> bool:
        """Whether any user could hold the rule: `may_not` with a misspelled name would always pass."""
        entries = (
            direct_entries(held)
            for (number, _), record in self._state.permissions.records.items()
            for held in record.scopes.values()
            if number == application_id
        )
        return not known.union(*entries).isdisjoint(asked.rules)

    def _role_failures(
        self, case: PermissionCase, user: str | HypotheticalPerson, wanted: tuple[str, ...]
    ) -> list[CaseFailure]:
        model, bench = self._application_model(case), self._evaluation_input(case, user)
        now = self._now if case.at is None else case.at
        held = evaluate(model, bench.facts, bench.structure, now=now, address=case.address)
        names = sorted(one.role.name for one in held.granted_roles(self._scope(case)).values())
        if sorted(name.lower() for name in wanted) == sorted(name.lower() for name in names):
            return []
        sentence = f"The roles there are {', '.join(names)}." if names else "There are no roles there."
        return [
            CaseFailure(
                expected=f"{user_text(user)} has the roles {', '.join(sorted(wanted))}", sentences=(sentence,)
            )
        ]

    def _application_model(self, case: PermissionCase) -> ApplicationModel:
        found = self._references.application(case.application_id)
        if found is None:
            raise Malformed(f"{case.place}.application: the model has no application {case.application_id}")
        return found

    def _scope(self, case: PermissionCase) -> Scope:
        if case.project is None:
            return ROOT
        project = self._references.project(case.project, f"{case.place}.project")
        resource = case.resource
        if resource is not None and resource.kind == "groups":
            group = self._references.group(project, resource.id, f"{case.place}.resource.id")
            resource = ResourceDraft(kind="groups", id=group.group_id)
        scope = read_scope(project.project.project_id, resource, case.place)
        self._references.refuse_unknown_resources((scope.scope,), f"{case.place}.resource")
        return scope.scope

    def _evaluation_input(self, case: PermissionCase, user: str | HypotheticalPerson) -> Bench:
        facts = (
            self._facts_of_user(self._user(user, case), case)
            if isinstance(user, str)
            else self._facts_of_person(user, self._application_model(case), case.place)
        )
        return Bench(
            facts=facts, models={case.application_id: self._application_model(case)}, structure=self._structure
        )

    def _user(self, name: str, case: PermissionCase) -> User:
        """By id or login."""
        users = self._state.users
        named = {user.login_key: user for user in users if user.login is not None} | {
            user.user_id: user for user in users
        }
        for key in (name, *login_keys(name)):
            if key in named:
                return named[key]
        account = self._state.permissions.service_accounts.get(name)
        if account is None:
            raise Malformed(f"{case.place}: the model has no user {name}")
        return User(user_id=name, login=None, nick=account.name, reg_time=0)

    def _facts_of_user(self, user: User, case: PermissionCase) -> Facts:
        permissions, user_id = self._state.permissions, user.user_id
        groups = (group for model in permissions.projects.values() for group in model.groups.values())
        domain = (user.login_key or "").rpartition("@")[2] if user.email_verified else ""
        return Facts(
            subject=ConditionSubject(
                user_id=user_id, domain=domain or None, tags=user.all_tags, purchases=user.all_purchases
            ),
            login=user.login,
            blocked=user.blocked,
            rev=0,
            has_strong_factor=user.sealed_totp is not None,
            groups=frozenset(group.group_id for group in groups if user_id in group.users),
            owns=owned_projects(permissions.record(CENTRAL_APPLICATION, user_id)),
            service_account=permissions.service_accounts.get(user_id),
            records={case.application_id: permissions.record(case.application_id, user_id)},
            applications=self._applications(case.application_id),
        )

    def _facts_of_person(self, person: HypotheticalPerson, model: ApplicationModel, place: str) -> Facts:
        number = model.application.application_id
        roles = parse_assignments(list(person.roles), place=f"{place}.user.roles")
        blank = UserRecord(application_id=number, user_id=person.user_id)
        record = replace(blank, scopes={ROOT: ScopeHoldings(roles=roles)} if roles else {})
        refuse_invalid_record(model, blank, record, f"{place}.user")
        login = None if person.login is None else check_login(person.login)
        return Facts(
            subject=ConditionSubject(
                user_id=person.user_id,
                domain=None if login is None else login_key(login).rpartition("@")[2],
                tags=person.tags,
                purchases=person.purchases,
            ),
            login=login,
            blocked=False,
            rev=0,
            has_strong_factor=False,
            records={number: record},
            applications=self._applications(number),
        )

    def _applications(self, number: int) -> dict[int, ApplicationState]:
        model = self._state.permissions.applications[number]
        return {
            number: ApplicationState(
                application_id=number,
                project_id=model.application.project_id,
                removed=model.application.removed,
                schema_version=model.schema.version,
            )
        }

    def _holders(self, number: int) -> dict[str, int]:
        """How many users each role of the application has."""
        held: dict[str, set[str]] = {}
        for (application_id, user_id), record in self._state.permissions.records.items():
            for one in (one for held_there in record.scopes.values() for one in held_there.roles):
                if application_id == number and not one.end.is_past(self._now):
                    held.setdefault(one.role, set()).add(user_id)
        return {role: len(users) for role, users in held.items()}


def build_structure(permissions: PermissionState) -> Structure:
    connecting: dict[int, tuple[str, ...]] = dict.fromkeys(permissions.applications, ())
    for project_id, model in sorted(permissions.projects.items()):
        for number, grants in model.project.settings.services.items():
            if grants and not model.project.removed:
                connecting[number] = (*connecting.get(number, ()), project_id)
    return Structure(projects=permissions.projects, connecting=connecting)


def owned_projects(record: UserRecord) -> dict[str, End]:
    return {
        scope.project_id: role.end
        for scope, held in record.scopes.items()
        if not scope.is_root and scope.kind is None
        for role in held.roles
        if role.role == PROJECT_OWNER
    }


def expectation_text(question: ExpectedPermission) -> str:
    verb = "may" if question.expected == "may" else "may not"
    return f"{user_text(question.user)} {verb} {question.rule.text}"


def user_text(user: str | HypotheticalPerson) -> str:
    return f"user {user if isinstance(user, str) else user.login or user.user_id}"


# On a running service, through its `check` and `explain` (R6).


QUESTIONS_PER_REQUEST: Final = 100  # the limit of the API

Post = Callable[[str, Mapping[str, object]], Awaitable[Any]]  # an endpoint's name and a body; its `data`


class ServiceRunner:
    def __init__(self, post: Post) -> None:
        self._post = post

    async def failures(self, case: PermissionCase) -> list[CaseFailure]:
        """The failures of a case. Raises Malformed for what a service cannot be asked."""
        refuse_hypothetical(case)
        found = []
        by_user: dict[str, list[ExpectedPermission]] = {}
        for question in case.questions:
            by_user.setdefault(str(question.user), []).append(question)
        for user_id, questions in by_user.items():
            for start in range(0, len(questions), QUESTIONS_PER_REQUEST):
                found += await self._failures_of_user(case, user_id, questions[start : start + QUESTIONS_PER_REQUEST])
        return found

    async def _failures_of_user(
        self, case: PermissionCase, user_id: str, questions: Sequence[ExpectedPermission]
    ) -> list[CaseFailure]:
        found = []
        for question, allowed in zip(questions, await self._answers(case, user_id, questions), strict=True):
            if allowed is not (question.expected == "may"):
                explanation = await self._explain(case, user_id, question)
                sentences = tuple(str(sentence) for sentence in explanation["sentences"])
                found.append(CaseFailure(expected=expectation_text(question), sentences=sentences))
        return found

    async def _answers(
        self, case: PermissionCase, user_id: str, questions: Sequence[ExpectedPermission]
    ) -> list[bool]:
        """`check` takes no address; a case with one uses `explain`."""
        if case.address is not None:
            return [(await self._explain(case, user_id, one))["allowed"] for one in questions]
        checks = [{"rule": question.rule.text, **scope_fields(case)} for question in questions]
        data = {"user_id": user_id, "checks": checks}
        answers: list[bool] = await self._post("check", {"application_id": case.application_id, "data": data})
        return answers

    async def _explain(self, case: PermissionCase, user_id: str, question: ExpectedPermission) -> Mapping[str, Any]:
        data = {"user_id": user_id, "rule": question.rule.text, **scope_fields(case)}
        if case.address is not None:
            data["ip"] = str(case.address)
        answer: Mapping[str, Any] = await self._post("explain", {"application_id": case.application_id, "data": data})
        return answer


def scope_fields(case: PermissionCase) -> dict[str, object]:
    place: dict[str, object] = {} if case.project is None else {"project_id": case.project}
    if case.resource is not None:
        place["resource"] = {"kind": case.resource.kind, "id": case.resource.id}
    return place


def refuse_hypothetical(case: PermissionCase) -> None:
    """Refuse what only a model can answer: other people, other times, roles."""
    if case.at is not None:
        raise Malformed(f"{case.place}.at: only models can be evaluated at another time")
    if case.roles is not None:
        raise Malformed(f"{case.place}.roles: only models can be asked for roles")
    for question in case.questions:
        if not isinstance(question.user, str):
            raise Malformed(f"{case.place}: a server needs user IDs")
