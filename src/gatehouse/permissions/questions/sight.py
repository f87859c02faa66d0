"""Whose rights a caller may ask about: his own, and others' with canRead `all` (R6)."""

from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import AuthenticatedRequest, Authenticator
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight, PersonNotFound
from gatehouse.permissions.evaluation.reading import EvaluationInput, PermissionLoader
from gatehouse.permissions.questions.user_schemas import readable_parts
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS


class QuestionAccess:
    def __init__(self, *, authenticator: Authenticator, permission_loader: PermissionLoader) -> None:
        self._authenticator = authenticator
        self._permission_loader = permission_loader

    async def load_input(self, caller: Caller, user_id: str) -> EvaluationInput:
        """The person's facts in the request's application. No right comes before no such thing (R6)."""
        application_id = caller.application_id
        if application_id is None:
            raise Malformed("application_id: required")
        case = await self._load_input(caller, user_id, application_id)
        if application_id not in case.models:
            raise ApplicationNotFound
        return case

    async def _load_input(self, caller: Caller, user_id: str, application_id: int) -> EvaluationInput:
        if caller.facts is not None and user_id == caller.user_id:
            return await self._permission_loader.load_input(caller.facts)
        visit = await self._authenticator.attach_rights(caller)
        refuse_about_others(visit, user_id)
        facts = await self._permission_loader.load_facts(user_id, (application_id,))
        if facts is None:
            raise PersonNotFound
        return await self._permission_loader.load_input(facts)


def refuse_about_others(request: AuthenticatedRequest, user_id: str = "") -> None:
    if not readable_parts(request, user_id) >= PERMISSION_PARTS:
        raise NoRight(f"permissions of user {user_id or 'anyone'}")


def refuse_about_everyone(request: AuthenticatedRequest) -> None:
    """members: who holds what, and so which roles there are."""
    refuse_about_others(request)
    require_operation(request.rights, Operation.ROLE_NAMES, request.target)
