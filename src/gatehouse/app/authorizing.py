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
    purpose: AuthorizeSignInPurpose


def authorization_services(services: Services, rules: LoginRules) -> AuthorizationServices:
    clock, recorder, storage = services.clock, services.recorder, services.storage
    consents = Consents(store=storage.consents, recorder=recorder, clock=clock)
    wanted = services.settings.oauth
    granting = GrantCreator(
        store=storage.grants,
        recorder=recorder,
        clock=clock,
        lifetimes=GrantLifetimes(code_seconds=wanted.code_seconds, family_seconds=wanted.refresh_family_days * DAY),
    )
    authorize = AuthorizeService(
        clients=storage.clients,
        consents=consents,
        grant_creator=granting,
        rules=rules,
        verifier=authentication_services(services).verifier,
        clock=clock,
        issuer=services.settings.server.base_url,
    )
    occasion = AuthorizeSignInPurpose(authorize=authorize, clients=storage.clients, accounts=storage.accounts)
    return AuthorizationServices(authorize=authorize, consents=consents, granting=granting, purpose=occasion)


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
        facts = await self._reading.load_facts(user.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            return False
        case = await self._reading.load_input(facts)
        return (await self._reading.evaluate(case, CENTRAL_APPLICATION, None)).allows(ROOT, CAN_ADMINISTER)


def application_owners(services: Services) -> ApplicationOwners:
    return ApplicationOwners(applications=services.storage.applications, projects=services.storage.projects)


def denied_reasons(services: Services, rules: LoginRules) -> DenialReasons:
    return DenialReasons(administrators=AdministratorCheck(services.permission_loader), refusals=rules)
