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
    house: Services, them: AccountServices, desk: ConsoleView, rooms: PermissionServices
) -> list[ConsoleRoute]:
    office, lists = people_admin(house, them), PeopleListStorage(house.storage.runner)
    persons = PersonLoader(office=office, lists=lists, desk=desk, clock=house.clock)
    profile = AccountProfile(store=house.storage.profile, recorder=house.recorder, clock=house.clock)
    signs = PersonSessionScreens(
        persons,
        sessions=them.sessions,
        consents=them.authorizing.consents,
        profile=profile,
        nicks=NickStorage(house.storage.runner),
        places=open_geoip(house.settings.accounts.geoip_file),
    )
    return [
        *PeopleScreens(office=office, lists=lists, desk=desk, clock=house.clock).screens(),
        *PersonScreens(persons).screens(),
        *PersonAccessScreens(persons, reading=house.reading, views=record_views(house, rooms.desk)).screens(),
        *signs.screens(),
    ]


def people_admin(house: Services, them: AccountServices) -> PeopleAdmin:
    storage, recorder, ways_in = house.storage, house.recorder, registration_services(house)
    return PeopleAdmin(
        accounts=storage.accounts,
        administration=house.administration,
        editing=AccountEditor(store=storage.profile, composer=them.composer, recorder=recorder),
        invitations=ways_in.invitations,
        recovery=ways_in.recovery,
        erasure=erasure(house),
        consents=them.authorizing.consents,
        schemas=UserRecordCommands(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=recorder,
            clock=house.clock,
        ),
        rooms=SignInServices(
            sessions=them.sessions,
            factors=them.factors,
            totp=them.totp,
            passkeys=them.passkeys,
            email_codes=them.email_codes,
        ),
    )
