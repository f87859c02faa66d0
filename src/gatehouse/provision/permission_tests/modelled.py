"""Cases put to a model: what a file would make of an empty installation, evaluated in memory."""

from collections.abc import Mapping
from copy import deepcopy
from secrets import token_bytes
from typing import Any, Final

from gatehouse.accounts.logins import check_login, login_key
from gatehouse.accounts.model import User
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.documents.records import parse_assignments
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.evaluation.gathering import direct_entries
from gatehouse.permissions.evaluation.reading import Case as Bench
from gatehouse.permissions.explanation.reasons import explain
from gatehouse.permissions.explanation.wording import words
from gatehouse.permissions.model import central
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.condition import Subject
from gatehouse.permissions.model.facts import ApplicationModel, ApplicationState, Facts, Structure
from gatehouse.permissions.model.rule import End, Rule
from gatehouse.permissions.model.scope import ROOT, Scope
from gatehouse.permissions.model.user_record import Holdings, UserRecord
from gatehouse.permissions.questions.asked import AskedRule, ResourceDraft, read_scope
from gatehouse.permissions.questions.explain import known_rules
from gatehouse.provision.document import Document
from gatehouse.provision.entries import read_entries
from gatehouse.provision.given import SecretSources
from gatehouse.provision.model import State, World
from gatehouse.provision.permission_tests.results import Failure
from gatehouse.provision.permission_tests.suite import Case, Person, Question
from gatehouse.provision.provisioning import planned
from gatehouse.provision.sealed import FileSeal
from gatehouse.provision.sections.references import References, refuse_holdings
from gatehouse.provision.sections.section import File, Terms, Tools
from gatehouse.provision.sections.table import SECTIONS

SECRETS: Final[Mapping[str, tuple[str, ...]]] = {"users": ("password",), "applications": ("access_keys",)}
ANY_TOTP: Final = "JBSWY3DPEHPK3PXP"  # whether somebody has one is a fact; which one is not
UNHEARD_OF: Final = "The rule is not in the schema of the application, and no role or entry contains it."
OWNER: Final = "project_owner"


async def model_of(document: Document, clock: Clock) -> "Model":
    """What the sections describe. Raises Unfit. Secrets are left out: none is needed to say who may what."""
    now = clock.now()
    asked = read_entries(without_secrets(document), SECTIONS)
    file = File({one.section.name: one.entries for one in asked})
    masters = MasterKeys(token_bytes(32))
    tools = Tools(
        masters=masters,
        seal=FileSeal(masters),
        passwords=Passwords(PasswordCost(memory_kib=8, time_cost=1, workers=1)),
        rules=PasswordRules(),
        file=file,
        now=now,
    )
    terms = Terms(secrets=SecretSources(environment={}, read_file=no_file), allow_weak=True)
    _, state = await planned(file, blank(now), tools, terms)
    return Model(state, file, now)


def without_secrets(document: Document) -> Document:
    kept: dict[str, Any] = {name: records for name, records in document.items() if name != "clients"}
    kept = deepcopy(kept)
    for name, fields in SECRETS.items():
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


def no_file(path: str) -> str:
    raise BadInput(f"{path} is not read for a test")


def blank(now: int) -> State:
    """An installation with application 1 and nobody in it."""
    own = ApplicationModel(
        application=central.application(now),
        schema=central.schema(now),
        roles={role.key: role for role in central.roles()},
    )
    return State(world=World(applications={CENTRAL_ID: own}, spent_application_ids=frozenset({CENTRAL_ID})))


class Model:
    def __init__(self, state: State, file: File, now: int) -> None:
        self._state = state
        self._now = now
        self._references = References(state, file)
        self._structure = structure_of(state.world)

    def failures(self, case: Case) -> list[Failure]:
        """What is otherwise than the case expects. Raises Malformed for what the model does not have."""
        found = []
        for question in case.questions:
            sentences = self._otherwise(case, question)
            if sentences is not None:
                found.append(Failure(expected=expected(question), sentences=sentences))
        if case.roles is not None and case.user is not None:
            found += self._other_roles(case, case.user, case.roles)
        return found

    def _otherwise(self, case: Case, question: Question) -> tuple[str, ...] | None:
        """Why it is not as expected; None if it is."""
        model, bench = self._model(case), self._bench(case, question.user)
        known = known_rules(bench, case.application_id)
        explanation = explain(
            model,
            bench.facts,
            bench.structure,
            self._scope(case),
            question.rule.of(known),
            now=self._now if case.at is None else case.at,
            address=case.address,
            holders=self._holders(case.application_id),
        )
        if explanation.allowed is not (question.expected == "may"):
            return tuple(words(explanation))
        return None if self._has(case.application_id, question.rule, known) else (UNHEARD_OF,)

    def _has(self, application_id: int, asked: AskedRule, known: frozenset[Rule]) -> bool:
        """Whether anybody could hold it: what is forbidden under a misspelled name would be denied for ever."""
        entries = (
            direct_entries(held)
            for (number, _), record in self._state.world.records.items()
            for held in record.scopes.values()
            if number == application_id
        )
        return not known.union(*entries).isdisjoint(asked.rules)

    def _other_roles(self, case: Case, user: str | Person, wanted: tuple[str, ...]) -> list[Failure]:
        model, bench = self._model(case), self._bench(case, user)
        now = self._now if case.at is None else case.at
        held = evaluate(model, bench.facts, bench.structure, now=now, address=case.address)
        names = sorted(one.role.name for one in held.assigned(self._scope(case)).values())
        if sorted(name.lower() for name in wanted) == sorted(name.lower() for name in names):
            return []
        told = f"The roles there are {', '.join(names)}." if names else "There are no roles there."
        return [Failure(expected=f"{shown(user)} has the roles {', '.join(sorted(wanted))}", sentences=(told,))]

    def _model(self, case: Case) -> ApplicationModel:
        found = self._references.application(case.application_id)
        if found is None:
            raise Malformed(f"{case.place}.application: the model has no application {case.application_id}")
        return found

    def _scope(self, case: Case) -> Scope:
        if case.project is None:
            return ROOT
        project = self._references.project(case.project, f"{case.place}.project")
        resource = case.resource
        if resource is not None and resource.kind == "groups":
            group = self._references.group(project, resource.id, f"{case.place}.resource.id")
            resource = ResourceDraft(kind="groups", id=group.group_id)
        asked = read_scope(project.project.project_id, resource, case.place)
        self._references.refuse_unknown_resources((asked.scope,), f"{case.place}.resource")
        return asked.scope

    def _bench(self, case: Case, user: str | Person) -> Bench:
        facts = (
            self._facts(self._user(user, case), case)
            if isinstance(user, str)
            else self._stranger(user, self._model(case), case.place)
        )
        return Bench(facts=facts, models={case.application_id: self._model(case)}, structure=self._structure)

    def _user(self, name: str, case: Case) -> User:
        """By id or login."""
        for user in self._state.users:
            if user.user_id == name or (user.login is not None and user.login_key == login_key(name)):
                return user
        account = self._state.world.service_accounts.get(name)
        if account is None:
            raise Malformed(f"{case.place}: the model has no user {name}")
        return User(user_id=name, login=None, nick=account.name, reg_time=0)

    def _facts(self, user: User, case: Case) -> Facts:
        world, user_id = self._state.world, user.user_id
        groups = (group for model in world.projects.values() for group in model.groups.values())
        domain = (user.login_key or "").rpartition("@")[2] if user.email_verified else ""
        return Facts(
            subject=Subject(
                user_id=user_id, domain=domain or None, tags=user.tags | user.kept_tags, purchases=user.purchases
            ),
            login=user.login,
            blocked=user.blocked,
            rev=0,
            has_strong_factor=user.sealed_totp is not None,
            groups=frozenset(group.group_id for group in groups if user_id in group.users),
            owns=owned_by(world.record(CENTRAL_ID, user_id)),
            service_account=world.service_accounts.get(user_id),
            records={case.application_id: world.record(case.application_id, user_id)},
            applications=self._applications(case.application_id),
            structure=self._structure.version,
        )

    def _stranger(self, person: Person, model: ApplicationModel, place: str) -> Facts:
        number = model.application.application_id
        roles = parse_assignments(list(person.roles), place=f"{place}.user.roles")
        scopes = {ROOT: Holdings(roles=roles)} if roles else {}
        refuse_holdings(model, {}, scopes, f"{place}.user")
        login = None if person.login is None else check_login(person.login)
        return Facts(
            subject=Subject(
                user_id=person.user_id,
                domain=None if login is None else login_key(login).rpartition("@")[2],
                tags=person.tags,
                purchases=person.purchases,
            ),
            login=login,
            blocked=False,
            rev=0,
            has_strong_factor=False,
            records={number: UserRecord(application_id=number, user_id=person.user_id, scopes=scopes)},
            applications=self._applications(number),
            structure=self._structure.version,
        )

    def _applications(self, number: int) -> dict[int, ApplicationState]:
        model = self._state.world.applications[number]
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
        for (application_id, user_id), record in self._state.world.records.items():
            for one in (one for held_there in record.scopes.values() for one in held_there.roles):
                if application_id == number and not one.end.is_past(self._now):
                    held.setdefault(one.role, set()).add(user_id)
        return {role: len(users) for role, users in held.items()}


def structure_of(world: World) -> Structure:
    connecting: dict[int, tuple[str, ...]] = dict.fromkeys(world.applications, ())
    for project_id, model in sorted(world.projects.items()):
        for number, grants in model.project.settings.services.items():
            if grants and not model.project.removed:
                connecting[number] = (*connecting.get(number, ()), project_id)
    return Structure(version=1, projects=world.projects, connecting=connecting)


def owned_by(record: UserRecord) -> dict[str, End]:
    return {
        scope.project_id: one.end
        for scope, held in record.scopes.items()
        if not scope.is_root and scope.kind is None
        for one in held.roles
        if one.role == OWNER
    }


def expected(question: Question) -> str:
    verb = "may" if question.expected == "may" else "may not"
    return f"{shown(question.user)} {verb} {question.rule.text}"


def shown(user: str | Person) -> str:
    return f"user {user if isinstance(user, str) else user.login or user.user_id}"
