"""POST /api/permissions/object and object/holders (interface §4.19, R12)."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.credentials import CredentialPolicy
from gatehouse.permissions.commands.objects import (
    HolderDraft,
    ObjectActor,
    ObjectCommands,
    ObjectDraft,
    ObjectNotFound,
    checked_keys,
    refuse_number,
)
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight
from gatehouse.permissions.model.objects import (
    SEPARATOR,
    HolderKind,
    ItemKind,
    ObjectHolding,
    StoredObject,
    subtree_end,
)
from gatehouse.permissions.objects.store import ObjectStore
from gatehouse.permissions.questions.allowed_objects import AllowedObjects, AllowedQuestion
from gatehouse.permissions.questions.parsing import read_rule, searchable_project_name, target_user_id
from gatehouse.permissions.store import PermissionStore
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.api.permissions.listing import Cursors
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint

SECTION: Final = "interface §4.19"
WRITES: Final = CredentialPolicy(audience=True, no_jwt=True)
READS: Final = CredentialPolicy(audience=True, key=True, no_jwt=True)  # an access key alone only reads
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]


class ObjectsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each action has its own members."""

    objects: list[ObjectDraft] | None = None  # get, save, delete
    recursive: bool = False  # delete: with everything below
    type: str = ""  # list: only this type
    parent: str = ""  # list: only below this object
    project_id: str = ""  # list: only in this project
    after: str | None = None
    limit: Limit = DEFAULT_LIMIT


class ObjectRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete", "list"]
    application_id: ApplicationId | None = None
    data: ObjectsData


class HoldersData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    holders: list[HolderDraft] | None = None  # save
    object: str = ""  # list
    after: str | None = None
    limit: Limit = DEFAULT_LIMIT


class HoldersRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["save", "list"]
    application_id: ApplicationId | None = None
    data: HoldersData


class AllowedData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: str
    rule: str
    user_id: str | msgspec.UnsetType = msgspec.UNSET
    parent: str | None = None  # only objects below this one
    project_id: str | None = None  # only objects in this project
    after: str | None = None
    limit: Limit = DEFAULT_LIMIT


class AllowedRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None
    data: AllowedData


class ObjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    object: str
    type: str
    id: str
    title: str
    parent: str | None
    project_id: str | None
    version: int


class ObjectsPage(msgspec.Struct, frozen=True, kw_only=True):
    objects: Sequence[ObjectRecord]
    after: str | None = None


class HolderRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    user_id: str = ""
    group_id: str = ""
    roles: Sequence[object] = ()
    revoked: Sequence[object] = ()
    private_data: dict[str, object] = {}


class HoldersPage(msgspec.Struct, frozen=True, kw_only=True):
    holders: Sequence[HolderRecord]
    after: str | None


class ObjectEndpoints(Struct, kw_only=True, eq=False):
    allowed_objects: AllowedObjects
    commands: ObjectCommands
    store: ObjectStore
    people: PermissionStore
    authenticator: Authenticator
    cursors: Cursors

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ObjectRequest)
        is_read = body.action in {"get", "list"}
        caller = await self._identify(request, body, body.application_id, READS if is_read else WRITES)
        data = body.data
        match body.action:
            case "get":
                actor = await self._reader(request, caller)
                drafts = data.objects or []
                refuse_number(drafts, "data.objects")
                keys = checked_keys([draft.object for draft in drafts])
                found = await self.store.objects(actor.application_id, keys)
                return data_response(ObjectsPage(objects=[object_record(found[key]) for key in keys if key in found]))
            case "save":
                actor = await self._actor(request, caller)
                saved = await self.commands.save(actor, data.objects or [])
                return data_response(ObjectsPage(objects=[object_record(each) for each in saved]))
            case "delete":
                actor = await self._actor(request, caller)
                return data_response(await self.commands.delete(actor, data.objects or [], recursive=data.recursive))
            case "list":
                return data_response(await self._list(await self._reader(request, caller), caller, data))

    async def handle_holders(self, request: Request) -> Response:
        body = await read_json(request, HoldersRequest)
        is_read = body.action == "list"
        caller = await self._identify(request, body, body.application_id, READS if is_read else WRITES)
        match body.action:
            case "save":
                actor = await self._actor(request, caller)
                edit = await self.commands.save_holders(actor, body.data.holders or [])
                return data_response({"holders": len(edit.rows)})
            case "list":
                return data_response(await self._list_holders(await self._reader(request, caller), caller, body.data))

    async def handle_allowed(self, request: Request) -> Response:
        """A page may be shorter than its limit and be followed by another."""
        body = await read_json(request, AllowedRequest)
        caller = await self._identify(request, body, body.application_id, READS)
        data = body.data
        user_id = target_user_id(data.user_id, caller.user_id)
        if not user_id:
            raise Malformed("data.user_id: required")
        asked = msgspec.json.encode(
            [caller.application_id, user_id, data.type, data.rule, data.parent, data.project_id]
        )
        binding = f"allowed:{caller.name}:{sha256(asked).hex()}"
        page = await self.allowed_objects.find_page(
            caller,
            AllowedQuestion(
                user_id=user_id,
                type=data.type,
                rule=read_rule(data.rule, "data.rule"),
                parent="" if data.parent is None else grammar.check_object_key(data.parent, "data.parent"),
                project_id=None if data.project_id is None else searchable_project_name(data.project_id),
                position="" if data.after is None else str(self.cursors.open(binding, data.after)),
                limit=data.limit,
            ),
        )
        return data_response(
            ObjectsPage(
                objects=[object_record(each) for each in page.objects],
                after=None if page.position is None else self.cursors.issue(binding, page.position),
            )
        )

    async def _list(self, actor: ObjectActor, caller: Caller, data: ObjectsData) -> ObjectsPage:
        types = sorted(actor.model.schema.objects)
        if data.type and data.type not in types:
            raise Malformed(f"data.type: {data.type!a} is not an object type of the schema")
        begin, end = await self._range(actor, data)
        binding = f"objects:{caller.name}:{actor.application_id}:{data.type}:{data.parent}:{data.project_id}"
        after = "" if data.after is None else str(self.cursors.open(binding, data.after))
        page = await self.store.list_objects(
            actor.application_id,
            [data.type] if data.type else types,
            begin=begin,
            end=end,
            after=after,
            limit=data.limit,
        )
        return ObjectsPage(
            objects=[object_record(each) for each in page.objects],
            after=None if page.after is None else self.cursors.issue(binding, page.after),
        )

    async def _range(self, actor: ObjectActor, data: ObjectsData) -> tuple[str, str]:
        if data.parent:
            key = grammar.check_object_key(data.parent, "data.parent")
            parent = (await self.store.objects(actor.application_id, [key])).get(key)
            if parent is None:
                raise ObjectNotFound
            return f"{parent.path}{SEPARATOR}", subtree_end(parent.path)
        if data.project_id:
            project_id = grammar.check_project_id(data.project_id, "data.project_id")
            return f"{project_id}{SEPARATOR}", subtree_end(project_id)
        return "", "~"  # sorts after every path

    async def _list_holders(self, actor: ObjectActor, caller: Caller, data: HoldersData) -> HoldersPage:
        key = grammar.check_object_key(data.object, "data.object")
        there = (await self.store.objects(actor.application_id, [key])).get(key)
        if there is None:
            raise ObjectNotFound
        binding = f"holders:{caller.name}:{actor.application_id}:{key}"
        after = "" if data.after is None else str(self.cursors.open(binding, data.after))
        page = await self.store.holders_of(actor.application_id, there.path, after=after, limit=data.limit)
        return HoldersPage(
            holders=list(holder_records(actor, page.holdings)),
            after=None if page.after is None else self.cursors.issue(binding, page.after),
        )

    async def _identify(
        self,
        request: Request,
        body: CredentialFields,
        application_id: int | str | None,
        policy: CredentialPolicy,
    ) -> Caller:
        return await self.authenticator.identify(
            credentials_of(request, body), policy, application_id=parse_optional_application_id(application_id)
        )

    async def _reader(self, request: Request, caller: Caller) -> ObjectActor:
        actor = await self._actor(request, caller)
        if not actor.may_read:
            raise NoRight("objects of the application")
        return actor

    async def _actor(self, request: Request, caller: Caller) -> ObjectActor:
        """The caller with their rights, or the application itself. NoRight is checked before NotFound (R6)."""
        if caller.application_id is None:
            raise Malformed("application_id: required")
        origin = origin_of(request, caller.name)
        if caller.facts is not None:
            authenticated = await self.authenticator.attach_rights(caller)
            return ObjectActor(origin=origin, model=authenticated.named_application(), rights=authenticated.rights)
        models = await self.people.application_models([caller.application_id])
        model = models.get(caller.application_id)
        if model is None or caller.application_id == CENTRAL_APPLICATION:
            raise ApplicationNotFound
        return ObjectActor(origin=origin, model=model, rights=None)

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "object",
                self.handle,
                name="object",
                request=ObjectRequest,
                section=SECTION,
                summary="Objects of an application: get, save, delete, list",
                body_limit=SCHEMA_BODY_LIMIT,
            ),
            permission_endpoint(
                "object/holders",
                self.handle_holders,
                name="object_holders",
                request=HoldersRequest,
                section=SECTION,
                summary="What people and groups hold on objects: save, list",
                body_limit=SCHEMA_BODY_LIMIT,
            ),
            permission_endpoint(
                "object/allowed",
                self.handle_allowed,
                name="object_allowed",
                request=AllowedRequest,
                section=SECTION,
                summary="List the objects of a type on which a user has a permission",
            ),
        ]


def object_record(each: StoredObject) -> ObjectRecord:
    name, _, number = each.key.partition(":")
    return ObjectRecord(
        object=each.key,
        type=name,
        id=number,
        title=each.title,
        parent=each.parent,
        project_id=each.place or None,
        version=each.version,
    )


def holder_records(actor: ObjectActor, holdings: Sequence[ObjectHolding]) -> Iterator[HolderRecord]:
    """What counts or will count; what ended with its role is left out."""
    roles = actor.model.roles
    for holder, held in groupby(holdings, key=lambda holding: holding.holder):
        record = {HolderKind.USER: "user_id", HolderKind.GROUP: "group_id"}[holder.kind]
        parts: dict[str, list[object]] = {"roles": [], "revoked": []}
        tree: dict[str, object] = {}
        for each in held:
            ends = {"expired": each.end.expired} if each.end.expired else {}
            if each.item.kind is ItemKind.RULE:
                put_leaf(tree, each.item.name, {"value": each.value, **ends})
                continue
            role = roles.get(each.item.name)
            if role is not None and not role.protected and role.generation == each.generation:
                parts["roles" if each.value else "revoked"].append({"name": role.name, **ends} if ends else role.name)
        if tree or any(parts.values()):
            roles_held, revoked = tuple(parts["roles"]), tuple(parts["revoked"])
            yield HolderRecord(**{record: holder.id}, roles=roles_held, revoked=revoked, private_data=tree)


def put_leaf(tree: dict[str, object], path: str, leaf: dict[str, object]) -> None:
    *branches, last = path.split(".")
    for segment in branches:
        branch = tree.setdefault(segment, {})
        assert isinstance(branch, dict)  # noqa: S101 - no path is both a leaf and a prefix
        tree = branch
    tree[last] = leaf
