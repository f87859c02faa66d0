"""By whose hand a request acts, for the audit log."""

from starlette.requests import HTTPConnection

from gatehouse.audit.model import Origin
from gatehouse.web.dialects import request_id_of
from gatehouse.web.middleware.client_address import caller_of


def origin_of(request: HTTPConnection, actor: str) -> Origin:
    caller = caller_of(request.scope)
    return Origin(
        actor=actor,
        address=str(caller.address),
        request_id=request_id_of(request.scope),
        proven=caller.proven,
    )
