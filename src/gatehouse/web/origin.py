"""By whose hand a request acts, for the audit log."""

from starlette.requests import HTTPConnection

from gatehouse.audit.model import AuditOrigin
from gatehouse.web.dialects import request_id_of
from gatehouse.web.middleware.client_address import caller_address_of


def origin_of(request: HTTPConnection, actor: str) -> AuditOrigin:
    caller = caller_address_of(request.scope)
    return AuditOrigin(
        actor=actor,
        address=str(caller.address),
        request_id=request_id_of(request.scope),
        proven=caller.proven,
    )
