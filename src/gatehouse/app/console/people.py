"""The console: people."""

from gatehouse.admin.people_import import PeopleImport
from gatehouse.admin.saved_views import SavedViewStore
from gatehouse.app.console.activity_log import record_describer
from gatehouse.app.console.assignments import assignment_editor
from gatehouse.app.console.groups import group_access
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.people import bulk_invitations
from gatehouse.web.console.invited import InvitationScreens
from gatehouse.web.console.people import PeopleScreens
from gatehouse.web.console.people_import import ImportScreens
from gatehouse.web.console.people_selected import SelectedPeopleScreens
from gatehouse.web.console.person import PersonLoader, PersonScreens, ProfileLoader
from gatehouse.web.console.person_access import PersonAccessScreens
from gatehouse.web.console.person_assign import PersonAssignScreens
from gatehouse.web.console.person_bans import PersonBanScreens
from gatehouse.web.console.person_data import PersonDataScreens
from gatehouse.web.console.person_sessions import PersonSessionScreens
from gatehouse.web.console.person_timeline import PersonTimelineScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> list[ConsoleRoute]:
    services, lists = console.services, console.people_lists
    persons = PersonLoader(people_admin=console.people_admin, lists=lists, view=console.view, clock=services.clock)
    sessions = PersonSessionScreens(
        persons,
        sessions=services.accounts.sessions,
        consents=services.oauth.consents,
        given_grants=services.oauth.given_grants,
        profile=services.accounts.profile,
        names=console.names,
        places=services.geoip,
        describer=console.shared(record_describer),
    )
    access = PersonAccessScreens(
        persons,
        permission_loader=services.permissions.loader,
        views=services.questions.user_record_views,
        lookup=console.lookup,
    )
    assign = PersonAssignScreens(
        persons,
        access=access,
        assignments=console.shared(assignment_editor),
        group_access=console.shared(group_access),
        groups=services.storage.groups,
        lookup=console.lookup,
    )
    invitations = InvitationScreens(
        bulk=bulk_invitations(services),
        lookup=console.lookup,
        view=console.view,
        clock=services.clock,
        base_url=services.base_url,
        sends_mail=console.sends_mail,
    )
    selected = SelectedPeopleScreens(
        people_admin=console.people_admin,
        invitations=invitations,
        names=console.names,
        assignments=console.shared(assignment_editor),
        group_access=console.shared(group_access),
        groups=services.storage.groups,
        lookup=console.lookup,
        view=console.view,
        clock=services.clock,
        sends_mail=console.sends_mail,
    )
    bans = PersonBanScreens(
        persons,
        bans=services.commands.bans,
        names=console.names,
        permission_loader=services.permissions.loader,
        own_permissions=services.admin.own_permissions,
        lookup=console.lookup,
    )
    return [
        *PeopleScreens(
            people_admin=console.people_admin,
            lists=lists,
            views=SavedViewStore(services.storage.runner),
            lookup=console.lookup,
            invitations=invitations,
            view=console.view,
            clock=services.clock,
            sends_mail=console.sends_mail,
            sign_in_methods=services.accounts.enabled_methods,
            base_url=services.base_url,
        ).routes(),
        *selected.routes(),
        *bans.list_routes(),
        *ImportScreens(
            people=PeopleImport(services.accounts.importer), invitations=invitations, view=console.view
        ).routes(),
        *invitations.routes(),
        *PersonScreens(
            persons,
            profiles=ProfileLoader(
                lists=lists,
                sessions=services.accounts.sessions,
                account=services.accounts.profile,
                clock=services.clock,
            ),
            lookup=console.lookup,
            own_permissions=services.admin.own_permissions,
            base_url=services.base_url,
            sends_mail=console.sends_mail,
        ).routes(),
        *access.routes(),
        *PersonTimelineScreens(
            loader=persons, store=console.activity_store, describer=console.shared(record_describer)
        ).routes(),
        *assign.routes(),
        *sessions.routes(),
        *bans.routes(),
        *PersonDataScreens(
            persons, export=services.personal_data.export, requests=services.personal_data.requests
        ).routes(),
    ]
