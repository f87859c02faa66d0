"""Settings kept in the database, in files: entries, plan and export."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gatehouse.audit.events import AuditEvent
from gatehouse.images.loading import NewImage
from gatehouse.images.model import LOGO, StoredImage, setting_image_owner
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.stored_settings import (
    StoredSetting,
    StoredSettings,
    referenced_image,
    setting_sealing_purpose,
)
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret, SecretSource
from gatehouse.provision.model import Action, AuditNote, Change, Problems, PutSetting, StoredState
from gatehouse.provision.sections.images import exported_url, image_writes, wanted_image
from gatehouse.provision.sections.references import collect_problems
from gatehouse.provision.sections.section import (
    Context,
    Located,
    Options,
    ResolvedSection,
    Section,
    SectionPlan,
    SettingRules,
    reveal_secret,
    sealed_document,
)

SUBJECT: Final = "installation"


class SettingFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`value`, or `secret` for a secret; null removes the stored value."""

    name: str
    value: object = UNSET
    secret: FileSecret | UnsetType | None = UNSET


async def resolve_settings(
    entries: Sequence[Located[SettingFileEntry]],
    state: StoredState,
    context: Context,
    _: Options,
) -> ResolvedSection:
    problems = Problems()
    return ResolvedSection(await load_images(entries, state, context, problems), tuple(problems.lines))


def plan_settings(
    entries: Sequence[Located[SettingFileEntry]], state: StoredState, context: Context, options: Options
) -> SectionPlan:
    problems = Problems()
    before = state.settings
    images = {one.entry.name: one.entry.value for one in entries if isinstance(one.entry.value, StoredImage)}
    wanted = wanted_settings(entries, before, context, options, problems)
    if options.prune:
        wanted |= dict.fromkeys(before.keys() - wanted.keys())
    after = {name: one for name, one in {**before, **wanted}.items() if one is not None}
    if wanted and not problems.lines:
        entered = [one.entry.name for one in entries if is_entered(one.entry)]
        for name, problem in setting_rules(context).problems_of(before, after, entered).items():
            problems.add(f"settings: {name}", problem.detail)
    changes = [
        setting_change(name, before.get(name), one, images.get(name, UNSET))
        for name, one in wanted.items()
        if before.get(name) != one
    ]
    return SectionPlan(changes=tuple(changes), problems=tuple(problems.lines))


async def load_images(
    entries: Sequence[Located[SettingFileEntry]], state: StoredState, context: Context, problems: Problems
) -> list[Located[SettingFileEntry]]:
    """Return the entries with images instead of their URLs; one that is stored already has its setting as value."""
    loaded = []
    for placed in entries:
        name, value = placed.entry.name, placed.entry.value
        if not is_image(name, context) or not isinstance(value, str):
            loaded.append(placed)
            continue
        stored = state.settings.get(name, StoredSetting())
        with collect_problems(problems):
            image = await wanted_image(
                value,
                LOGO,
                state.images.get(setting_image_owner(name)),
                context,
                image_id=referenced_image(stored.value),
                place=f"{placed.place} ({name})",
            )
            value = stored if image is UNSET else image
            loaded.append(Located(placed.place, msgspec.structs.replace(placed.entry, value=value)))
    return loaded


def wanted_settings(
    entries: Sequence[Located[SettingFileEntry]],
    before: StoredSettings,
    context: Context,
    options: Options,
    problems: Problems,
) -> dict[str, StoredSetting | None]:
    wanted: dict[str, StoredSetting | None] = {}
    for placed in entries:
        name = placed.entry.name
        if name in wanted:
            problems.add(placed.place, f"{name} is given twice")
        try:
            wanted[name] = wanted_setting(placed.entry, before.get(name), context, options)
        except BadInput as error:
            problems.add(f"{placed.place} ({name})", str(error))
    return wanted


def wanted_setting(
    entry: SettingFileEntry, before: StoredSetting | None, context: Context, options: Options
) -> StoredSetting | None:
    """Return the setting as it is stored; the stored one if it is the same."""
    rules = setting_rules(context)
    if (entry.value is UNSET) == (entry.secret is UNSET):
        raise BadInput("needs either value or secret")
    if entry.value is None or entry.secret is None:
        return rules.convert_setting(entry.name, None)
    if isinstance(entry.value, StoredSetting):
        return entry.value
    if isinstance(entry.secret, UnsetType):
        return rules.convert_setting(entry.name, entry.value)
    text = reveal_secret(entry.secret, context, options, purpose=setting_sealing_purpose(entry.name)).text
    if before is not None and before.sealed is not None:
        opened = context.masters.try_open(before.sealed, purpose=setting_sealing_purpose(entry.name))
        if opened is not None and constant_time_equal(opened, text):
            return before
    return rules.convert_setting(entry.name, text)


def is_entered(entry: SettingFileEntry) -> bool:
    """Whether the file has the secret itself, or says where it is: who wrote it knows more than an export."""
    return isinstance(entry.secret, FileSecret) and entry.secret.source is not SecretSource.SEALED


def is_image(name: str, context: Context) -> bool:
    return context.settings is not None and context.settings.is_image(name)


def setting_rules(context: Context) -> SettingRules:
    if context.settings is None:
        raise BadInput("cannot be changed here")
    return context.settings


def setting_change(name: str, before: StoredSetting | None, after: StoredSetting | None, image: NewImage) -> Change:
    action = Action.REMOVE if after is None else Action.ADD if before is None else Action.CHANGE
    return Change(
        action=action,
        kind="setting",
        name=name,
        fields=("value",) if action is Action.CHANGE else (),
        writes=(PutSetting(name, after), *image_writes(setting_image_owner(name), image)),
        subject=SUBJECT,
        notes=(AuditNote(event=AuditEvent.SETTINGS_CHANGED, details={"settings": name}),),
    )


def setting_document(name: str, one: StoredSetting, state: StoredState, context: Context) -> Document:
    purpose = setting_sealing_purpose(name)
    if is_image(name, context):
        return {"name": name, "value": exported_url(setting_image_owner(name), state)}
    if one.sealed is None:
        return {"name": name, "value": one.value}
    text = context.masters.open(one.sealed, purpose=purpose).decode()
    return {"name": name, "secret": sealed_document(text, context, purpose=purpose)}


def setting_documents(state: StoredState, context: Context) -> list[Document]:
    return [
        setting_document(name, one, state, context)
        for name, one in state.settings.items()
        if context.secrets or one.sealed is None
    ]


SETTINGS: Final = Section(
    name="settings",
    entry=SettingFileEntry,
    resolve=resolve_settings,
    plan=plan_settings,
    documents=setting_documents,
)
