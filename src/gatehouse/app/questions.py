"""The part of the composition root that answers who may do what, and why."""

from gatehouse.app.house import Services
from gatehouse.permissions.callers.desk import Authenticator
from gatehouse.permissions.questions.check import Checks
from gatehouse.permissions.questions.explain import Explainer, GuardedExplainer
from gatehouse.permissions.questions.members import MemberSearch
from gatehouse.permissions.questions.proposals import DryRuns
from gatehouse.permissions.questions.sight import QuestionAccess
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.web.permissions.questions import QuestionEndpoints
from gatehouse.web.permissions.simulate import SimulationEndpoint
from gatehouse.web.routes.table import Endpoint


def question_endpoints(services: Services, authenticator: Authenticator) -> list[Endpoint]:
    """check, explain, members and simulate."""
    sights = QuestionAccess(authenticator=authenticator, permission_loader=services.permission_loader)
    questions = QuestionEndpoints(
        checks=Checks(question_access=sights, permission_loader=services.permission_loader, clock=services.clock),
        explanations=GuardedExplainer(
            explainer=explainer(services),
            question_access=sights,
            authenticator=authenticator,
            permission_loader=services.permission_loader,
            projects=services.storage.projects,
        ),
        members=member_search(services),
        authenticator=authenticator,
        max_age=services.settings.permissions.max_age_seconds,
    )
    return [
        *questions.endpoints(),
        SimulationEndpoint(simulation=simulation(services), authenticator=authenticator).endpoint(),
    ]


def explainer(services: Services) -> Explainer:
    return Explainer(applications=services.storage.applications, clock=services.clock)


def member_search(services: Services) -> MemberSearch:
    return MemberSearch(
        candidate_store=services.storage.candidates, projects=services.storage.projects, clock=services.clock
    )


def simulation(services: Services) -> Simulation:
    return Simulation(dry_runs=dry_runs(services), candidate_store=services.storage.candidates, clock=services.clock)


def dry_runs(services: Services) -> DryRuns:
    storage = services.storage
    return DryRuns(
        store=storage.dry_runs,
        people=storage.permissions,
        groups=storage.groups,
        projects=storage.projects,
        recorder=services.recorder,
        clock=services.clock,
    )
