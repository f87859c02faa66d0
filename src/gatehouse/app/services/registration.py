"""Registration, recovery, and changes of addresses and passwords."""

from msgspec import Struct

from gatehouse.accounts.invitations import Invitations
from gatehouse.accounts.own_account.email_change import EmailChanges
from gatehouse.accounts.own_account.email_verification import EmailVerification
from gatehouse.accounts.own_account.password_change import PasswordChange
from gatehouse.accounts.pending_registrations import PendingRegistrations
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.accounts.registration import SelfRegistration
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.app.services.accounts import AccountServices
from gatehouse.app.services.core import Core
from gatehouse.app.services.policies import registration_policy
from gatehouse.mail.composer import Composer


class RegistrationServices(Struct, frozen=True, kw_only=True, eq=False):
    self_registration: SelfRegistration
    pending: PendingRegistrations
    invitations: Invitations
    password_recovery: PasswordRecovery
    password_change: PasswordChange
    email_changes: EmailChanges
    email_verification: EmailVerification


def build_registration(
    core: Core, accounts: AccountServices, *, composer: Composer, password_sign_in: PasswordSignIn
) -> RegistrationServices:
    store, recorder, clock = core.storage.registration, core.recorder, core.clock
    links, passwords, rules = accounts.email_links, accounts.passwords, accounts.password_rules
    pending = PendingRegistrations(
        store=store,
        accounts=core.storage.accounts,
        sealer=core.masters,
        key=core.derive_key("registration"),
        clock=clock,
    )
    registration = SelfRegistration(
        store=store,
        links=links,
        passwords=passwords,
        rules=rules,
        composer=composer,
        recorder=recorder,
        clock=clock,
        pending=pending,
        policy=lambda: registration_policy(core.settings.accounts),
    )
    email_changes = EmailChanges(
        store=core.storage.profile,
        links=links,
        composer=composer,
        recorder=recorder,
        clock=clock,
        domains=lambda: core.settings.accounts.allowed_domains,
    )
    return RegistrationServices(
        self_registration=registration,
        pending=pending,
        invitations=Invitations(
            store=store,
            links=links,
            administration=accounts.administration,
            passwords=passwords,
            rules=rules,
            recorder=recorder,
            clock=clock,
        ),
        password_recovery=PasswordRecovery(
            store=store,
            links=links,
            passwords=passwords,
            rules=rules,
            sign_in=password_sign_in,
            composer=composer,
            recorder=recorder,
            clock=clock,
            accounts=core.storage.accounts,
        ),
        password_change=PasswordChange(
            store=core.storage.profile,
            sign_in=password_sign_in,
            passwords=passwords,
            rules=rules,
            notifier=accounts.notifier,
            clock=clock,
            methods=accounts.enabled_methods,
        ),
        email_changes=email_changes,
        email_verification=EmailVerification(
            registration=registration,
            email_changes=email_changes,
            links=links,
            pending=pending,
            accounts=core.storage.accounts,
        ),
    )
