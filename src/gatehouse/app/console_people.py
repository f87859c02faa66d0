"""People in the console, composed."""

from gatehouse.accounts.editing import AccountEditor
from gatehouse.accounts.own.profile import AccountProfile
from gatehouse.admin.people import PeopleAdmin, SignInServices
from gatehouse.app.house import Services
from gatehouse.app.joining import registration_services
from gatehouse.app.own_account import erasure
from gatehouse.app.people import AccountServices
from gatehouse.app.permissions import PermissionServices, record_views
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.storage.admin.nicks import NickStorage
from gatehouse.storage.admin.people import PeopleListStorage
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.people import PeopleScreens
from gatehouse.web.console.person import PersonLoader, PersonScreens
from gatehouse.web.console.person_access import PersonAccessScreens
from gatehouse.web.console.person_signs import PersonSessionScreens
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.places import open_geoip


def people_screens(
    services: Services, accounts: AccountServices, view: ConsoleView, permissions: PermissionServices
) -> list[ConsoleRoute]:
    office, lists = people_admin(services, accounts), PeopleListStorage(services.storage.runner)
    persons = PersonLoader(office=office, lists=lists, desk=view, clock=services.clock)
    profile = AccountProfile(store=services.storage.profile, recorder=services.recorder, clock=services.clock)
    signs = PersonSessionScreens(
        persons,
        sessions=accounts.sessions,
        consents=accounts.authorization.consents,
        profile=profile,
        nicks=NickStorage(services.storage.runner),
        places=open_geoip(services.settings.accounts.geoip_file),
    )
    return [
        *PeopleScreens(people_admin=office, lists=lists, view=view, clock=services.clock).routes(),
        *PersonScreens(persons).routes(),
        *PersonAccessScreens(
            persons,
            permission_loader=services.permission_loader,
            views=record_views(services, permissions.authenticator),
        ).routes(),
        *signs.routes(),
    ]


def people_admin(services: Services, accounts: AccountServices) -> PeopleAdmin:
    storage, recorder, ways_in = services.storage, services.recorder, registration_services(services)
    return PeopleAdmin(
        accounts=storage.accounts,
        administration=services.administration,
        editing=AccountEditor(store=storage.profile, composer=accounts.composer, recorder=recorder),
        invitations=ways_in.invitations,
        recovery=ways_in.recovery,
        erasure=erasure(services),
        consents=accounts.authorization.consents,
        schemas=UserRecordCommands(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=recorder,
            clock=services.clock,
        ),
        sign_in=SignInServices(
            sessions=accounts.sessions,
            factors=accounts.second_factors,
            totp=accounts.totp,
            passkeys=accounts.passkeys,
            email_codes=accounts.email_codes,
        ),
    )
