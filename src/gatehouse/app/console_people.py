"""People in the console, composed."""

from gatehouse.accounts.editing import Editing
from gatehouse.accounts.own.profile import Profile
from gatehouse.admin.people import PeopleOffice, SignInRooms
from gatehouse.app.house import House
from gatehouse.app.joining import joining
from gatehouse.app.own_account import erasure
from gatehouse.app.people import People
from gatehouse.app.permissions import PermissionRooms, views
from gatehouse.permissions.commands.user_schemas import UserSchemas
from gatehouse.storage.admin.nicks import NickStorage
from gatehouse.storage.admin.people import PeopleListStorage
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.people import PeopleScreens
from gatehouse.web.console.person import Persons, PersonScreens
from gatehouse.web.console.person_access import AccessScreens
from gatehouse.web.console.person_signs import SignScreens
from gatehouse.web.console.screens import Screen
from gatehouse.web.places import places


def people_screens(house: House, them: People, desk: ConsoleDesk, rooms: PermissionRooms) -> list[Screen]:
    office, lists = people_office(house, them), PeopleListStorage(house.storage.runner)
    persons = Persons(office=office, lists=lists, desk=desk, clock=house.clock)
    profile = Profile(store=house.storage.profile, recorder=house.recorder, clock=house.clock)
    signs = SignScreens(
        persons,
        sessions=them.sessions,
        consents=them.authorizing.consents,
        profile=profile,
        nicks=NickStorage(house.storage.runner),
        places=places(house.settings.accounts.geoip_file),
    )
    return [
        *PeopleScreens(office=office, lists=lists, desk=desk, clock=house.clock).screens(),
        *PersonScreens(persons).screens(),
        *AccessScreens(persons, reading=house.reading, views=views(house, rooms.desk)).screens(),
        *signs.screens(),
    ]


def people_office(house: House, them: People) -> PeopleOffice:
    storage, recorder, ways_in = house.storage, house.recorder, joining(house)
    return PeopleOffice(
        accounts=storage.accounts,
        administration=house.administration,
        editing=Editing(store=storage.profile, composer=them.composer, recorder=recorder),
        invitations=ways_in.invitations,
        recovery=ways_in.recovery,
        erasure=erasure(house),
        consents=them.authorizing.consents,
        schemas=UserSchemas(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=recorder,
            clock=house.clock,
        ),
        rooms=SignInRooms(
            sessions=them.sessions,
            factors=them.factors,
            totp=them.totp,
            passkeys=them.passkeys,
            email_codes=them.email_codes,
        ),
    )
