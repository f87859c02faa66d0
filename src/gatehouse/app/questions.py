"""The part of the composition root that answers who may do what, and why."""

from gatehouse.app.house import House
from gatehouse.permissions.callers.desk import Desk
from gatehouse.permissions.questions.check import Checks
from gatehouse.permissions.questions.explain import Explained, Explanations
from gatehouse.permissions.questions.members import MemberSearch
from gatehouse.permissions.questions.proposals import Rehearsals
from gatehouse.permissions.questions.sight import Sights
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.web.permissions.questions import QuestionEndpoints
from gatehouse.web.permissions.simulate import SimulationEndpoint
from gatehouse.web.routes.table import Endpoint


def question_endpoints(house: House, desk: Desk) -> list[Endpoint]:
    """check, explain, members and simulate."""
    sights = Sights(desk=desk, reading=house.reading)
    questions = QuestionEndpoints(
        checks=Checks(sights=sights, reading=house.reading, clock=house.clock),
        explanations=Explanations(
            explained=explained(house),
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


def explained(house: House) -> Explained:
    return Explained(applications=house.storage.applications, clock=house.clock)


def member_search(house: House) -> MemberSearch:
    return MemberSearch(crowds=house.storage.crowds, projects=house.storage.projects, clock=house.clock)


def simulation(house: House) -> Simulation:
    return Simulation(rehearsals=rehearsals(house), crowds=house.storage.crowds, clock=house.clock)


def rehearsals(house: House) -> Rehearsals:
    storage = house.storage
    return Rehearsals(
        store=storage.rehearsals,
        people=storage.permissions,
        groups=storage.groups,
        projects=storage.projects,
        recorder=house.recorder,
        clock=house.clock,
    )
