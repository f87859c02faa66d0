"""What administrators do to accounts, for the console and the API; loaded at the first use."""

from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_admin import PeopleAdmin, SignInServices
from gatehouse.admin.people_search import PeopleSearchStore
from gatehouse.app.services import Services
from gatehouse.web.api.permissions.user_admin import UserAdminServices


def people_admin(services: Services) -> PeopleAdmin:
    return PeopleAdmin(
        accounts=services.storage.accounts,
        administration=services.administration,
        editing=services.account_editor,
        invitations=services.invitations,
        recovery=services.password_recovery,
        erasure=services.erasure,
        consents=services.consents,
        schemas=services.user_record_commands,
        sign_in=SignInServices(
            sessions=services.sessions,
            factors=services.second_factors,
            totp=services.totp,
            passkeys=services.passkeys,
            email_codes=services.email_codes,
        ),
        images=services.image_loader,
        lists=PeopleListStore(services.storage.runner),
        clock=services.clock,
        base_url=services.base_url,
    )


def user_admin_services(services: Services) -> UserAdminServices:
    runner = services.storage.runner
    return UserAdminServices(
        people_admin=people_admin(services),
        lists=PeopleListStore(runner),
        find_nick=PeopleSearchStore(runner).nick_in_application,
        account_of_former_id=services.storage.profile.account_of_former_id,
    )
