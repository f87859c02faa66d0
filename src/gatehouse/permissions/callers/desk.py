"""Where a request to a permission endpoint is received: from credentials to a caller with his rights."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from gatehouse.audit.model import Origin
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import Caller, Callers
from gatehouse.permissions.callers.credentials import Credentials, Need
from gatehouse.permissions.callers.standing import CallerKind
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight
from gatehouse.permissions.evaluation.reading import Case, Reading
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import About, Operation, require
from gatehouse.permissions.rights.rights import Reach, Rights, secret_data_of
from gatehouse.permissions.rights.secret_data import EVERYTHING, NO_SECRETS, WHAT_IS_HELD, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A caller at the desk, with everything his request is judged by."""

    caller: Caller
    case: Case
    rights: Rights
    application_id: int | None  # what the request is about

    def actor(self, origin: Origin) -> Actor:
        return Actor(rights=self.rights, origin=origin)

    @property
    def central(self) -> ApplicationModel:
        return self.case.models[CENTRAL_ID]

    @property
    def model(self) -> ApplicationModel | None:
        """The application the request is about; None when there is none, or it never was."""
        return None if self.application_id is None else self.case.models.get(self.application_id)

    @property
    def about(self) -> About:
        """The request's application, in the project that is stored for it (R5)."""
        model = self.model
        return About(
            application_id=self.application_id,
            project_id=None if model is None else model.application.project_id,
        )

    def application(self) -> ApplicationModel:
        """The application the request has to name; to whoever administers nothing an unknown one is forbidden."""
        self._refuse_unnamed()
        if self.model is None:
            raise ApplicationNotFound if self.rights.administers else NoRight("unknown application")
        return self.model

    def opened(self, operation: Operation) -> ApplicationModel:
        """The application, if the caller may do this to it; no right comes before no application (R6)."""
        self._refuse_unnamed()
        require(self.rights, operation, self.about)
        if self.model is None:
            raise ApplicationNotFound
        return self.model

    def _refuse_unnamed(self) -> None:
        """Neither the request nor a service that vouches says which one (interface §4.9, §4.10)."""
        if self.application_id is None:
            raise Malformed("application_id: required")


class Desk:
    def __init__(self, *, callers: Callers, reading: Reading, clock: Clock) -> None:
        self._callers = callers
        self._reading = reading
        self._clock = clock

    async def receive(
        self,
        credentials: Credentials,
        need: Need,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> Visit:
        """Raises InvalidToken, WrongCredentials; NoRight when nobody but a service asks where a person must."""
        return await self.visit(
            await self._callers.identify(credentials, need, application_id=application_id, also=also)
        )

    async def caller(self, credentials: Credentials, need: Need, *, application_id: int | None = None) -> Caller:
        """Whoever it is, a service alone too."""
        return await self._callers.identify(credentials, need, application_id=application_id)

    async def visit(self, caller: Caller) -> Visit:
        if caller.facts is None:
            raise NoRight("a service can only ask about itself")
        case = await self._reading.case(caller.facts)
        return Visit(
            caller=caller,
            case=case,
            rights=await self._rights(caller, case),
            application_id=caller.application_id,
        )

    async def about_each(self, caller: Caller, application_ids: Collection[int]) -> Mapping[int, Visit]:
        """The same caller, about each of these applications, of one moment."""
        facts = await self._reading.facts(caller.user_id, {CENTRAL_ID, *application_ids})
        if facts is None:
            raise NoRight("the account does not exist")
        return {one: await self.visit(replace(caller, facts=facts, application_id=one)) for one in application_ids}

    async def _rights(self, caller: Caller, case: Case) -> Rights:
        # An address that an application signed for its user opens nothing in application 1.
        address = caller.address if caller.by is CallerKind.FACTOR and caller.service is None else None
        held = await self._reading.effective(case, CENTRAL_ID, address)
        rights = Rights(user_id=caller.user_id, central=held)
        application_id = caller.application_id
        model = None if application_id is None else case.models.get(application_id)
        if model is None or application_id is None:
            secret = EVERYTHING if rights.administers else NO_SECRETS
        else:
            own = case.facts.records[application_id].secret_data
            secret = secret_data_of(held, model, own, self._clock.now())
            if is_shut(model, case) and not rights.administers:
                secret = NO_SECRETS
        return Rights(
            user_id=caller.user_id,
            central=held,
            secret=secret,
            also_reads=frozenset() if model is None else service_account_parts(model, case),
            within=reach_of(caller, case),
        )


def is_shut(model: ApplicationModel, case: Case) -> bool:
    """Whether the application's project is removed: then nobody's rights on it count (R5)."""
    project_id = model.application.project_id
    if project_id is None:
        return False
    home = case.structure.projects.get(project_id)
    return home is None or home.project.removed


def service_account_parts(model: ApplicationModel, case: Case) -> frozenset[Part]:
    """What a service account reads of any user in applications of its project (R1)."""
    account = case.facts.service_account
    return WHAT_IS_HELD if account is not None and account.project_id == model.application.project_id else frozenset()


def reach_of(caller: Caller, case: Case) -> Reach | None:
    """As far as the application goes that vouches for the caller; None when it is the person himself."""
    if caller.service is None:
        return None
    state = case.facts.applications.get(caller.service)
    return Reach(application_id=caller.service, project_id=None if state is None else state.project_id)
