"""The console: questions about access."""

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.people import sign_in_doctor
from gatehouse.permissions.questions.who_can import WhoCan
from gatehouse.web.console.access_check import CheckScreens
from gatehouse.web.console.access_doctor import DoctorScreens
from gatehouse.web.console.access_simulate import SimulateScreens
from gatehouse.web.console.access_who import WhoCanScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> list[ConsoleRoute]:
    services, storage, view = console.services, console.services.storage, console.view
    check = CheckScreens(
        explanations=services.questions.guarded_explainer,
        question_access=services.questions.access,
        login=services.permissions.login_rules,
        lookup=console.lookup,
        names=console.names,
        permission_loader=services.permissions.loader,
        view=view,
        clock=services.clock,
    )
    who = WhoCanScreens(
        who_can=WhoCan(candidate_store=storage.candidates, clock=services.clock),
        projects=storage.projects,
        names=console.names,
        finding=console.search,
        lookup=console.lookup,
        view=view,
    )
    simulate = SimulateScreens(
        forecaster=console.forecaster,
        question_access=services.questions.access,
        groups=storage.groups,
        projects=storage.projects,
        lookup=console.lookup,
        view=view,
        clock=services.clock,
    )
    doctor = DoctorScreens(doctor=sign_in_doctor(services), lookup=console.lookup, view=view, clock=services.clock)
    return [*doctor.routes(), *check.routes(), *who.routes(), *simulate.routes()]
