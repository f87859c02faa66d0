"""What people may see of the audit log, composed; comes with the first record that somebody asks for."""

from gatehouse.admin.seen_log import VisibleAuditLog, redact_record
from gatehouse.admin.sights import VisibilityLoader
from gatehouse.app.house import Services
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.permissions.callers.desk import AuthenticatedRequest, Authenticator
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.sight import VisibilityStorage


def visible_log(services: Services, authenticator: Authenticator) -> VisibleAuditLog:
    return VisibleAuditLog(
        log=services.storage.audit, store=ActivityStorage(services.storage.runner), authenticator=authenticator
    )


async def record_for(
    services: Services, authenticator: Authenticator, request: AuthenticatedRequest, record_id: str
) -> AuditRecord | Refusal:
    sight = await VisibilityLoader(VisibilityStorage(services.storage.runner)).load(request.rights)
    return redact_record(await visible_log(services, authenticator).record(request, sight, record_id), request.rights)
