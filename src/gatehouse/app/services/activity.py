"""What people may see of the audit log; loaded at the first use, see api_endpoints.py."""

from gatehouse.admin.activity import ActivityStore
from gatehouse.admin.visible_audit_log import VisibleAuditLog, redact_record
from gatehouse.app.services import Services
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest


def visible_audit_log(services: Services) -> VisibleAuditLog:
    return VisibleAuditLog(
        log=services.storage.audit,
        store=ActivityStore(services.storage.runner),
        authenticator=services.permissions.authenticator,
    )


async def visible_record(services: Services, request: AuthenticatedRequest, record_id: str) -> AuditRecord | Refusal:
    visibility = await services.admin.visibility_loader.load(request.rights)
    found = await visible_audit_log(services).record(request, visibility, record_id)
    return redact_record(found, request.rights)
