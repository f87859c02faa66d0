"""The part of the composition root that is about authorize: a person signs in to a client."""

from dataclasses import dataclass

from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.app.callers import authentication_services
from gatehouse.app.house import DAY, Services
from gatehouse.kernel.errors import NotFound
from gatehouse.oauth.authorize import AuthorizeService
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.granting import GrantCreator, GrantLifetimes
from gatehouse.oauth.occasion import AuthorizeSignInPurpose
from gatehouse.permissions.evaluation.places import CAN_ADMINISTER
from gatehouse.permissions.evaluation.reading import PermissionLoader
from gatehouse.permissions.login import LoginRules
from gatehouse.permissions.model.scope import ROOT
from gatehouse.permissions.store import ApplicationStore, ProjectStore
from gatehouse.web.pages.denied import DenialReasons


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServices:
    authorize: AuthorizeService
    consents: Consents
    granting: GrantCreator
    occasion: AuthorizeSignInPurpose


def authorization_services(house: Services, rules: LoginRules) -> AuthorizationServices:
    clock, recorder, storage = house.clock, house.recorder, house.storage
    consents = Consents(store=storage.consents, recorder=recorder, clock=clock)
    wanted = house.settings.oauth
    granting = GrantCreator(
        store=storage.grants,
        recorder=recorder,
        clock=clock,
        life=GrantLifetimes(code=wanted.code_seconds, family=wanted.refresh_family_days * DAY),
    )
    authorize = AuthorizeService(
        clients=storage.oauth,
        consents=consents,
        granting=granting,
        rules=rules,
        verifier=authentication_services(house).verifier,
        clock=clock,
        issuer=house.settings.server.base_url,
    )
    occasion = AuthorizeSignInPurpose(authorize=authorize, clients=storage.oauth, accounts=storage.accounts)
    return AuthorizationServices(authorize=authorize, consents=consents, granting=granting, occasion=occasion)


class ApplicationOwners:
    """Fills web/pages/consent.py Owners."""

    def __init__(self, *, applications: ApplicationStore, projects: ProjectStore) -> None:
        self._applications = applications
        self._projects = projects

    async def owner(self, application_id: int) -> str:
        try:
            application = await self._applications.application(application_id)
            if application.project_id is None:
                return ""
            return (await self._projects.project(application.project_id)).project.title
        except NotFound:
            return ""


class AdministratorCheck:
    """Fills web/pages/denied.py Administrators."""

    def __init__(self, reading: PermissionLoader) -> None:
        self._reading = reading

    async def is_administrator(self, user: User) -> bool:
        facts = await self._reading.facts(user.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            return False
        case = await self._reading.case(facts)
        return (await self._reading.effective(case, CENTRAL_APPLICATION, None)).allows(ROOT, CAN_ADMINISTER)


def application_owners(house: Services) -> ApplicationOwners:
    return ApplicationOwners(applications=house.storage.applications, projects=house.storage.projects)


def denied_reasons(house: Services, rules: LoginRules) -> DenialReasons:
    return DenialReasons(administrators=AdministratorCheck(house.reading), refusals=rules)
