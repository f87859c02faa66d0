"""The part of the console that is about who may do what, and why, and what happened."""

from gatehouse.app.house import Services
from gatehouse.app.people import AccountServices
from gatehouse.app.permissions import PermissionServices
from gatehouse.app.questions import explainer, simulation
from gatehouse.app.seen_log import visible_log
from gatehouse.audit.head import HeadCodec
from gatehouse.gamesessions.administration import GameSessionAdmin
from gatehouse.permissions.questions.explain import GuardedExplainer
from gatehouse.permissions.questions.sight import QuestionAccess
from gatehouse.permissions.questions.who_can import WhoCan
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.finding import SearchStorage
from gatehouse.storage.admin.games import GameSessionListStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.web.console.access_check import CheckScreens
from gatehouse.web.console.access_simulate import SimulateScreens
from gatehouse.web.console.access_who import WhoCanScreens
from gatehouse.web.console.activity import ActivityScreens
from gatehouse.web.console.choosing import Suggestions
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.forecast import ImpactForecaster
from gatehouse.web.console.games import GameScreens
from gatehouse.web.console.refusals import RefusalScreens
from gatehouse.web.console.screens import ConsoleRoute


def access_screens(
    house: Services, desk: ConsoleView, them: AccountServices, rooms: PermissionServices
) -> list[ConsoleRoute]:
    storage, clock = house.storage, house.clock
    names, finding = NameStorage(storage.runner), SearchStorage(storage.runner)
    sights = QuestionAccess(desk=rooms.desk, reading=house.reading)
    choosing = Suggestions(finding)
    check = CheckScreens(
        explanations=GuardedExplainer(
            explained=explainer(house),
            sights=sights,
            desk=rooms.desk,
            reading=house.reading,
            projects=storage.projects,
        ),
        sights=sights,
        login=them.game.rules,
        choosing=choosing,
        names=names,
        desk=desk,
        clock=clock,
    )
    who = WhoCanScreens(
        who_can=WhoCan(crowds=storage.crowds, clock=clock),
        projects=storage.projects,
        names=names,
        finding=finding,
        choosing=choosing,
        desk=desk,
    )
    simulate = SimulateScreens(
        foresight=ImpactForecaster(simulation=simulation(house), names=names, desk=desk),
        sights=sights,
        groups=storage.groups,
        projects=storage.projects,
        choosing=choosing,
        desk=desk,
    )
    return [*check.screens(), *who.screens(), *simulate.screens()]


def game_screens(house: Services, desk: ConsoleView, them: AccountServices) -> GameScreens:
    storage = house.storage
    return GameScreens(
        lists=GameSessionListStorage(storage.runner),
        audit=storage.audit,
        administration=GameSessionAdmin(
            store=storage.game_sessions, records=them.game.records, recorder=house.recorder, clock=house.clock
        ),
        names=NameStorage(storage.runner),
        finding=SearchStorage(storage.runner),
        desk=desk,
        clock=house.clock,
    )


def activity_screens(house: Services, desk: ConsoleView, rooms: PermissionServices) -> list[ConsoleRoute]:
    storage = house.storage
    store = ActivityStorage(storage.runner)
    log = ActivityScreens(
        log=visible_log(house, rooms.desk),
        store=store,
        names=NameStorage(storage.runner),
        finding=SearchStorage(storage.runner),
        desk=desk,
        mac_key=house.audit_key,
        box=HeadCodec(house.masters),
    )
    refusals = RefusalScreens(store=store, desk=desk)
    return [*refusals.screens(), *log.screens()]  # an address of the log may be any record's
