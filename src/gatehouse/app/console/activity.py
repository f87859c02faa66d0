"""The console: the audit log and refusals."""

from gatehouse.app.console.activity_log import log_verification, record_describer
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.activity import visible_audit_log
from gatehouse.web.console.activity import ActivityScreens, RefusalScreens
from gatehouse.web.console.refusals import RefusalDescriber
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> list[ConsoleRoute]:
    services, store = console.services, console.activity_store
    log = ActivityScreens(
        log=visible_audit_log(services),
        store=store,
        describer=console.shared(record_describer),
        lookup=console.lookup,
        view=console.view,
        verification=console.shared(log_verification),
    )
    refusals = RefusalScreens(store=store, describer=RefusalDescriber(store), view=console.view)
    return [*refusals.routes(), *log.routes()]  # any path of the log may be a record's
