"""API calls that several screens show, or that are about more than one line."""

from gatehouse.admin.model.games import ref_of
from gatehouse.audit.model import Record, Refusal
from gatehouse.gamesessions.model import GameSession
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.permissions.activity import entry as activity_entry
from gatehouse.web.permissions.game_sessions import entry as session_entry


def record_call(found: Record | Refusal) -> ApiCall:
    """A record as the log shows it to whoever looks (admin/seen_log.py)."""
    return ApiCall(
        path="activity",
        body={"action": "get", "data": {"record_id": found.record_id}},
        record=activity_entry(found),
    )


def session_call(session: GameSession, application_id: int, *, administers: bool) -> ApiCall:
    about = {"application_id": application_id} if application_id else {}
    return ApiCall(
        path="gameSession",
        body={"action": "get", **about, "data": {"ref": ref_of(session.gsid)}},
        record=session_entry(session, whole=administers),
    )
