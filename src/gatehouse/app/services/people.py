"""What administrators do to accounts, for the console and the API; loaded at the first use."""

from gatehouse.admin.access_invitations import AccessInvitations
from gatehouse.admin.bulk_invitations import BulkInvitations
from gatehouse.admin.inviter_rights import InviterRights
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_admin import PeopleAdmin, PersonSignIn
from gatehouse.admin.people_search import PeopleSearchStore
from gatehouse.admin.sign_in_doctor import SignInDoctor
from gatehouse.app.services import Services
from gatehouse.throttle.quotas import Quota
from gatehouse.web.api.permissions.user_admin import UserAdminServices


def access_invitations(services: Services) -> AccessInvitations:
    storage = services.storage
    return AccessInvitations(
        invitations=services.registration.invitations,
        logins=storage.registration,
        store=storage.access_invitations,
        rights=InviterRights(
            authenticator=services.permissions.authenticator,
            permission_loader=services.permissions.loader,
            models=storage.permissions,
            clock=services.clock,
        ),
        projects=storage.projects,
        groups=storage.groups,
        group_commands=services.commands.groups,
        records=services.commands.user_records,
        quota=Quota(store=storage.throttle, clock=services.clock),
        composer=services.mail.composer,
        recorder=services.core.recorder,
        clock=services.clock,
    )


def bulk_invitations(services: Services) -> BulkInvitations:
    return BulkInvitations(
        invitations=access_invitations(services),
        accounts=services.storage.accounts,
        lists=PeopleListStore(services.storage.runner),
        clock=services.clock,
    )


def people_admin(services: Services) -> PeopleAdmin:
    return PeopleAdmin(
        accounts=services.storage.accounts,
        administration=services.accounts.administration,
        editing=services.accounts.editor,
        invitations=access_invitations(services),
        recovery=services.registration.password_recovery,
        erasure=services.accounts.erasure,
        consents=services.oauth.consents,
        given_grants=services.oauth.given_grants,
        schemas=services.commands.user_records,
        sign_in=PersonSignIn(
            sessions=services.accounts.sessions,
            factors=services.factors.second_factors,
            totp=services.factors.totp,
            passkeys=services.factors.passkeys,
            email_codes=services.factors.email_codes,
            phone_codes=services.factors.phone_codes,
        ),
        images=services.images.loader,
        lists=PeopleListStore(services.storage.runner),
        clock=services.clock,
        base_url=services.base_url,
    )


def sign_in_doctor(services: Services) -> SignInDoctor:
    return SignInDoctor(
        accounts=services.storage.accounts,
        store=services.storage.profile,
        question_access=services.questions.access,
        rules=services.permissions.login_rules,
        terms=services.sign_in.terms,
        locked_seconds=services.sign_in.passwords.locked_seconds,
        signs_in_by_email=services.sign_in.emails.is_available_to,
        recorder=services.core.recorder,
        clock=services.clock,
    )


def user_admin_services(services: Services) -> UserAdminServices:
    runner = services.storage.runner
    return UserAdminServices(
        people_admin=people_admin(services),
        doctor=sign_in_doctor(services),
        invitations=access_invitations(services),
        lists=PeopleListStore(runner),
        find_nick=PeopleSearchStore(runner).nick_in_application,
        account_of_former_id=services.storage.profile.account_of_former_id,
    )
