"""POST /api/permissions/publish, project, project/tags and project/membership (interface §4.6, R5, R6)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.memberships import MembershipDraft, Memberships
from gatehouse.permissions.commands.projects import ProjectDraft, Projects, settings_document
from gatehouse.permissions.commands.publish import Publishing
from gatehouse.permissions.commands.tags import TagsDraft
from gatehouse.permissions.documents.spelling import Title
from gatehouse.permissions.model.project import Project
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, done, post
from gatehouse.web.permissions.front_desk import FrontDesk, actor_of
from gatehouse.web.routes.table import Endpoint


class PublishRequest(Asked, frozen=True, kw_only=True):
    project: Title
    user: str | None = None


class ProjectRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    data: ProjectDraft


class ProjectTagsRequest(Asked, frozen=True, kw_only=True):
    data: TagsDraft


class MembershipRequest(Asked, frozen=True, kw_only=True):
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


class ProjectAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: ProjectRecord | None = None


class ProjectEndpoints:
    def __init__(
        self, *, publishing: Publishing, projects: Projects, memberships: Memberships, desk: FrontDesk
    ) -> None:
        self._publishing = publishing
        self._projects = projects
        self._memberships = memberships
        self._desk = desk

    async def publish(self, request: Request) -> Response:
        ask = await read_json(request, PublishRequest)
        visit = await self._desk.visit(request, ask, ORDINARY)
        project = await self._publishing.publish(actor_of(request, visit), visit.case.facts, ask.project, ask.user)
        return answer(record(project))

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, ProjectRequest)
        actor = await self._desk.actor(request, ask, ORDINARY)
        match ask.action:
            case "get":
                return answer(record(await self._projects.get(actor, ask.data.id)))
            case "save":
                return answer(record(await self._projects.save(actor, ask.data)))
            case "delete":
                await self._projects.delete(actor, ask.data.id, ask.data.version)
                return done()

    async def save_tags(self, request: Request) -> Response:
        ask = await read_json(request, ProjectTagsRequest)
        actor = await self._desk.actor(request, ask, ORDINARY)
        saved = await self._projects.save_tags(actor, ask.data)
        return answer(record(saved))

    async def membership(self, request: Request) -> Response:
        ask = await read_json(request, MembershipRequest)
        visit = await self._desk.visit(request, ask, ORDINARY)
        actor = actor_of(request, visit)
        match ask.action:
            case "get":
                found = await self._memberships.get(actor, visit.central, ask.data.id, user_id=ask.data.user_id)
                return answer(found)
            case "save":
                return answer(await self._memberships.save(actor, visit.central, ask.data))

    def endpoints(self) -> list[Endpoint]:
        return [
            post(
                "publish",
                self.publish,
                name="publish",
                request=PublishRequest,
                section="interface §4.6",
                summary="Create a project with an application of the same name",
                answers=ProjectAnswer,
            ),
            post(
                "project",
                self.act,
                name="project",
                request=ProjectRequest,
                section="interface §4.6",
                summary="Project: get, save, delete",
                answers=ProjectAnswer,
            ),
            post(
                "project/tags",
                self.save_tags,
                name="project_tags",
                request=ProjectTagsRequest,
                section="interface §4.6",
                summary="Replace the tags of a project",
                answers=ProjectAnswer,
            ),
            post(
                "project/membership",
                self.membership,
                name="membership",
                request=MembershipRequest,
                section="interface §4.6",
                summary="Members and allowed or disallowed groups of a project: get, save",
            ),
        ]


def record(project: Project) -> ProjectRecord:
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
