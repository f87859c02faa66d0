"""API calls that several screens show, or that are about more than one line."""

from gatehouse.admin.model.games import session_ref
from gatehouse.admin.seen_log import may_read_schema
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.gamesessions.model import GameSession
from gatehouse.permissions.callers.desk import AuthenticatedRequest
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import Project
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.permissions.activity import activity_entry
from gatehouse.web.permissions.app_schemas import whole_schema
from gatehouse.web.permissions.game_sessions import game_session_entry as session_entry
from gatehouse.web.permissions.groups import group_list as groups_listed
from gatehouse.web.permissions.projects import project_record
from gatehouse.web.permissions.settings import SettingsPart


def record_call(record: AuditRecord | Refusal) -> ApiCall:
    """A record as the log shows it to whoever looks (admin/seen_log.py)."""
    return ApiCall(
        path="activity",
        body={"action": "get", "data": {"record_id": record.record_id}},
        record=activity_entry(record),
    )


def session_call(session: GameSession, application_id: int, *, administers: bool) -> ApiCall:
    about = {"application_id": application_id} if application_id else {}
    return ApiCall(
        path="gameSession",
        body={"action": "get", **about, "data": {"ref": session_ref(session.gsid)}},
        record=session_entry(session, whole=administers),
    )


def readable_schema_call(authenticated: AuthenticatedRequest, model: ApplicationModel) -> ApiCall | None:
    """None to whoever may change the schema and not read it: the call would be refused to him."""
    return schema_call(model) if may_read_schema(authenticated) else None


def schema_call(model: ApplicationModel) -> ApiCall:
    return ApiCall(
        path="meta/schema",
        body={"action": "get", "application_id": model.application.application_id},
        record=whole_schema(model),
    )


def project_call(project: Project) -> ApiCall:
    return ApiCall(
        path="project",
        body={"action": "get", "data": {"id": project.project_id}},
        record=project_record(project),
    )


def group_call(group: Group) -> ApiCall:
    return ApiCall(
        path="group",
        body={"action": "get", "group_id": group.group_id, "data": {"project_id": group.project_id}},
        record=groups_listed([group]),
    )


def settings_call(part: SettingsPart, **more: int) -> ApiCall:
    """`more`: what the page asked for beside the part."""
    data = {"part": part.__struct_config__.tag, **more}
    return ApiCall(path="settings", body={"action": "get", "data": data}, record=part)
