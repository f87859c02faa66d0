"""What people may see of the audit log, composed; comes with the first record that somebody asks for."""

from gatehouse.admin.seen_log import VisibleAuditLog, redact_record
from gatehouse.admin.sights import VisibilityLoader
from gatehouse.app.house import Services
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.permissions.callers.desk import AuthenticatedRequest, Authenticator
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.sight import VisibilityStorage


def visible_log(house: Services, desk: Authenticator) -> VisibleAuditLog:
    return VisibleAuditLog(log=house.storage.audit, store=ActivityStorage(house.storage.runner), desk=desk)


async def record_for(
    house: Services, desk: Authenticator, visit: AuthenticatedRequest, record_id: str
) -> AuditRecord | Refusal:
    sight = await VisibilityLoader(VisibilityStorage(house.storage.runner)).of(visit.rights)
    return redact_record(await visible_log(house, desk).record(visit, sight, record_id), visit.rights)
