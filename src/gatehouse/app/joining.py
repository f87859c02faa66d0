"""The part of the composition root that is about getting in for the first time, or again."""

from dataclasses import dataclass

from gatehouse.accounts.invitations import Invitations
from gatehouse.accounts.links import EmailLinks
from gatehouse.accounts.own.proofs import EmailVerification
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.accounts.registration import RegistrationPolicy, SelfRegistration
from gatehouse.app.guessing import sign_in
from gatehouse.app.house import Services
from gatehouse.app.mailing import mail_composer
from gatehouse.app.own_account import new_address
from gatehouse.throttle.allowance import Quota
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.pages.desk import PublicForms
from gatehouse.web.pages.forgot import ForgotPage
from gatehouse.web.pages.invite import InvitePage
from gatehouse.web.pages.register import RegisterPage
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.reset import ResetPage
from gatehouse.web.pages.verify_email import VerifyEmailPage
from gatehouse.web.routes.table import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationServices:
    registration: SelfRegistration
    invitations: Invitations
    recovery: PasswordRecovery


def registration_services(services: Services) -> RegistrationServices:
    store, clock, recorder = services.storage.registration, services.clock, services.recorder
    passwords, rules = services.passwords, services.password_rules
    letters = mail_composer(services.settings, masters=services.masters, clock=clock)
    links = EmailLinks(
        store=store,
        composer=letters,
        recorder=recorder,
        quota=Quota(store=services.storage.throttle, clock=clock),
        clock=clock,
    )
    accounts = services.settings.accounts
    return RegistrationServices(
        registration=SelfRegistration(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            composer=letters,
            recorder=recorder,
            clock=clock,
            policy=RegistrationPolicy(is_open=accounts.registration, domains=accounts.allowed_domains),
        ),
        invitations=Invitations(
            store=store,
            links=links,
            administration=services.administration,
            passwords=passwords,
            rules=rules,
            recorder=recorder,
            clock=clock,
        ),
        recovery=PasswordRecovery(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            sign_in=sign_in(services),
            composer=letters,
            recorder=recorder,
            clock=clock,
        ),
    )


def registration_pages(services: Services, *, browsers: BrowserSessions, pages: PageRenderer) -> list[Endpoint]:
    rooms = registration_services(services)
    desk = PublicForms(browsers=browsers, pages=pages)
    is_logged = services.mail_is_logged
    proofs = EmailVerification(registration=rooms.registration, email_changes=new_address(services))
    return [
        *RegisterPage(registration=rooms.registration, forms=desk, mail_is_logged=is_logged).endpoints(),
        *VerifyEmailPage(
            registration=rooms.registration, proofs=proofs, forms=desk, mail_is_logged=is_logged
        ).endpoints(),
        *InvitePage(invitations=rooms.invitations, forms=desk).endpoints(),
        *ForgotPage(recovery=rooms.recovery, forms=desk, mail_is_logged=is_logged).endpoints(),
        *ResetPage(recovery=rooms.recovery, forms=desk).endpoints(),
    ]
