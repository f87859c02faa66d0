"""Objects of an application: save, delete, and what people and groups hold on them (R12)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.errors import Conflict, NotFound
from gatehouse.permissions.commands.applications import refuse_removed
from gatehouse.permissions.commands.user_schemas import is_related
from gatehouse.permissions.commands.versions import NEW_VERSION, refuse_old_version
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import read_line
from gatehouse.permissions.documents.records import parse_assignments
from gatehouse.permissions.documents.rules import parse_entries, protected_rules_in, section_entries
from gatehouse.permissions.errors import Malformed, NoRight, PersonNotFound, ProjectNotFound, RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.objects import (
    MAX_DEPTH,
    MAX_OBJECTS,
    MAX_ON_OBJECT,
    MAX_TITLE_LENGTH,
    HeldItem,
    Holder,
    HolderKind,
    ItemKind,
    ObjectHolding,
    StoredObject,
    depth_of,
    is_within,
    path_below,
)
from gatehouse.permissions.model.rules import Rule, RuleSection
from gatehouse.permissions.model.schema import ObjectType
from gatehouse.permissions.objects.store import (
    HolderChange,
    HolderEdit,
    ObjectChange,
    ObjectDeletion,
    ObjectEdit,
    ObjectStore,
    RoleState,
)
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.guard import is_within as reaches
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS, Extent, RecordPart
from gatehouse.permissions.store import ProjectStore

Types = Mapping[str, ObjectType]


class ObjectNotFound(NotFound):
    public = "Object not found."


class ObjectTypeNotFound(NotFound):
    public = "The schema of the application has no such object type."


class ObjectLoop(Conflict):
    public = "An object cannot be below itself."


class ObjectsTooDeep(Conflict):
    public = f"Objects can be at most {MAX_DEPTH} levels deep."


class OtherPlace(Conflict):
    public = "An object stays in its project, or at the root of the application, for ever."


class ObjectDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One object: in a save an absent field is unchanged, null clears it (R6). Other actions need only its name."""

    object: str  # type:id
    title: str | UnsetType | None = UNSET
    parent: str | UnsetType | None = UNSET  # type:id
    project_id: str | UnsetType | None = UNSET  # of a new object without a parent; null for the root
    version: int | UnsetType = UNSET


class HolderDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one person or group has on one object: an absent field is unchanged, null clears it (R6)."""

    user_id: str | UnsetType = UNSET  # of a person or a service account
    group_id: str | UnsetType = UNSET  # of the object's project
    roles: list[object] | UnsetType | None = UNSET
    revoked: list[object] | UnsetType | None = UNSET  # roles that the group takes away on the object
    private_data: dict[str, object] | UnsetType | None = UNSET  # direct entries of a person
    object: str  # type:id


class ObjectActor(Struct, frozen=True, kw_only=True):
    """Who manages objects: someone with rights, or the application itself with its own credential."""

    origin: AuditOrigin
    model: ApplicationModel
    rights: Rights | None  # None: the application itself

    @property
    def application_id(self) -> int:
        return self.model.application.application_id

    def may_manage(self, place: str) -> bool:
        """Whether they may save and delete objects there, by a right in the application's project or in the place."""
        rights = self.rights
        return rights is None or any(
            is_open(rights, Operation.OBJECTS_SAVE, GuardTarget(application_id=self.application_id, project_id=home))
            for home in {self.model.application.project_id, place or None}
        )

    def may_assign(self, place: str, parts: frozenset[RecordPart]) -> bool:
        rights = self.rights
        if rights is None:
            return True
        if not reaches(rights.service_reach, GuardTarget(application_id=self.application_id)):
            return False
        if all(rights.secret.writes[part] is Extent.ALL for part in parts):
            return True
        return bool(place) and is_open(rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=place))

    @property
    def may_read(self) -> bool:
        rights = self.rights
        return rights is None or all(rights.can_read(part, "") for part in PERMISSION_PARTS)


ROLES_PART: Final = frozenset({RecordPart.ROLES})
ENTRIES_PART: Final = frozenset({RecordPart.PRIVATE})
ASSIGNED_PARTS: Final = ROLES_PART | ENTRIES_PART


class ObjectCommands(Struct, kw_only=True, eq=False):
    store: ObjectStore
    projects: ProjectStore
    recorder: Recorder

    async def save(self, actor: ObjectActor, drafts: Sequence[ObjectDraft]) -> Sequence[StoredObject]:
        """Create, change and move objects: all or none."""
        refuse_number(drafts, "data.objects")
        refuse_removed(actor.model.application)
        keys = checked_keys([draft.object for draft in drafts])
        parents = [
            grammar.check_object_key(draft.parent, f"data.objects[{index}].parent")
            for index, draft in enumerate(drafts)
            if isinstance(draft.parent, str)
        ]
        places = {name: await self._place(actor, name) for name in named_places(drafts)}
        if not any(actor.may_manage(place) for place in ("", *places.values())):
            await self._refuse_elsewhere(actor, (*keys, *parents))

        def change(stored: Mapping[str, StoredObject], types: Types) -> ObjectEdit:
            editing = ObjectEditing(actor=actor, types=types, places=places, known=dict(stored))
            for index, draft in enumerate(drafts):
                editing.apply(draft, f"data.objects[{index}]")
            details: dict[str, str | int] = {**editing.counts, "objects": ", ".join(keys)}
            return ObjectEdit(steps=editing.steps, record=self._record(AuditEvent.OBJECTS_SAVED, actor, details))

        return await self.store.save_objects(actor.application_id, [*keys, *parents], change)

    async def delete(self, actor: ObjectActor, names: Sequence[ObjectDraft], *, recursive: bool) -> ObjectDeletion:
        refuse_number(names, "data.objects")
        keys = checked_keys([name.object for name in names])

        def check(stored: Mapping[str, StoredObject]) -> Callable[[ObjectDeletion], AuditRecord]:
            for name in names:
                each = stored.get(name.object)
                if not actor.may_manage("" if each is None else each.place):
                    raise NoRight(f"delete {name.object}")
                if each is None:
                    raise ObjectNotFound
                refuse_old_version(name.version, each.version)
            return lambda deletion: self._record(
                AuditEvent.OBJECTS_DELETED,
                actor,
                {"deleted": deletion.objects, "holders": deletion.holders, "objects": ", ".join(keys)},
            )

        return await self.store.delete_objects(actor.application_id, keys, check, recursive=recursive)

    async def save_holders(self, actor: ObjectActor, drafts: Sequence[HolderDraft]) -> HolderEdit:
        """Replace what people and groups hold on objects: all or none."""
        refuse_number(drafts, "data.holders")
        refuse_removed(actor.model.application)
        wanted = [read_holder(draft, f"data.holders[{index}]") for index, draft in enumerate(drafts)]
        if len({(each.key, each.holder) for each in wanted}) < len(wanted):
            raise Malformed("data.holders: one of them is listed twice")

        def change(
            stored: Mapping[str, StoredObject],
            held: Mapping[tuple[str, str], Sequence[ObjectHolding]],
            roles: Mapping[str, RoleState],
            types: Types,
        ) -> HolderEdit:
            rows = []
            for index, each in enumerate(wanted):
                there = stored.get(each.key)
                refuse_unassignable(actor, each, "" if there is None else there.place)
                if there is None:
                    raise ObjectNotFound
                before = held.get((there.path, each.holder.key), ())
                after = each.apply(before, actor.model, roles, types, f"data.holders[{index}]")
                rows.append(HolderChange(path=there.path, holder=each.holder, holdings=after))
            names = [f"{each.key} {each.holder.key}" for each in wanted]
            details: dict[str, str | int] = {"holders": len(rows), "objects": ", ".join(names)}
            return HolderEdit(rows=rows, record=self._record(AuditEvent.OBJECT_HOLDERS_SAVED, actor, details))

        keys = list(dict.fromkeys(each.key for each in wanted))
        holders = [(each.key, each.holder) for each in wanted]
        try:
            return await self.store.save_holders(actor.application_id, keys, holders, change)
        except UserNotFound:
            raise PersonNotFound from None

    async def _place(self, actor: ObjectActor, name: str) -> str:
        """The ID of a project that a draft names, where objects of the application may be."""
        try:
            model = await self.projects.project(grammar.check_project_id(name, "data.objects.project_id"))
        except ProjectNotFound:
            model = None
        if model is None or not actor.may_manage(model.project.project_id):
            if not actor.may_manage(""):
                raise NoRight(f"objects in project {name}")
            if model is None:
                raise ProjectNotFound
        project_id = model.project.project_id
        if model.project.removed or not is_related(actor.model, project_id):
            raise Malformed(f"data.objects.project_id: the application has no objects in {project_id}")
        return project_id

    async def _refuse_elsewhere(self, actor: ObjectActor, keys: Sequence[str]) -> None:
        """Raise NoRight unless the caller may manage objects of a place in which one of these is."""
        there = await self.store.objects(actor.application_id, list(keys))
        if not any(actor.may_manage(each.place) for each in there.values()):
            raise NoRight("objects of the application")

    def _record(self, event: AuditEvent, actor: ObjectActor, details: Mapping[str, str | int]) -> AuditRecord:
        number = actor.application_id
        return self.recorder.record(
            event,
            actor.origin,
            subject=f"application {number}",
            details={"application_id": number, **details},
        )


class ObjectEditing(Struct, kw_only=True, eq=False):
    """The objects of one save while its changes are applied in order, so that later ones see earlier ones."""

    actor: ObjectActor
    types: Types
    places: Mapping[str, str]  # project ids by the names that drafts use
    known: dict[str, StoredObject]
    steps: list[ObjectChange] = []
    created: int = 0
    moved: list[str] = []

    @property
    def counts(self) -> Mapping[str, str | int]:
        counts: dict[str, str | int] = {"created": self.created, "saved": len(self.steps)}
        return counts | ({"moved": ", ".join(self.moved)} if self.moved else {})

    def apply(self, draft: ObjectDraft, place: str) -> None:
        before = self.known.get(draft.object)
        after = self._create(draft, place) if before is None else self._change(before, draft, place)
        self.steps.append(ObjectChange(before=before, after=after))
        self.known[after.key] = after
        if before is not None and before.path != after.path:
            self.moved.append(f"{after.key} from {before.parent or '-'} to {after.parent or '-'}")
            for key, each in self.known.items():
                if each.path.startswith(before.path) and is_within(each.path, before.path):
                    self.known[key] = replace(each, path=after.path + each.path[len(before.path) :])

    def _create(self, draft: ObjectDraft, place: str) -> StoredObject:
        home = "" if not isinstance(draft.project_id, str) else self.places[draft.project_id]
        parent = self._parent(draft, place)
        if parent is not None:
            if draft.project_id is not UNSET and home != parent.place:
                raise OtherPlace
            home = parent.place
        self._require_management(home)
        object_type = self.types.get(draft.object.partition(":")[0])
        if object_type is None:
            raise Malformed(f"{place}.object: {draft.object.partition(':')[0]} is not an object type of the schema")
        refuse_old_version(draft.version, NEW_VERSION)
        self.created += 1
        return StoredObject(
            key=draft.object,
            path=self._path_below(home if parent is None else parent.path, draft.object, parent, place),
            title=read_title(draft.title, "", place),
            version=1,
        )

    def _change(self, before: StoredObject, draft: ObjectDraft, place: str) -> StoredObject:
        self._require_management(before.place)
        refuse_old_version(draft.version, before.version)
        if draft.project_id is not UNSET:
            wanted = "" if draft.project_id is None else self.places[draft.project_id]
            if wanted != before.place:
                raise OtherPlace
        path = before.path
        if draft.parent is not UNSET and draft.parent != before.parent:
            parent = self._parent(draft, place)
            if parent is not None and parent.place != before.place:
                raise OtherPlace
            if parent is not None and is_within(parent.path, before.path):
                raise ObjectLoop
            if before.parent is not None:
                self._require_assignment(before.place)
            path = self._path_below(before.place if parent is None else parent.path, before.key, parent, place)
        return replace(
            before, path=path, title=read_title(draft.title, before.title, place), version=before.version + 1
        )

    def _parent(self, draft: ObjectDraft, place: str) -> StoredObject | None:
        if not isinstance(draft.parent, str):
            return None
        parent = self.known.get(draft.parent)
        if parent is None:
            raise ObjectNotFound(f"{place}.parent: {draft.parent}")
        return parent

    def _path_below(self, above: str, key: str, parent: StoredObject | None, place: str) -> str:
        if parent is not None:
            self._require_assignment(parent.place)
            if parent.type not in self.types[key.partition(":")[0]].parents:
                raise Malformed(f"{place}.parent: an object of this type cannot be below type {parent.type}")
        path = path_below(above, key)
        if depth_of(path) > MAX_DEPTH:
            raise ObjectsTooDeep
        return path

    def _require_management(self, place: str) -> None:
        if not self.actor.may_manage(place):
            raise NoRight(f"objects in {place or 'the root'}")

    def _require_assignment(self, place: str) -> None:
        """A move changes who holds what below the parent."""
        if not self.actor.may_assign(place, ASSIGNED_PARTS):
            raise NoRight("assign on the parent")


class WantedHolder(Struct, frozen=True, kw_only=True):
    """A parsed draft; what is UNSET stays."""

    key: str
    holder: Holder
    roles: Sequence[ObjectHolding] | UnsetType
    revoked: Sequence[ObjectHolding] | UnsetType
    entries: Sequence[ObjectHolding] | UnsetType

    @property
    def parts(self) -> frozenset[RecordPart]:
        roles = self.roles is not UNSET or self.revoked is not UNSET
        return (ROLES_PART if roles else frozenset()) | (ENTRIES_PART if self.entries is not UNSET else frozenset())

    def apply(
        self,
        before: Sequence[ObjectHolding],
        model: ApplicationModel,
        roles: Mapping[str, RoleState],
        types: Types,
        place: str,
    ) -> Sequence[ObjectHolding]:
        """What the holder has afterwards. Raises RoleNotFound, Malformed."""
        assigned = [each for each in before if each.item.kind is ItemKind.ROLE and each.value]
        revoked = [each for each in before if each.item.kind is ItemKind.ROLE and not each.value]
        entries = [each for each in before if each.item.kind is ItemKind.RULE]
        if self.roles is not UNSET:
            assigned = [with_generation(each, roles, f"{place}.roles") for each in self.roles]
        if self.revoked is not UNSET:
            revoked = [with_generation(each, roles, f"{place}.revoked") for each in self.revoked]
        if self.entries is not UNSET:
            refuse_rules([each for each in self.entries if each not in before], model, types, self.key, place)
            entries = list(self.entries)
        after = [*assigned, *revoked, *entries]
        if len({each.item for each in after}) < len(after):
            raise Malformed(f"{place}: a role cannot be assigned and revoked")
        if len(after) > MAX_ON_OBJECT:
            raise Malformed(f"{place}: at most {MAX_ON_OBJECT} roles and entries on one object")
        return after


def refuse_number(items: Sequence[object], place: str) -> None:
    if not 1 <= len(items) <= MAX_OBJECTS:
        raise Malformed(f"{place}: must have 1 to {MAX_OBJECTS} entries")


def checked_keys(names: Sequence[str]) -> list[str]:
    keys = [grammar.check_object_key(name, f"data.objects[{index}].object") for index, name in enumerate(names)]
    if len(set(keys)) < len(keys):
        raise Malformed("data.objects: one of them is listed twice")
    return keys


def named_places(drafts: Sequence[ObjectDraft]) -> set[str]:
    return {draft.project_id for draft in drafts if isinstance(draft.project_id, str)}


def read_title(title: str | UnsetType | None, stored: str, place: str) -> str:
    if title is UNSET:
        return stored
    return read_line(title or "", f"{place}.title", MAX_TITLE_LENGTH)


def read_holder(draft: HolderDraft, place: str) -> WantedHolder:
    key = grammar.check_object_key(draft.object, f"{place}.object")
    if (draft.user_id is UNSET) is (draft.group_id is UNSET):
        raise Malformed(f"{place}: use either user_id or group_id")
    if draft.group_id is not UNSET:
        if draft.private_data is not UNSET:
            raise Malformed(f"{place}.private_data: only for people")
        holder = Holder(HolderKind.GROUP, grammar.check_group_id(draft.group_id, f"{place}.group_id"))
    else:
        if draft.revoked is not UNSET:
            raise Malformed(f"{place}.revoked: only for groups")
        holder = Holder(HolderKind.USER, grammar.check_user_id(draft.user_id, f"{place}.user_id"))
    if draft.roles is draft.revoked is draft.private_data is UNSET:
        raise Malformed(f"{place}: nothing to save")
    roles, revoked = draft.roles, draft.revoked
    return WantedHolder(
        key=key,
        holder=holder,
        roles=UNSET if roles is UNSET else read_roles(holder, roles, f"{place}.roles", value=True),
        revoked=UNSET if revoked is UNSET else read_roles(holder, revoked, f"{place}.revoked", value=False),
        entries=UNSET if draft.private_data is UNSET else read_entries(holder, draft.private_data, place),
    )


def read_roles(holder: Holder, names: list[object] | None, place: str, *, value: bool) -> list[ObjectHolding]:
    assignments = parse_assignments(names or [], place=place)
    if any(assignment.end.ttl for assignment in assignments):
        raise Malformed(f"{place}: use expired; objects have no ttl")
    return [
        ObjectHolding(holder=holder, item=HeldItem(ItemKind.ROLE, assignment.role), value=value, end=assignment.end)
        for assignment in assignments
    ]


def read_entries(holder: Holder, document: dict[str, object] | None, place: str) -> list[ObjectHolding]:
    tree = parse_entries(document or {}, RuleSection.PRIVATE, place=f"{place}.private_data")
    entries = section_entries(tree, RuleSection.PRIVATE)
    for rule, entry in entries.items():
        if entry.params or entry.end.ttl:
            raise Malformed(f"{place}.private_data.{rule.path}: objects have no params and no ttl")
    return [
        ObjectHolding(holder=holder, item=HeldItem(ItemKind.RULE, rule.path), value=entry.value, end=entry.end)
        for rule, entry in entries.items()
    ]


def with_generation(holding: ObjectHolding, roles: Mapping[str, RoleState], place: str) -> ObjectHolding:
    """The assignment of the role as it is now. Raises RoleNotFound, Malformed."""
    role = roles.get(holding.item.name)
    if role is None:
        raise RoleNotFound(holding.item.name)
    if role.protected:
        raise Malformed(f"{place}: role {role.name}: protected roles can be assigned only at the root").on_screen(
            "protected_in_project", name=role.name
        )
    if role.user_limit and holding.value:
        raise Malformed(f"{place}: role {role.name}: roles with a user limit cannot be assigned on objects")
    return replace(holding, generation=role.generation)


def refuse_rules(
    entries: Sequence[ObjectHolding], model: ApplicationModel, types: Types, key: str, place: str
) -> None:
    """Refuse protected rules, and rules that are asked neither on the object nor on one that can be below it."""
    asked = rules_below(types, key.partition(":")[0])
    for entry in entries:
        if entry.item.name not in asked:
            raise Malformed(
                f"{place}.private_data.{entry.item.name}: is not a rule of this object type or of one below it"
            )
    rules = [Rule(RuleSection.PRIVATE, entry.item.name) for entry in entries]
    if protected := protected_rules_in(model.schema, rules):
        raise Malformed(
            f"{place}.private_data: protected rules can be assigned only at the root: {protected[0].path}"
        )


def rules_below(types: Types, name: str) -> frozenset[str]:
    """The rules that are asked on objects of the type, and of types that can be below it."""
    below, found = {name}, True
    while found:
        found = False
        for other, object_type in types.items():
            if other not in below and not below.isdisjoint(object_type.parents):
                below.add(other)
                found = True
    return frozenset(rule for other in below & types.keys() for rule in types[other].rules)


def refuse_unassignable(actor: ObjectActor, wanted: WantedHolder, place: str) -> None:
    if not actor.may_assign(place, wanted.parts):
        raise NoRight(f"assign on {wanted.key}")
