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
    services: Services, view: ConsoleView, accounts: AccountServices, permissions: PermissionServices
) -> list[ConsoleRoute]:
    storage, clock = services.storage, services.clock
    names, finding = NameStorage(storage.runner), SearchStorage(storage.runner)
    sights = QuestionAccess(authenticator=permissions.authenticator, permission_loader=services.permission_loader)
    choosing = Suggestions(finding)
    check = CheckScreens(
        explanations=GuardedExplainer(
            explainer=explainer(services),
            question_access=sights,
            authenticator=permissions.authenticator,
            permission_loader=services.permission_loader,
            projects=storage.projects,
        ),
        question_access=sights,
        login=accounts.games.login_rules,
        suggestions=choosing,
        names=names,
        view=view,
        clock=clock,
    )
    who = WhoCanScreens(
        who_can=WhoCan(candidate_store=storage.candidates, clock=clock),
        projects=storage.projects,
        names=names,
        finding=finding,
        suggestions=choosing,
        view=view,
    )
    simulate = SimulateScreens(
        forecaster=ImpactForecaster(simulation=simulation(services), names=names, view=view),
        question_access=sights,
        groups=storage.groups,
        projects=storage.projects,
        suggestions=choosing,
        view=view,
    )
    return [*check.routes(), *who.routes(), *simulate.routes()]


def game_screens(services: Services, view: ConsoleView, accounts: AccountServices) -> GameScreens:
    storage = services.storage
    return GameScreens(
        lists=GameSessionListStorage(storage.runner),
        audit=storage.audit,
        administration=GameSessionAdmin(
            store=storage.game_sessions,
            refusals=accounts.games.records,
            recorder=services.recorder,
            clock=services.clock,
        ),
        names=NameStorage(storage.runner),
        finding=SearchStorage(storage.runner),
        view=view,
        clock=services.clock,
    )


def activity_screens(services: Services, view: ConsoleView, permissions: PermissionServices) -> list[ConsoleRoute]:
    storage = services.storage
    store = ActivityStorage(storage.runner)
    log = ActivityScreens(
        log=visible_log(services, permissions.authenticator),
        store=store,
        names=NameStorage(storage.runner),
        finding=SearchStorage(storage.runner),
        view=view,
        mac_key=services.audit_key,
        box=HeadCodec(services.masters),
    )
    refusals = RefusalScreens(store=store, view=view)
    return [*refusals.routes(), *log.routes()]  # an address of the log may be any record's
