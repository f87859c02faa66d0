"""The part of the composition root that is about a person's own account."""

from importlib import import_module
from typing import Final

from gatehouse.accounts.devices import Devices
from gatehouse.accounts.links import Links
from gatehouse.accounts.own.confirmation import Confirmation
from gatehouse.accounts.own.erasure import Erasure
from gatehouse.accounts.own.export import Export
from gatehouse.accounts.own.new_address import NewAddress
from gatehouse.accounts.own.new_password import NewPassword
from gatehouse.accounts.own.profile import Profile
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.telling import Telling
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.sign_in import SignIn
from gatehouse.admin.own_permissions import OwnOffice
from gatehouse.app.house import House
from gatehouse.app.mailing import composer
from gatehouse.kernel.addresses import Address
from gatehouse.oauth.consent import Consents
from gatehouse.permissions.callers.desk import Desk
from gatehouse.storage.admin.own_permissions import ConcernStorage
from gatehouse.throttle.allowance import Allowance
from gatehouse.web.browser import Browsers
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.account_applications import ApplicationForms
from gatehouse.web.pages.account_data import DataForms
from gatehouse.web.pages.account_factors import FactorForms
from gatehouse.web.pages.account_profile import ProfileForms
from gatehouse.web.pages.account_sessions import SessionForms
from gatehouse.web.pages.confirm import ConfirmPage
from gatehouse.web.pages.notices import Notices
from gatehouse.web.pages.owner_desk import OwnerDesk
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.places import places
from gatehouse.web.routes.table import Endpoint

DOORWAY: Final = "gatehouse.app.console_doorway"  # comes with the first account page that is shown


class Sight:
    """Fills web/pages/account.py MayAdminister."""

    def __init__(self, house: House, desk: Desk) -> None:
        self._house = house
        self._desk = desk

    async def of(self, user_id: str, address: Address | None) -> bool:
        found: bool = await import_module(DOORWAY).doorway(self._house, self._desk).is_open(user_id, address)
        return found


def new_address(house: House) -> NewAddress:
    letters = composer(house.settings, masters=house.masters, clock=house.clock)
    return NewAddress(
        store=house.storage.profile,
        links=Links(
            store=house.storage.registration,
            composer=letters,
            recorder=house.recorder,
            allowance=Allowance(store=house.storage.throttle, clock=house.clock),
            clock=house.clock,
        ),
        composer=letters,
        recorder=house.recorder,
        clock=house.clock,
        domains=house.settings.accounts.allowed_domains,
    )


def erasure(house: House) -> Erasure:
    return Erasure(store=house.storage.profile, recorder=house.recorder, clock=house.clock)


def export(house: House) -> Export:
    return Export(
        store=house.storage.profile,
        applications=house.data_desk,
        recorder=house.recorder,
        clock=house.clock,
        service=house.settings.server.base_url,
    )


def account_pages(
    house: House,
    *,
    sessions: Sessions,
    sign_in: SignIn,
    devices: Devices,
    totp: Totp,
    email_codes: EmailCodes,
    recovery: RecoveryCodes,
    passkeys: Passkeys,
    factors: SecondFactors,
    telling: Telling,
    consents: Consents,
    browsers: Browsers,
    pages: Pages,
    desk: Desk,
) -> list[Endpoint]:
    store, clock, recorder = house.storage.profile, house.clock, house.recorder
    base_url = house.settings.server.base_url
    notices = Notices(https=base_url.startswith("https:"))
    owners = OwnerDesk(browsers=browsers, sessions=sessions, pages=pages, notices=notices)
    profile = Profile(store=store, recorder=recorder, clock=clock)
    account = AccountPage(
        profile=profile,
        data=house.data_desk,
        consents=consents,
        permissions=OwnOffice(
            store=ConcernStorage(house.storage.runner), desk=desk, reading=house.reading, clock=clock
        ),
        desk=owners,
        pages=pages,
        notices=notices,
        places=places(house.settings.accounts.geoip_file),
        may_administer=Sight(house, desk).of,
        clock=clock,
        mail_is_logged=house.mail_is_shown,
    )
    new_password = NewPassword(
        store=store,
        sign_in=sign_in,
        passwords=house.passwords,
        rules=house.password_rules,
        telling=telling,
        clock=clock,
    )
    confirmation = Confirmation(
        store=store, sign_in=sign_in, factors=factors, passkeys=passkeys, recorder=recorder, clock=clock
    )
    return [
        *account.endpoints(),
        *ProfileForms(
            profile=profile,
            new_address=new_address(house),
            new_password=new_password,
            account=account,
            desk=owners,
            pages=pages,
        ).endpoints(),
        *FactorForms(
            totp=totp, passkeys=passkeys, email_codes=email_codes, recovery=recovery, account=account, desk=owners
        ).endpoints(),
        *SessionForms(sessions=sessions, desk=owners).endpoints(),
        *ApplicationForms(consents=consents, desk=owners).endpoints(),
        *DataForms(
            export=export(house),
            data=house.data_desk,
            erasure=erasure(house),
            browsers=browsers,
            desk=owners,
        ).endpoints(),
        *ConfirmPage(
            confirmation=confirmation,
            email_codes=email_codes,
            passkeys=passkeys,
            devices=devices,
            browsers=browsers,
            desk=owners,
            notices=notices,
        ).endpoints(),
    ]
