"""POST /api/permissions/publish, project, project/tags and project/membership (interface §4.6, R5, R6)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_members, entry_values, with_members
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.drafts import TagsDraft
from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectDraft
from gatehouse.permissions.commands.publishing import ProjectPublisher
from gatehouse.permissions.documents.grammar import Title
from gatehouse.permissions.model.project import PROJECT_FIELDS, Project
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint


class PublishRequest(CredentialFields, frozen=True, kw_only=True):
    project: Title
    user: str | None = None


class ProjectRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete", "erase"]
    data: ProjectDraft


class ProjectTagsRequest(CredentialFields, frozen=True, kw_only=True):
    data: TagsDraft


class MembershipRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save"]
    data: MembershipDraft


@with_members(lambda: entry_members(PROJECT_FIELDS))
class ProjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    pass


class ProjectResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: ProjectRecord | None = None


class ProjectEndpoints(Struct, kw_only=True, eq=False):
    publishing: ProjectPublisher
    projects: ProjectCommands
    memberships: MembershipCommands
    full_removal: FullRemoval
    authenticator: Authenticator

    async def publish(self, request: Request) -> Response:
        body = await read_json(request, PublishRequest)
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        project = await self.publishing.publish(
            actor_of(request, authenticated), authenticated.evaluation_input.facts, body.project, body.user
        )
        return data_response(project_record(project))

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ProjectRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        match body.action:
            case "get":
                return data_response(project_record(await self.projects.get(actor, body.data.id)))
            case "save":
                return data_response(project_record(await self.projects.save(actor, body.data)))
            case "delete":
                await self.projects.delete(actor, body.data.id, body.data.version)
                return ok_response()
            case "erase":
                await self.full_removal.remove(actor, body.data.id)
                return ok_response()

    async def save_tags(self, request: Request) -> Response:
        body = await read_json(request, ProjectTagsRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        saved = await self.projects.save_tags(actor, body.data)
        return data_response(project_record(saved))

    async def membership(self, request: Request) -> Response:
        body = await read_json(request, MembershipRequest)
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        actor = actor_of(request, authenticated)
        match body.action:
            case "get":
                membership = await self.memberships.get(
                    actor, authenticated.central, body.data.id, user_id=body.data.user_id
                )
                return data_response(membership)
            case "save":
                return data_response(await self.memberships.save(actor, authenticated.central, body.data))

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "publish",
                self.publish,
                name="publish",
                request=PublishRequest,
                section="interface §4.6",
                summary="Create a project with an application of the same name",
                answers=ProjectResponse,
            ),
            permission_endpoint(
                "project",
                self.handle,
                name="project",
                request=ProjectRequest,
                section="interface §4.6",
                summary="Project: get, save, delete",
                answers=ProjectResponse,
            ),
            permission_endpoint(
                "project/tags",
                self.save_tags,
                name="project_tags",
                request=ProjectTagsRequest,
                section="interface §4.6",
                summary="Replace the tags of a project",
                answers=ProjectResponse,
            ),
            permission_endpoint(
                "project/membership",
                self.membership,
                name="membership",
                request=MembershipRequest,
                section="interface §4.6",
                summary="Members and allowed or disallowed groups of a project: get, save",
            ),
        ]


def project_record(project: Project) -> ProjectRecord:
    return ProjectRecord(**entry_values(project, PROJECT_FIELDS))
