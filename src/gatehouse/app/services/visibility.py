"""Whether the console has anything for somebody, composed; without the console itself."""

from gatehouse.admin.activity import VisibleAuditLog, redact_record
from gatehouse.admin.visibility import ConsoleAccess, VisibilityLoader
from gatehouse.app.services.core import Services
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.visibility import VisibilityStorage


def doorway(services: Services, authenticator: Authenticator) -> ConsoleAccess:
    return ConsoleAccess(
        authenticator=authenticator,
        permission_loader=services.permission_loader,
        visibility_loader=VisibilityLoader(VisibilityStorage(services.storage.runner)),
    )


# What people may see of the audit log, composed; comes with the first record that somebody asks for.


def visible_log(services: Services, authenticator: Authenticator) -> VisibleAuditLog:
    return VisibleAuditLog(
        log=services.storage.audit, store=ActivityStorage(services.storage.runner), authenticator=authenticator
    )


async def record_for(
    services: Services, authenticator: Authenticator, request: AuthenticatedRequest, record_id: str
) -> AuditRecord | Refusal:
    sight = await VisibilityLoader(VisibilityStorage(services.storage.runner)).load(request.rights)
    return redact_record(await visible_log(services, authenticator).record(request, sight, record_id), request.rights)
