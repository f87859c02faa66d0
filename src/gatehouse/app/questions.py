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


def question_endpoints(house: Services, desk: Authenticator) -> list[Endpoint]:
    """check, explain, members and simulate."""
    sights = QuestionAccess(desk=desk, reading=house.reading)
    questions = QuestionEndpoints(
        checks=Checks(sights=sights, reading=house.reading, clock=house.clock),
        explanations=GuardedExplainer(
            explained=explainer(house),
            sights=sights,
            desk=desk,
            reading=house.reading,
            projects=house.storage.projects,
        ),
        members=member_search(house),
        desk=desk,
        max_age=house.settings.permissions.max_age_seconds,
    )
    return [
        *questions.endpoints(),
        SimulationEndpoint(simulation=simulation(house), desk=desk).endpoint(),
    ]


def explainer(house: Services) -> Explainer:
    return Explainer(applications=house.storage.applications, clock=house.clock)


def member_search(house: Services) -> MemberSearch:
    return MemberSearch(crowds=house.storage.crowds, projects=house.storage.projects, clock=house.clock)


def simulation(house: Services) -> Simulation:
    return Simulation(rehearsals=dry_runs(house), crowds=house.storage.crowds, clock=house.clock)


def dry_runs(house: Services) -> DryRuns:
    storage = house.storage
    return DryRuns(
        store=storage.rehearsals,
        people=storage.permissions,
        groups=storage.groups,
        projects=storage.projects,
        recorder=house.recorder,
        clock=house.clock,
    )
