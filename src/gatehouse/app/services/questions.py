"""Questions about permissions, and the stream of their changes."""

from msgspec import Struct

from gatehouse.app.services.core import Core
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.permissions.changes.feed import ChangeFeed
from gatehouse.permissions.changes.readers import ChangeReaders
from gatehouse.permissions.changes.streams import ChangeStreams
from gatehouse.permissions.questions.access_requests import AccessRequests
from gatehouse.permissions.questions.allowed_objects import AllowedObjects
from gatehouse.permissions.questions.check import Checks, QuestionAccess
from gatehouse.permissions.questions.explain import Explainer, GuardedExplainer
from gatehouse.permissions.questions.explain_objects import ObjectExplainer
from gatehouse.permissions.questions.members import MemberSearch
from gatehouse.permissions.questions.person_input import PersonInputLoader
from gatehouse.permissions.questions.proposals import DryRuns
from gatehouse.permissions.questions.roles import RoleList
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_record_views import UserRecordViews


class QuestionServices(Struct, frozen=True, kw_only=True, eq=False):
    access: QuestionAccess
    checks: Checks
    allowed_objects: AllowedObjects
    explainer: Explainer
    guarded_explainer: GuardedExplainer
    object_explainer: ObjectExplainer
    member_search: MemberSearch
    access_requests: AccessRequests
    dry_runs: DryRuns
    simulation: Simulation
    role_list: RoleList
    user_record_views: UserRecordViews


class ChangeServices(Struct, frozen=True, kw_only=True, eq=False):
    feed: ChangeFeed
    readers: ChangeReaders
    streams: ChangeStreams


def build_questions(core: Core, permissions: PermissionServices) -> QuestionServices:
    storage, clock = core.storage, core.clock
    loader, authenticator = permissions.loader, permissions.authenticator
    applications, projects, candidates = storage.applications, storage.projects, storage.candidates
    person_inputs = PersonInputLoader(permission_loader=loader, guests=storage.profile, clock=clock)
    access = QuestionAccess(authenticator=authenticator, permission_loader=loader, person_inputs=person_inputs)
    explainer = Explainer(applications=applications, clock=clock)
    allowed_objects = AllowedObjects(
        question_access=access, permission_loader=loader, store=storage.objects, projects=projects, clock=clock
    )
    guarded = GuardedExplainer(
        explainer=explainer,
        question_access=access,
        authenticator=authenticator,
        permission_loader=loader,
        projects=projects,
    )
    members = MemberSearch(candidate_store=candidates, projects=projects, clock=clock)
    dry_runs = DryRuns(
        store=storage.dry_runs,
        people=storage.permissions,
        groups=storage.groups,
        projects=projects,
        recorder=core.recorder,
        clock=clock,
    )
    return QuestionServices(
        access=access,
        checks=Checks(question_access=access, permission_loader=loader, clock=clock),
        allowed_objects=allowed_objects,
        explainer=explainer,
        guarded_explainer=guarded,
        object_explainer=ObjectExplainer(
            explainer=guarded, question_access=access, permission_loader=loader, authenticator=authenticator
        ),
        member_search=members,
        access_requests=AccessRequests(
            permission_loader=loader,
            person_inputs=person_inputs,
            members=members,
            allowed_objects=allowed_objects,
            projects=projects,
            project_of=storage.clients.project_of,
        ),
        dry_runs=dry_runs,
        simulation=Simulation(dry_runs=dry_runs, candidate_store=candidates, clock=clock),
        role_list=RoleList(store=applications, clock=clock),
        user_record_views=UserRecordViews(
            authenticator=authenticator,
            permission_loader=loader,
            person_inputs=person_inputs,
            applications=applications,
            projects=projects,
            clock=clock,
        ),
    )


def build_changes(core: Core, permissions: PermissionServices) -> ChangeServices:
    feed, settings = ChangeFeed(log=core.storage.audit, clock=core.clock), core.settings.permissions
    return ChangeServices(
        feed=feed,
        readers=ChangeReaders(authenticator=permissions.authenticator, applications=core.storage.applications),
        streams=ChangeStreams(
            feed=feed,
            masters=core.masters,
            clock=core.clock,
            per_caller=settings.streams_per_caller,
            most=settings.streams_most,
        ),
    )
