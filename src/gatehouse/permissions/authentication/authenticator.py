"""Authenticate a request to a permission endpoint: from credentials to a caller with rights."""

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.callers import Caller, CallerIdentifier
from gatehouse.permissions.authentication.credentials import CredentialPolicy, RequestCredentials
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.rights.rights import Rights, ServiceReach, secret_data_of
from gatehouse.permissions.rights.secret_data import FULL_SECRET_DATA, NO_SECRET_DATA, PERMISSION_PARTS, RecordPart


class AuthenticatedRequest(Struct, frozen=True, kw_only=True):
    """A caller with everything that decides about the request."""

    caller: Caller
    evaluation_input: EvaluationInput
    rights: Rights
    application_id: int | None  # what the request is about

    def actor(self, origin: AuditOrigin) -> Actor:
        return Actor(rights=self.rights, origin=origin)

    @property
    def central(self) -> ApplicationModel:
        return self.evaluation_input.models[CENTRAL_APPLICATION]

    @property
    def model(self) -> ApplicationModel | None:
        """The application the request is about; None when it names none or an unknown one."""
        return None if self.application_id is None else self.evaluation_input.models.get(self.application_id)

    @property
    def target(self) -> GuardTarget:
        """The request's application, in the project that is stored for it (R5)."""
        model = self.model
        return GuardTarget(
            application_id=self.application_id,
            project_id=None if model is None else model.application.project_id,
        )

    def named_application(self) -> ApplicationModel:
        """The application the request must name; an unknown one is NoRight unless the caller is an administrator."""
        self._refuse_unnamed()
        if self.model is None:
            raise ApplicationNotFound if self.rights.administers else NoRight("unknown application")
        return self.model

    def require_application(self, operation: Operation) -> ApplicationModel:
        """The application, if the caller may do this to it; NoRight is checked before NotFound (R6)."""
        self._refuse_unnamed()
        require_operation(self.rights, operation, self.target)
        if self.model is None:
            raise ApplicationNotFound
        return self.model

    def _refuse_unnamed(self) -> None:
        """Raise Malformed if neither the request nor a vouching service names one (interface §4.9, §4.10)."""
        if self.application_id is None:
            raise Malformed("application_id: required")


class Authenticator:
    def __init__(
        self, *, caller_identifier: CallerIdentifier, permission_loader: PermissionLoader, clock: Clock
    ) -> None:
        self._caller_identifier = caller_identifier
        self._permission_loader = permission_loader
        self._clock = clock

    async def authenticate(
        self,
        credentials: RequestCredentials,
        policy: CredentialPolicy,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> AuthenticatedRequest:
        """Authenticate a request.

        Raises InvalidToken, WrongCredentials; NoRight when a service calls without a required person.
        """
        return await self.attach_rights(
            await self._caller_identifier.identify(credentials, policy, application_id=application_id, also=also)
        )

    async def identify_caller(
        self, credentials: RequestCredentials, policy: CredentialPolicy, *, application_id: int | None = None
    ) -> Caller:
        """The caller without rights; a service alone is accepted."""
        return await self._caller_identifier.identify(credentials, policy, application_id=application_id)

    async def attach_rights(self, caller: Caller) -> AuthenticatedRequest:
        if caller.facts is None:
            raise NoRight("a service can only ask about itself")
        evaluation_input = await self._permission_loader.load_input(caller.facts)
        return AuthenticatedRequest(
            caller=caller,
            evaluation_input=evaluation_input,
            rights=await self._evaluate_rights(caller, evaluation_input),
            application_id=caller.application_id,
        )

    async def attach_rights_in_each(
        self, caller: Caller, application_ids: Collection[int]
    ) -> Mapping[int, AuthenticatedRequest]:
        """The same caller with rights on each of these applications, from one read of the facts."""
        facts = await self._permission_loader.load_facts(caller.user_id, {CENTRAL_APPLICATION, *application_ids})
        if facts is None:
            raise NoRight("the account does not exist")
        return {
            application_id: await self.attach_rights(replace(caller, facts=facts, application_id=application_id))
            for application_id in application_ids
        }

    async def _evaluate_rights(self, caller: Caller, evaluation_input: EvaluationInput) -> Rights:
        # An address that an application signed for its user gives no rights in application 1.
        address = (
            caller.address if caller.by is CallerKind.FACTOR and caller.vouching_application_id is None else None
        )
        held = await self._permission_loader.evaluate(evaluation_input, CENTRAL_APPLICATION, address)
        rights = Rights(user_id=caller.user_id, central=held)
        application_id = caller.application_id
        model = None if application_id is None else evaluation_input.models.get(application_id)
        if model is None or application_id is None:
            secret = FULL_SECRET_DATA if rights.holds_can_administer else NO_SECRET_DATA
        else:
            own = evaluation_input.facts.records[application_id].secret_data
            secret = secret_data_of(held, model, own, self._clock.now())
            if is_project_removed(model, evaluation_input) and not rights.holds_can_administer:
                secret = NO_SECRET_DATA
            if evaluation_input.facts.ban_from(application_id, self._clock.now()) is not None:
                secret = NO_SECRET_DATA
        return Rights(
            user_id=caller.user_id,
            central=held,
            secret=secret,
            also_readable=frozenset() if model is None else service_account_parts(model, evaluation_input),
            service_reach=service_reach(caller, evaluation_input),
        )


def is_project_removed(model: ApplicationModel, evaluation_input: EvaluationInput) -> bool:
    """Whether the application's project is removed: then no rights on it count (R5)."""
    project_id = model.application.project_id
    if project_id is None:
        return False
    home = evaluation_input.structure.projects.get(project_id)
    return home is None or home.project.removed


def service_account_parts(model: ApplicationModel, evaluation_input: EvaluationInput) -> frozenset[RecordPart]:
    """What a service account reads of any user in applications of its project (R1)."""
    account = evaluation_input.facts.service_account
    return (
        PERMISSION_PARTS
        if account is not None and account.project_id == model.application.project_id
        else frozenset()
    )


def service_reach(caller: Caller, evaluation_input: EvaluationInput) -> ServiceReach | None:
    """The reach of the application that vouches for the caller; None when none does."""
    if caller.vouching_application_id is None:
        return None
    state = evaluation_input.facts.applications.get(caller.vouching_application_id)
    return ServiceReach(
        application_id=caller.vouching_application_id, project_id=None if state is None else state.project_id
    )
