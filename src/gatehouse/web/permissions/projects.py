"""POST /api/permissions/publish, project, project/tags and project/membership (interface §4.6, R5, R6)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectDraft, settings_document
from gatehouse.permissions.commands.publish import ProjectPublisher
from gatehouse.permissions.commands.tags import TagsDraft
from gatehouse.permissions.documents.spelling import Title
from gatehouse.permissions.model.project import Project
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.permissions.front_desk import RequestAuthenticator, actor_of
from gatehouse.web.routes.table import Endpoint


class PublishRequest(CredentialFields, frozen=True, kw_only=True):
    project: Title
    user: str | None = None


class ProjectRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    data: ProjectDraft


class ProjectTagsRequest(CredentialFields, frozen=True, kw_only=True):
    data: TagsDraft


class MembershipRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save"]
    data: MembershipDraft


class ProjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    description: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    settings: dict[str, object]
    removed: bool
    author: str
    application_id: int | None
    version: int


class ProjectResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: ProjectRecord | None = None


class ProjectEndpoints:
    def __init__(
        self,
        *,
        publishing: ProjectPublisher,
        projects: ProjectCommands,
        memberships: MembershipCommands,
        authenticator: RequestAuthenticator,
    ) -> None:
        self._publishing = publishing
        self._projects = projects
        self._memberships = memberships
        self._authenticator = authenticator

    async def publish(self, request: Request) -> Response:
        ask = await read_json(request, PublishRequest)
        visit = await self._authenticator.authenticate(request, ask, DEFAULT_POLICY)
        project = await self._publishing.publish(
            actor_of(request, visit), visit.evaluation_input.facts, ask.project, ask.user
        )
        return data_response(project_record(project))

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ProjectRequest)
        actor = await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        match ask.action:
            case "get":
                return data_response(project_record(await self._projects.get(actor, ask.data.id)))
            case "save":
                return data_response(project_record(await self._projects.save(actor, ask.data)))
            case "delete":
                await self._projects.delete(actor, ask.data.id, ask.data.version)
                return ok_response()

    async def save_tags(self, request: Request) -> Response:
        ask = await read_json(request, ProjectTagsRequest)
        actor = await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        saved = await self._projects.save_tags(actor, ask.data)
        return data_response(project_record(saved))

    async def membership(self, request: Request) -> Response:
        ask = await read_json(request, MembershipRequest)
        visit = await self._authenticator.authenticate(request, ask, DEFAULT_POLICY)
        actor = actor_of(request, visit)
        match ask.action:
            case "get":
                found = await self._memberships.get(actor, visit.central, ask.data.id, user_id=ask.data.user_id)
                return data_response(found)
            case "save":
                return data_response(await self._memberships.save(actor, visit.central, ask.data))

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
    return ProjectRecord(
        id=project.project_id,
        title=project.title,
        description=project.description,
        aliases=project.aliases,
        tags=project.tags,
        settings=settings_document(project.settings),
        removed=project.removed,
        author=project.author,
        application_id=project.application_id,
        version=project.version,
    )
