"""`object/allowed`: the objects of a type on which a person has a rule, in the order of their paths (R12).

A page is read from one snapshot and has at most so many objects; it may be shorter, because its work is bounded too.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.commands.objects import ObjectNotFound, ObjectTypeNotFound
from gatehouse.permissions.evaluation.condition_index import is_member
from gatehouse.permissions.evaluation.contributions import EvaluationContext, evaluation_context
from gatehouse.permissions.evaluation.loader import MAX_ATTEMPTS, EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.objects import is_rule_of, object_contributions, scope_value
from gatehouse.permissions.model.object_ranges import PathRange, allowed_ranges, place_end, position_after
from gatehouse.permissions.model.objects import (
    SEPARATOR,
    Holder,
    HolderKind,
    ObjectHolding,
    StoredObject,
    place_of,
    subtree_end,
)
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.objects.store import AllowedQuery, ObjectPage, ObjectStore
from gatehouse.permissions.questions.check import NO_ADDRESS, QuestionAccess
from gatehouse.permissions.questions.parsing import RuleReference, find_project_id
from gatehouse.permissions.store import ProjectStore

MAX_PLACES: Final = 20  # projects that one page looks into while it is empty
GROUP_WORK: Final = 5  # of asking one group whether the person is a member


class AllowedQuestion(Struct, frozen=True, kw_only=True):
    user_id: str
    type: str
    rule: RuleReference
    parent: str = ""  # key; "" for all
    project_id: str | None = None  # None: wherever
    position: str = ""  # where the page begins; "" for the first one
    limit: int


class AllowedPage(Struct, frozen=True, kw_only=True):
    objects: Sequence[StoredObject]
    position: str | None  # of the next page; None at the end


class AllowedObjects(Struct, kw_only=True, eq=False):
    question_access: QuestionAccess
    permission_loader: PermissionLoader
    store: ObjectStore
    projects: ProjectStore
    clock: Clock

    async def find_page(self, caller: Caller, question: AllowedQuestion) -> AllowedPage:
        """Raises what a check raises; ObjectNotFound for an unknown parent."""
        found = await self.question_access.load_input(caller, question.user_id)
        application_id = caller.application_id or 0
        object_type = found.models[application_id].schema.objects.get(question.type)
        if object_type is None:
            raise ObjectTypeNotFound
        rule = next((rule for rule in question.rule.rules if is_rule_of(object_type.rules, rule)), None)
        if rule is None:
            return AllowedPage(objects=(), position=None)
        within = await self._range(application_id, question)
        position = max(question.position, within.begin)
        for _ in range(MAX_PLACES):
            first = await self.store.first_object(application_id, question.type, PathRange(position, within.end))
            if first is None:
                return AllowedPage(objects=(), position=None)
            place = place_of(first.path)
            end = min(within.end, place_end(place))
            page = await self._page_of_place(
                found, application_id, question, rule, PathRange(max(position, f"{place}{SEPARATOR}"), end)
            )
            position = end if page.after is None else page.after
            if page.after is not None:
                return AllowedPage(objects=page.objects, position=position)
            if page.objects:
                rest = PathRange(position, within.end)
                following = await self.store.first_object(application_id, question.type, rest)
                return AllowedPage(objects=page.objects, position=None if following is None else position)
        return AllowedPage(objects=(), position=position)

    async def _range(self, application_id: int, question: AllowedQuestion) -> PathRange:
        place = None
        if question.project_id is not None:
            place = await find_project_id(self.projects, question.project_id, default=question.project_id)
        if question.parent:
            parent = (await self.store.objects(application_id, [question.parent])).get(question.parent)
            if parent is None or (place is not None and parent.place != place):
                raise ObjectNotFound
            return PathRange(position_after(parent.path), subtree_end(parent.path))
        if place is not None:
            return PathRange(f"{place}{SEPARATOR}", place_end(place))
        return PathRange(SEPARATOR, "~")  # sorts behind every path

    async def _page_of_place(
        self, found: EvaluationInput, application_id: int, question: AllowedQuestion, rule: Rule, within: PathRange
    ) -> ObjectPage:
        """Read one page, from one state of everything that decides about it."""
        place = place_of(within.end.rstrip('"'))
        projects = (place,) if place else ()
        for _ in range(MAX_ATTEMPTS):
            found = await self.permission_loader.load_input(found.facts, projects=projects)
            effective = await self.permission_loader.evaluate(found, application_id, NO_ADDRESS)
            context = evaluation_context(
                found.models[application_id], found.facts, found.structure, now=self.clock.now(), address=NO_ADDRESS
            )
            if not effective.open_scopes or not (not place or context.gate(place).is_open):
                return ObjectPage(objects=(), after=None)
            project = context.structure.project(place) if place else None
            weight = GROUP_WORK * len(project.groups) if project else 0
            query = AllowedQuery(
                facts=found.facts,
                project_ids=projects,
                application_id=application_id,
                type=question.type,
                within=within,
                holders=await run_off_loop(weight, holders_of, context, place),
                find_ranges=partial(find_ranges, context, place, rule, base=rule in effective.rules(Scope(place))),
                limit=question.limit,
            )
            page = await self.store.allowed_page(query)
            if page is not None:
                return page
            facts = await self.permission_loader.load_facts(found.facts.subject.user_id, tuple(found.facts.records))
            if facts is None:
                break
            found = EvaluationInput(facts=facts, models=found.models, structure=found.structure)
        raise Unavailable("the permission model changes too fast to be read")


def holders_of(context: EvaluationContext, place: str) -> Sequence[Holder]:
    """The person, and their groups in the project."""
    project = context.structure.project(place) if place else None
    groups = () if project is None else project.groups.items()
    mine = (group_id for group_id, group in groups if is_member(group, context.facts))
    person = Holder(HolderKind.USER, context.facts.subject.user_id)
    return (person, *(Holder(HolderKind.GROUP, group_id) for group_id in mine))


def find_ranges(
    context: EvaluationContext,
    place: str,
    rule: Rule,
    held: Mapping[str, Sequence[ObjectHolding]],
    within: PathRange,
    *,
    base: bool,
) -> Sequence[PathRange]:
    verdicts: dict[str, bool] = {}
    for path, holdings in held.items():
        value = scope_value(
            (
                each
                for each in object_contributions(context, place, holdings)
                if rule in each.verdicts.yes or rule in each.verdicts.no
            ),
            rule,
        )
        if value is not None:
            verdicts[path] = value
    return allowed_ranges(verdicts, base=base, position=within.begin, end=within.end)
