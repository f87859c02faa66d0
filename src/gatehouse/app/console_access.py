"""The part of the console that is about who may do what, and why, and what happened."""

from gatehouse.app.house import House
from gatehouse.app.people import People
from gatehouse.app.permissions import PermissionRooms
from gatehouse.app.questions import explained, simulation
from gatehouse.app.seen_log import seen_log
from gatehouse.audit.head import HeadBox
from gatehouse.gamesessions.administration import GameAdministration
from gatehouse.permissions.questions.explain import Explanations
from gatehouse.permissions.questions.sight import Sights
from gatehouse.permissions.questions.who_can import WhoCan
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.finding import FindingStorage
from gatehouse.storage.admin.games import GameListStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.web.console.access_check import CheckScreens
from gatehouse.web.console.access_simulate import SimulateScreens
from gatehouse.web.console.access_who import WhoScreens
from gatehouse.web.console.activity import ActivityScreens
from gatehouse.web.console.choosing import Choosing
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.forecast import Foresight
from gatehouse.web.console.games import GameScreens
from gatehouse.web.console.refusals import RefusalScreens
from gatehouse.web.console.screens import Screen


def access_screens(house: House, desk: ConsoleDesk, them: People, rooms: PermissionRooms) -> list[Screen]:
    storage, clock = house.storage, house.clock
    names, finding = NameStorage(storage.runner), FindingStorage(storage.runner)
    sights = Sights(desk=rooms.desk, reading=house.reading)
    choosing = Choosing(finding)
    check = CheckScreens(
        explanations=Explanations(
            explained=explained(house),
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
    who = WhoScreens(
        who_can=WhoCan(crowds=storage.crowds, clock=clock),
        projects=storage.projects,
        names=names,
        finding=finding,
        choosing=choosing,
        desk=desk,
    )
    simulate = SimulateScreens(
        foresight=Foresight(simulation=simulation(house), names=names, desk=desk),
        sights=sights,
        groups=storage.groups,
        projects=storage.projects,
        choosing=choosing,
        desk=desk,
    )
    return [*check.screens(), *who.screens(), *simulate.screens()]


def game_screens(house: House, desk: ConsoleDesk, them: People) -> GameScreens:
    storage = house.storage
    return GameScreens(
        lists=GameListStorage(storage.runner),
        audit=storage.audit,
        administration=GameAdministration(
            store=storage.game_sessions, records=them.game.records, recorder=house.recorder, clock=house.clock
        ),
        names=NameStorage(storage.runner),
        finding=FindingStorage(storage.runner),
        desk=desk,
        clock=house.clock,
    )


def activity_screens(house: House, desk: ConsoleDesk, rooms: PermissionRooms) -> list[Screen]:
    storage = house.storage
    store = ActivityStorage(storage.runner)
    log = ActivityScreens(
        log=seen_log(house, rooms.desk),
        store=store,
        names=NameStorage(storage.runner),
        finding=FindingStorage(storage.runner),
        desk=desk,
        mac_key=house.audit_key,
        box=HeadBox(house.masters),
    )
    refusals = RefusalScreens(store=store, desk=desk)
    return [*refusals.screens(), *log.screens()]  # an address of the log may be any record's
