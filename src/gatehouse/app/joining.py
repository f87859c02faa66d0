"""The part of the composition root that is about getting in for the first time, or again."""

from dataclasses import dataclass

from gatehouse.accounts.invitations import Invitations
from gatehouse.accounts.links import Links
from gatehouse.accounts.own.proofs import AddressProofs
from gatehouse.accounts.recovery import Recovery
from gatehouse.accounts.registration import Policy, Registration
from gatehouse.app.guessing import sign_in
from gatehouse.app.house import House
from gatehouse.app.mailing import composer
from gatehouse.app.own_account import new_address
from gatehouse.throttle.allowance import Allowance
from gatehouse.web.browser import Browsers
from gatehouse.web.pages.desk import Desk
from gatehouse.web.pages.forgot import ForgotPage
from gatehouse.web.pages.invite import InvitePage
from gatehouse.web.pages.register import RegisterPage
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.reset import ResetPage
from gatehouse.web.pages.verify_email import VerifyEmailPage
from gatehouse.web.routes.table import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    registration: Registration
    invitations: Invitations
    recovery: Recovery


def joining(house: House) -> Joining:
    store, clock, recorder = house.storage.registration, house.clock, house.recorder
    passwords, rules = house.passwords, house.password_rules
    letters = composer(house.settings, masters=house.masters, clock=clock)
    links = Links(
        store=store,
        composer=letters,
        recorder=recorder,
        allowance=Allowance(store=house.storage.throttle, clock=clock),
        clock=clock,
    )
    accounts = house.settings.accounts
    return Joining(
        registration=Registration(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            composer=letters,
            recorder=recorder,
            clock=clock,
            policy=Policy(is_open=accounts.registration, domains=accounts.allowed_domains),
        ),
        invitations=Invitations(
            store=store,
            links=links,
            administration=house.administration,
            passwords=passwords,
            rules=rules,
            recorder=recorder,
            clock=clock,
        ),
        recovery=Recovery(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            sign_in=sign_in(house),
            composer=letters,
            recorder=recorder,
            clock=clock,
        ),
    )


def joining_pages(house: House, *, browsers: Browsers, pages: Pages) -> list[Endpoint]:
    rooms = joining(house)
    desk = Desk(browsers=browsers, pages=pages)
    is_logged = house.mail_is_shown
    proofs = AddressProofs(registration=rooms.registration, new_address=new_address(house))
    return [
        *RegisterPage(registration=rooms.registration, desk=desk, mail_is_logged=is_logged).endpoints(),
        *VerifyEmailPage(
            registration=rooms.registration, proofs=proofs, desk=desk, mail_is_logged=is_logged
        ).endpoints(),
        *InvitePage(invitations=rooms.invitations, desk=desk).endpoints(),
        *ForgotPage(recovery=rooms.recovery, desk=desk, mail_is_logged=is_logged).endpoints(),
        *ResetPage(recovery=rooms.recovery, desk=desk).endpoints(),
    ]
