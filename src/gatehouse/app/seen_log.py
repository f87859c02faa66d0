"""What people may see of the audit log, composed; comes with the first record that somebody asks for."""

from gatehouse.admin.seen_log import SeenLog, shown
from gatehouse.admin.sights import Sights
from gatehouse.app.house import House
from gatehouse.audit.model import Record, Refusal
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.sight import SightStorage


def seen_log(house: House, desk: Desk) -> SeenLog:
    return SeenLog(log=house.storage.audit, store=ActivityStorage(house.storage.runner), desk=desk)


async def record_for(house: House, desk: Desk, visit: Visit, record_id: str) -> Record | Refusal:
    sight = await Sights(SightStorage(house.storage.runner)).of(visit.rights)
    return shown(await seen_log(house, desk).record(visit, sight, record_id), visit.rights)
