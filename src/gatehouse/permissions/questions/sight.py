"""Whose rights a caller may ask about: his own, and others' with canRead `all` (R6)."""

from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight, PersonNotFound
from gatehouse.permissions.evaluation.reading import Case, Reading
from gatehouse.permissions.questions.user_schemas import readable
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.permissions.rights.secret_data import WHAT_IS_HELD


class Sights:
    def __init__(self, *, desk: Desk, reading: Reading) -> None:
        self._desk = desk
        self._reading = reading

    async def case(self, caller: Caller, user_id: str) -> Case:
        """The person's facts in the request's application. No right comes before no such thing (R6)."""
        application_id = caller.application_id
        if application_id is None:
            raise Malformed("application_id: required")
        case = await self._case(caller, user_id, application_id)
        if application_id not in case.models:
            raise ApplicationNotFound
        return case

    async def _case(self, caller: Caller, user_id: str, application_id: int) -> Case:
        if caller.facts is not None and user_id == caller.user_id:
            return await self._reading.case(caller.facts)
        visit = await self._desk.visit(caller)
        refuse_about_others(visit, user_id)
        facts = await self._reading.facts(user_id, (application_id,))
        if facts is None:
            raise PersonNotFound
        return await self._reading.case(facts)


def refuse_about_others(visit: Visit, user_id: str = "") -> None:
    if not readable(visit, user_id) >= WHAT_IS_HELD:
        raise NoRight(f"permissions of user {user_id or 'anyone'}")


def refuse_about_everybody(visit: Visit) -> None:
    """members: who holds what, and so which roles there are."""
    refuse_about_others(visit)
    require(visit.rights, Operation.ROLE_NAMES, visit.about)
