"""POST /api/permissions/group, group/access and group/tags (interface §4.7, R6)."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_values
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.drafts import TagsDraft
from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands, GroupDraft
from gatehouse.permissions.documents.grammar import GroupId
from gatehouse.permissions.errors import GroupNotFound, Malformed
from gatehouse.permissions.model.group import GROUP_FIELDS, MAX_GROUP_USERS, Group
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint

NO_GROUP = GroupDraft()


class GroupRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    group_id: GroupId | None = None
    data: GroupDraft = NO_GROUP


class GroupAccessRequest(CredentialFields, frozen=True, kw_only=True):
    group_id: GroupId
    data: AccessDraft


class GroupTagsRequest(CredentialFields, frozen=True, kw_only=True):
    group_id: GroupId
    data: TagsDraft


class GroupEndpoints(Struct, kw_only=True, eq=False):
    groups: GroupCommands
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, GroupRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        match body.action:
            case "get":
                if not isinstance(body.data.project_id, str):
                    raise Malformed("data.project_id: required")
                groups = await self.groups.list_in_project(actor, body.data.project_id)
                return data_response(
                    group_list(groups if body.group_id is None else select_group(groups, body.group_id))
                )
            case "save":
                return data_response(group_record(await self.groups.save(actor, body.group_id, body.data)))
            case "delete":
                if body.group_id is None:
                    raise Malformed("group_id: required")
                await self.groups.delete(actor, body.group_id, body.data.version)
                return ok_response()

    async def save_access(self, request: Request) -> Response:
        body = await read_json(request, GroupAccessRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        saved = await self.groups.save_access(actor, body.group_id, body.data)
        return data_response(group_record(saved))

    async def save_tags(self, request: Request) -> Response:
        body = await read_json(request, GroupTagsRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        saved = await self.groups.save_tags(actor, body.group_id, body.data)
        return data_response(group_record(saved))

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "group",
                self.handle,
                name="group",
                request=GroupRequest,
                section="interface §4.7",
                summary="Groups of a project: get, save, delete",
            ),
            permission_endpoint(
                "group/access",
                self.save_access,
                name="group_access",
                request=GroupAccessRequest,
                section="interface §4.7",
                summary="Set the conditions and users of a group",
            ),
            permission_endpoint(
                "group/tags",
                self.save_tags,
                name="group_tags",
                request=GroupTagsRequest,
                section="interface §4.7",
                summary="Replace the tags of a group",
            ),
        ]


def select_group(groups: Sequence[Group], group_id: str) -> Sequence[Group]:
    """Return the group among those that the caller manages; callers do not learn whether other groups exist."""
    matches = [group for group in groups if group.group_id == group_id]
    if not matches:
        raise GroupNotFound
    return matches


def group_list(groups: Sequence[Group]) -> dict[str, object]:
    return {"groups": [group_record(group) for group in groups], "max_users_cnt": MAX_GROUP_USERS}


def group_record(group: Group) -> dict[str, object]:
    return entry_values(group, GROUP_FIELDS)
