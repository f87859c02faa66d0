"""The part of the composition root that is about authorize: a person signs in to a client."""

from dataclasses import dataclass

from gatehouse.accounts.model import CENTRAL, User
from gatehouse.app.callers import proofs
from gatehouse.app.house import DAY, House
from gatehouse.kernel.errors import NotFound
from gatehouse.oauth.authorize import Authorize
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.granting import Granting, GrantLife
from gatehouse.oauth.occasion import AuthorizeOccasion
from gatehouse.permissions.evaluation.places import CAN_ADMINISTER
from gatehouse.permissions.evaluation.reading import Reading
from gatehouse.permissions.login import LoginRules
from gatehouse.permissions.model.scope import ROOT
from gatehouse.permissions.store import ApplicationStore, ProjectStore
from gatehouse.web.pages.denied import DeniedReasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorizing:
    authorize: Authorize
    consents: Consents
    granting: Granting
    occasion: AuthorizeOccasion


def authorizing_room(house: House, rules: LoginRules) -> Authorizing:
    clock, recorder, storage = house.clock, house.recorder, house.storage
    consents = Consents(store=storage.consents, recorder=recorder, clock=clock)
    wanted = house.settings.oauth
    granting = Granting(
        store=storage.grants,
        recorder=recorder,
        clock=clock,
        life=GrantLife(code=wanted.code_seconds, family=wanted.refresh_family_days * DAY),
    )
    authorize = Authorize(
        clients=storage.oauth,
        consents=consents,
        granting=granting,
        rules=rules,
        verifier=proofs(house).verifier,
        clock=clock,
        issuer=house.settings.server.base_url,
    )
    occasion = AuthorizeOccasion(authorize=authorize, clients=storage.oauth, accounts=storage.accounts)
    return Authorizing(authorize=authorize, consents=consents, granting=granting, occasion=occasion)


class Owners:
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


class Administrators:
    """Fills web/pages/denied.py Administrators."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def is_administrator(self, user: User) -> bool:
        facts = await self._reading.facts(user.user_id, (CENTRAL,))
        if facts is None:
            return False
        case = await self._reading.case(facts)
        return (await self._reading.effective(case, CENTRAL, None)).allows(ROOT, CAN_ADMINISTER)


def owners_of(house: House) -> Owners:
    return Owners(applications=house.storage.applications, projects=house.storage.projects)


def denied_reasons(house: House, rules: LoginRules) -> DeniedReasons:
    return DeniedReasons(administrators=Administrators(house.reading), refusals=rules)
