"""Questions in the words of AuthZEN: may a subject do an action on a resource, who may, what may they do, and where.

An application asks with its own credential, and only about itself; application 1's service JWT names any. Subjects,
actions and resources that do not exist are allowed nothing, so an answer does not tell whether they exist.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import MAX_INLINE_WEIGHT, run_off_loop
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, PersonNotFound
from gatehouse.permissions.evaluation.effective import CAN_ADMINISTER, EffectivePermissions
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.objects import ObjectEvaluator
from gatehouse.permissions.model.objects import MAX_OBJECT_KEY_LENGTH, OBJECT_KEY
from gatehouse.permissions.model.rules import ROOT, Rule, Scope
from gatehouse.permissions.questions.allowed_objects import AllowedObjects, AllowedQuestion
from gatehouse.permissions.questions.check import PermissionQuestion, decide_object, object_evaluator
from gatehouse.permissions.questions.members import MembersDraft, MemberSearch
from gatehouse.permissions.questions.parsing import (
    RuleReference,
    ScopeReference,
    read_rule,
    searchable_project_name,
)
from gatehouse.permissions.questions.person_input import PersonInputLoader
from gatehouse.permissions.store import ProjectStore

USER: Final = "user"
SERVICE_ACCOUNT: Final = "service_account"
APPLICATION: Final = "application"
PROJECT: Final = "project"
MAX_ID: Final = 2**63 - 1
DECISION_WEIGHT: Final = 20  # work of one decision
MAX_LOADED: Final = 100  # subjects in memory at once
MAY_SIGN_ADDRESSES: Final = frozenset({CallerKind.ACCESS_KEY, CallerKind.SIGNATURE})


class AccessEntity(Struct, frozen=True):
    """A subject or resource."""

    type: str
    id: str


class AccessQuestion(Struct, frozen=True, kw_only=True):
    subject: AccessEntity
    action: str
    resource: AccessEntity
    application_id: str = ""  # that the resource's properties name
    ip: Address | None = None  # of a caller that may sign it


class Target(Struct, frozen=True):
    """What a resource is here."""

    application_id: int
    reference: ScopeReference
    object_key: str = ""  # of the object that the resource is

    @property
    def is_central_project(self) -> bool:
        """Whether administrators hold rights in it that are stored nowhere below the root, so it must exist."""
        return self.application_id == CENTRAL_APPLICATION and not self.reference.scope.is_root


class EntityPage(Struct, frozen=True, kw_only=True):
    entities: Sequence[AccessEntity]
    after: str | None  # where the next page begins; None at the end


class NamePage(Struct, frozen=True, kw_only=True):
    names: Sequence[str]
    after: str | None


class Loaded(Struct, frozen=True, kw_only=True):
    """What a subject holds in an application, and on the objects that a call names."""

    found: EvaluationInput
    effective: EffectivePermissions
    objects: ObjectEvaluator | None = None


LoadedKey: TypeAlias = tuple[AccessEntity, int, Address | None]


class AccessRequests(Struct, kw_only=True, eq=False):
    permission_loader: PermissionLoader
    person_inputs: PersonInputLoader
    members: MemberSearch
    allowed_objects: AllowedObjects
    projects: ProjectStore
    project_of: Callable[[int], Awaitable[str | None]]  # the project of an application

    async def may_ask_about(self, caller: Caller, application_id: int) -> bool:
        """Whether a caller may ask about an application that it names: a service account, of its project (R11)."""
        return not caller.account_id or await self.project_of(application_id) == caller.project_id

    async def existing(self, target: Target | None) -> Target | None:
        """Return the target with the project's ID; None for a project of application 1 that does not exist."""
        if target is None or not target.is_central_project:
            return target
        project_id = await self.projects.live_project_id(target.reference.scope.project_id)
        if project_id is None:
            return None
        return Target(CENTRAL_APPLICATION, ScopeReference(scope=Scope(project_id)))

    async def target(self, caller: Caller, question: AccessQuestion) -> Target | None:
        """Return what the resource is, if it exists for this caller."""
        named = target_of(caller, question)
        if named is None or not await self.may_ask_about(caller, named.application_id):
            return None
        return await self.existing(named)

    async def load(
        self, subject: AccessEntity, application_id: int, address: Address | None, object_keys: Collection[str] = ()
    ) -> Loaded | None:
        """Return what a subject holds in an application; None if there is no such subject or application.

        `object_keys`: of the objects of the application that are asked about.
        """
        if subject.type not in {USER, SERVICE_ACCOUNT} or not grammar.USER_ID.fullmatch(subject.id):
            return None
        try:
            found = await self.person_inputs.load(subject.id, application_id, by_former_id=True)
        except PersonNotFound:
            return None
        is_service_account = found.facts.service_account is not None
        if is_service_account != (subject.type == SERVICE_ACCOUNT) or application_id not in found.models:
            return None
        if not object_keys:
            effective = await self.permission_loader.evaluate(found, application_id, address)
            return Loaded(found=found, effective=effective)
        found, facts = await self.permission_loader.load_input_with_objects(found.facts, application_id, object_keys)
        effective = await self.permission_loader.evaluate(found, application_id, address)
        evaluator = object_evaluator(found, effective, facts, self.person_inputs.clock.now(), address)
        return Loaded(found=found, effective=effective, objects=evaluator)

    async def subjects(self, caller: Caller, question: AccessQuestion, *, after: str, limit: int) -> EntityPage:
        """Find the subjects of a type. A page may be short, and be followed by another."""
        target, rule = await self.target(caller, question), known_rule(question.action)
        if (
            target is None
            or target.object_key
            or rule is None
            or question.subject.type not in {USER, SERVICE_ACCOUNT}
        ):
            return NO_ENTITIES
        scope = target.reference.scope
        draft = MembersDraft(rule=rule.text, project_id=scope.project_id or None, after=after, limit=limit)
        try:
            query = await self.members.read_query(draft, may_see_missing=False)
            page = await self.members.find_page(target.application_id, query)
        except ApplicationNotFound:
            return NO_ENTITIES
        wants_service_accounts = question.subject.type == SERVICE_ACCOUNT
        return EntityPage(
            entities=[
                AccessEntity(question.subject.type, member.user_id)
                for member in page.members
                if member.is_service_account == wants_service_accounts
            ],
            after=page.after,
        )

    async def actions(self, caller: Caller, question: AccessQuestion, *, after: str, limit: int) -> NamePage:
        target = await self.target(caller, question)
        if target is None or target.object_key:
            return NO_NAMES
        loaded = await self.load(question.subject, target.application_id, question.ip)
        if loaded is None:
            return NO_NAMES
        found, effective = loaded.found, loaded.effective
        scope = target.reference.resolve(found.structure)
        names = await run_off_loop(effective.work, action_names, found, effective, scope)
        return name_page([name for name in names if name > after], limit)

    async def resources(self, caller: Caller, question: AccessQuestion, *, after: str, limit: int) -> EntityPage:
        """Find the projects in which the action is allowed, or the application if it is allowed everywhere in it."""
        rule, application_id = known_rule(question.action), named_application(caller, question)
        if rule is None or application_id is None or not await self.may_ask_about(caller, application_id):
            return NO_ENTITIES
        loaded = await self.load(question.subject, application_id, question.ip)
        if loaded is None:
            return NO_ENTITIES
        found, effective = loaded.found, loaded.effective
        if question.resource.type in found.models[application_id].schema.objects:
            return await self._objects(replace(caller, application_id=application_id), question, rule, after, limit)
        if question.resource.type == PROJECT and administers(effective) and CAN_ADMINISTER in rule.rules:
            ids = await self.projects.live_project_ids(after, limit + 1)
            page = name_page(ids, limit)
            return EntityPage(entities=[AccessEntity(PROJECT, one) for one in page.names], after=page.after)
        weight = effective.work + DECISION_WEIGHT * len(found.structure.projects)
        ids = await run_off_loop(weight, resource_ids, found, effective, rule, question.resource.type)
        page = name_page([resource_id for resource_id in ids if resource_id > after], limit)
        return EntityPage(
            entities=[AccessEntity(question.resource.type, one) for one in page.names], after=page.after
        )

    async def _objects(
        self, caller: Caller, question: AccessQuestion, rule: RuleReference, after: str, limit: int
    ) -> EntityPage:
        """Find objects of a type. A page may be short, and be followed by another."""
        asked = AllowedQuestion(
            user_id=question.subject.id, type=question.resource.type, rule=rule, position=after, limit=limit
        )
        page = await self.allowed_objects.find_page(caller, asked)
        entities = [AccessEntity(each.type, each.key.partition(":")[2]) for each in page.objects]
        return EntityPage(entities=entities, after=page.position)


NO_ENTITIES: Final = EntityPage(entities=(), after=None)
NO_NAMES: Final = NamePage(names=(), after=None)


class Decisions(Struct, kw_only=True, eq=False):
    """The decisions of one call: what a subject holds is read once."""

    requests: AccessRequests
    caller: Caller
    loaded: dict[LoadedKey, Loaded | None]
    object_keys: frozenset[str] = frozenset()  # of all objects that the call names
    reach: dict[int, bool] = field(default_factory=dict)  # the applications that were looked up
    targets: dict[Target, Target | None] = field(default_factory=dict)  # that were looked up
    inline_work: int = 0  # since the event loop had a turn

    async def decide(self, question: AccessQuestion) -> bool:
        named, rule = target_of(self.caller, question), known_rule(question.action)
        if named is None or rule is None:
            return False
        application_id = named.application_id
        if application_id not in self.reach:
            self.reach[application_id] = await self.requests.may_ask_about(self.caller, application_id)
        if not self.reach[application_id]:
            return False
        if named not in self.targets:
            self.targets[named] = await self.requests.existing(named)
        target = self.targets[named]
        if target is None:
            return False
        key = (question.subject, target.application_id, question.ip)
        if key not in self.loaded:
            if len(self.loaded) >= MAX_LOADED:
                self.loaded.clear()
            self.loaded[key] = await self.requests.load(*key, self.object_keys)
        loaded = self.loaded[key]
        if loaded is None:
            return False
        found, effective = loaded.found, loaded.effective
        weight = DECISION_WEIGHT + len(found.structure.projects) + effective.decision_work
        self.inline_work += weight
        if self.inline_work > MAX_INLINE_WEIGHT:  # a thousand light decisions are heavy together
            self.inline_work = 0
            await asyncio.sleep(0)
        return await run_off_loop(weight, is_allowed_at, loaded, target, rule)


def target_of(caller: Caller, question: AccessQuestion) -> Target | None:
    """Return what the resource is, as far as its name tells."""
    if question.resource.type == APPLICATION:
        application_id, scope = reachable_application(caller, question.resource.id), ROOT
    elif question.resource.type == PROJECT:
        name = searchable_project_name(question.resource.id)
        application_id, scope = named_application(caller, question), Scope(name)
    else:
        key = object_key_of(question.resource)
        application_id, scope = named_application(caller, question) if key else None, ROOT
    named = object_key_of(question.resource)
    return None if application_id is None else Target(application_id, ScopeReference(scope=scope), named)


def object_key_of(resource: AccessEntity) -> str:
    """Return the key of the object that the resource may be; "" for another kind of resource."""
    key = f"{resource.type}:{resource.id}"
    is_other = resource.type in {APPLICATION, PROJECT} or len(key) > MAX_OBJECT_KEY_LENGTH
    return "" if is_other or OBJECT_KEY.fullmatch(key) is None else key


def named_application(caller: Caller, question: AccessQuestion) -> int | None:
    """Return the application that the question names, otherwise the caller's; None if it may not ask about it."""
    named = question.application_id
    return reachable_application(caller, named) if named else caller.application_id


def reachable_application(caller: Caller, text: str) -> int | None:
    application_id = int(text) if grammar.APPLICATION_ID.fullmatch(text) else 0
    is_own = application_id == caller.vouching_application_id
    may_ask = is_own or caller.vouching_application_id is None or bool(caller.account_id)
    return application_id if may_ask and 0 < application_id <= MAX_ID else None


def known_rule(action: str) -> RuleReference | None:
    try:
        return read_rule(action, "action.name")
    except Malformed:
        return None


def is_allowed_at(loaded: Loaded, target: Target, reference: RuleReference) -> bool:
    if loaded.objects is not None and target.object_key:
        about = PermissionQuestion(rule=reference, scope=target.reference, object_key=target.object_key)
        return decide_object(loaded.objects, about, ROOT).allowed
    scope = target.reference.resolve(loaded.found.structure)
    return is_allowed(loaded.found, loaded.effective, scope, reference)


def is_allowed(
    found: EvaluationInput, effective: EffectivePermissions, scope: Scope, reference: RuleReference
) -> bool:
    return any(any(effective.scopes_holding(found.structure, scope, rule)) for rule in reference.rules)


def action_names(found: EvaluationInput, effective: EffectivePermissions, scope: Scope) -> list[str]:
    """The names of what is allowed; a question finds each of them in its section."""
    rules: set[Rule] = set(effective.rules(scope).held) if found.structure.has_scope(scope) else set()
    if administers(effective):
        rules.add(CAN_ADMINISTER)
    return sorted({rule.path for rule in rules})


def administers(effective: EffectivePermissions) -> bool:
    return effective.application_id == CENTRAL_APPLICATION and CAN_ADMINISTER in effective.rules(ROOT)


def resource_ids(
    found: EvaluationInput, effective: EffectivePermissions, reference: RuleReference, kind: str
) -> list[str]:
    if kind == APPLICATION:
        return [str(effective.application_id)] if is_allowed(found, effective, ROOT, reference) else []
    if kind != PROJECT:
        return []
    scopes = (scope for scope in effective.open_scopes if not scope.is_root and scope.kind is None)
    return sorted(scope.project_id for scope in scopes if is_allowed(found, effective, scope, reference))


def name_page(names: Sequence[str], limit: int) -> NamePage:
    return NamePage(names=names[:limit], after=names[limit - 1] if len(names) > limit else None)
