"""Settings kept in the database, in files: entries, plan and export."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.stored_settings import StoredSetting, StoredSettings, setting_sealing_purpose
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import Action, AuditNote, Change, Problems, PutSetting, ReadScope, StoredState
from gatehouse.provision.sections.section import (
    Context,
    Located,
    Options,
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


class SettingSection:
    name = "settings"
    entry = SettingFileEntry

    def read_scope(self, entries: Sequence[Located[SettingFileEntry]], *, prune: bool) -> ReadScope:  # noqa: ARG002 - all are read
        return ReadScope()

    async def plan(
        self, entries: Sequence[Located[SettingFileEntry]], state: StoredState, context: Context, options: Options
    ) -> SectionPlan:
        problems = Problems()
        before, wanted = state.settings, wanted_settings(entries, state.settings, context, options, problems)
        if options.prune:
            wanted |= dict.fromkeys(before.keys() - wanted.keys())
        after = {name: one for name, one in {**before, **wanted}.items() if one is not None}
        if wanted and not problems.lines:
            for name, what in setting_rules(context).problems_of(after).items():
                problems.add(f"{self.name}: {name}", what)
        changes = [
            setting_change(name, before.get(name), one) for name, one in wanted.items() if before.get(name) != one
        ]
        return SectionPlan(changes=tuple(changes), problems=tuple(problems.lines))

    def export_documents(self, state: StoredState, context: Context, *, secrets: bool) -> list[Document]:
        return [
            setting_document(name, one, context)
            for name, one in state.settings.items()
            if secrets or one.sealed is None
        ]


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
    if isinstance(entry.secret, UnsetType):
        return rules.convert_setting(entry.name, entry.value)
    text = reveal_secret(entry.secret, context, options, purpose=setting_sealing_purpose(entry.name)).text
    if before is not None and before.sealed is not None:
        opened = context.masters.try_open(before.sealed, purpose=setting_sealing_purpose(entry.name))
        if opened is not None and constant_time_equal(opened, text):
            return before
    return rules.convert_setting(entry.name, text)


def setting_rules(context: Context) -> SettingRules:
    if context.settings is None:
        raise BadInput("cannot be changed here")
    return context.settings


def setting_change(name: str, before: StoredSetting | None, after: StoredSetting | None) -> Change:
    action = Action.REMOVE if after is None else Action.ADD if before is None else Action.CHANGE
    return Change(
        action=action,
        kind="setting",
        name=name,
        fields=("value",) if action is Action.CHANGE else (),
        write=PutSetting(name, after),
        subject=SUBJECT,
        notes=(AuditNote(event=AuditEvent.SETTINGS_CHANGED, details={"settings": name}),),
    )


def setting_document(name: str, one: StoredSetting, context: Context) -> Document:
    purpose = setting_sealing_purpose(name)
    if one.sealed is None:
        return {"name": name, "value": one.value}
    text = context.masters.open(one.sealed, purpose=purpose).decode()
    return {"name": name, "secret": sealed_document(text, context, purpose=purpose)}
