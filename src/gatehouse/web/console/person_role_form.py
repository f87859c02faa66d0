"""The form that assigns a role to a person, on their overview and on the tab Access."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.view import AdminRequest

ROLE_FIELDS: Final = {"role": ComboboxKind.APPLICATION_ROLE, "project_id": ComboboxKind.PROJECT}
MAX_SUGGESTIONS: Final = 6


class AssignRoleForm(msgspec.Struct, frozen=True, kw_only=True):
    """It is sent in the address of the review, so a fresh sign-in in between keeps it."""

    role: str = ""
    project_id: str = ""  # where; empty for the whole application
    end: str = ""
    until: str = ""  # a day, included


class AssignRolePanel(msgspec.Struct, frozen=True, kw_only=True):
    form: AssignRoleForm
    suggestions: Sequence[ComboboxOption]  # roles to choose with one click


async def role_panel(admin: AdminRequest, user_id: str, form: AssignRoleForm, *, lookup: Lookup) -> AssignRolePanel:
    suggestions = await lookup.search_roles(admin, "", MAX_SUGGESTIONS, user_id=user_id)
    return AssignRolePanel(form=form, suggestions=suggestions)
