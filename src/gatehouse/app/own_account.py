"""The part of the composition root that is about a person's own account."""

from importlib import import_module
from typing import Final

from gatehouse.accounts.devices import DeviceCookies
from gatehouse.accounts.links import EmailLinks
from gatehouse.accounts.own.confirmation import Reauthentication
from gatehouse.accounts.own.erasure import Erasure
from gatehouse.accounts.own.export import DataExport
from gatehouse.accounts.own.new_address import EmailChanges
from gatehouse.accounts.own.new_password import PasswordChange
from gatehouse.accounts.own.profile import AccountProfile
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.telling import AccountNotifier
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.admin.own_permissions import OwnPermissionsLoader
from gatehouse.app.house import Services
from gatehouse.app.mailing import mail_composer
from gatehouse.kernel.addresses import Address
from gatehouse.oauth.consent import Consents
from gatehouse.permissions.callers.desk import Authenticator
from gatehouse.storage.admin.own_permissions import OwnPermissionsStorage
from gatehouse.throttle.allowance import Quota
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.account_applications import ConnectedApplicationForms
from gatehouse.web.pages.account_data import PersonalDataForms
from gatehouse.web.pages.account_factors import FactorForms
from gatehouse.web.pages.account_profile import ProfileForms
from gatehouse.web.pages.account_sessions import SessionForms
from gatehouse.web.pages.confirm import ReauthenticationPage
from gatehouse.web.pages.notices import NoticeCookie
from gatehouse.web.pages.owner_desk import AccountView
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.places import open_geoip
from gatehouse.web.routes.table import Endpoint

CONSOLE_ACCESS_MODULE: Final = "gatehouse.app.console_doorway"  # comes with the first account page that is shown


class ConsoleAccessCheck:
    """Fills web/pages/account.py MayAdminister."""

    def __init__(self, services: Services, authenticator: Authenticator) -> None:
        self._services = services
        self._authenticator = authenticator

    async def may_administer(self, user_id: str, address: Address | None) -> bool:
        found: bool = (
            await import_module(CONSOLE_ACCESS_MODULE)
            .doorway(self._services, self._authenticator)
            .is_open(user_id, address)
        )
        return found


def new_address(services: Services) -> EmailChanges:
    letters = mail_composer(services.settings, masters=services.masters, clock=services.clock)
    return EmailChanges(
        store=services.storage.profile,
        links=EmailLinks(
            store=services.storage.registration,
            composer=letters,
            recorder=services.recorder,
            quota=Quota(store=services.storage.throttle, clock=services.clock),
            clock=services.clock,
        ),
        composer=letters,
        recorder=services.recorder,
        clock=services.clock,
        domains=services.settings.accounts.allowed_domains,
    )


def erasure(services: Services) -> Erasure:
    return Erasure(store=services.storage.profile, recorder=services.recorder, clock=services.clock)


def export(services: Services) -> DataExport:
    return DataExport(
        store=services.storage.profile,
        applications=services.data_requests,
        recorder=services.recorder,
        clock=services.clock,
        service=services.settings.server.base_url,
    )


def account_pages(
    services: Services,
    *,
    sessions: Sessions,
    sign_in: PasswordSignIn,
    devices: DeviceCookies,
    totp: Totp,
    email_codes: EmailCodes,
    recovery: RecoveryCodes,
    passkeys: Passkeys,
    factors: SecondFactors,
    telling: AccountNotifier,
    consents: Consents,
    browsers: BrowserSessions,
    pages: PageRenderer,
    authenticator: Authenticator,
) -> list[Endpoint]:
    store, clock, recorder = services.storage.profile, services.clock, services.recorder
    base_url = services.settings.server.base_url
    notices = NoticeCookie(https=base_url.startswith("https:"))
    owners = AccountView(browsers=browsers, sessions=sessions, pages=pages, notices=notices)
    profile = AccountProfile(store=store, recorder=recorder, clock=clock)
    account = AccountPage(
        profile=profile,
        data=services.data_requests,
        consents=consents,
        permissions=OwnPermissionsLoader(
            store=OwnPermissionsStorage(services.storage.runner),
            authenticator=authenticator,
            permission_loader=services.permission_loader,
            clock=clock,
        ),
        view=owners,
        pages=pages,
        notices=notices,
        places=open_geoip(services.settings.accounts.geoip_file),
        may_administer=ConsoleAccessCheck(services, authenticator).may_administer,
        clock=clock,
        mail_is_logged=services.mail_is_logged,
    )
    new_password = PasswordChange(
        store=store,
        sign_in=sign_in,
        passwords=services.passwords,
        rules=services.password_rules,
        notifier=telling,
        clock=clock,
    )
    confirmation = Reauthentication(
        store=store, sign_in=sign_in, factors=factors, passkeys=passkeys, recorder=recorder, clock=clock
    )
    return [
        *account.endpoints(),
        *ProfileForms(
            profile=profile,
            new_address=new_address(services),
            new_password=new_password,
            account=account,
            view=owners,
            pages=pages,
        ).endpoints(),
        *FactorForms(
            totp=totp, passkeys=passkeys, email_codes=email_codes, recovery=recovery, account=account, view=owners
        ).endpoints(),
        *SessionForms(sessions=sessions, view=owners).endpoints(),
        *ConnectedApplicationForms(consents=consents, view=owners).endpoints(),
        *PersonalDataForms(
            export=export(services),
            data=services.data_requests,
            erasure=erasure(services),
            browsers=browsers,
            view=owners,
        ).endpoints(),
        *ReauthenticationPage(
            confirmation=confirmation,
            email_codes=email_codes,
            passkeys=passkeys,
            devices=devices,
            browsers=browsers,
            view=owners,
            notices=notices,
        ).endpoints(),
    ]
