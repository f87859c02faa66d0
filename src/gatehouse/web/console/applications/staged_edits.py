"""Staged edits: what was changed in a table in the browser and is not saved yet.

The browser keeps them and sends them as one text; here they become typed, are shown once more with what they do,
and only then carried out. A page that has decided about them says which stay staged (static/console-staging.js).
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.questions.simulate import Effect
from gatehouse.web.console.forms import FORMULA_PREFIXES
from gatehouse.web.console.impact import PersonEffect, person_effect
from gatehouse.web.pages.forms import CsrfForm

MAX_EDITS: Final = 900  # of one review: they come as one text (S-19)
MAX_PEOPLE_SHOWN: Final = 100  # people listed by name
MAX_PEOPLE_EXAMINED: Final = 1_000  # people whose change is told


class CellEdit(msgspec.Struct, frozen=True, array_like=True):
    """One cell: where it is, what it said when it was changed, and what it is to say."""

    cell: str  # its row and column, "/" between them
    was: str
    value: str
    version: int  # of what the row was made from
    row: str = ""  # words for the list of staged edits in the browser
    column: str = ""


class StagedForm(CsrfForm, frozen=True, kw_only=True):
    """A review: what was staged, one cell by name (without script), or lines to import."""

    edits: str = "[]"
    without: str = ""  # a cell that is taken back
    text: str = ""
    row: str = ""
    column: str = ""
    value: str = ""
    scope: str = ""
    version: int = 0  # of the review that a cell is taken back from; it is read anew


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTrouble:
    """Why something staged cannot be carried out; the words are `staging.trouble_<word>`."""

    word: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellConflict:
    """A cell that somebody else has changed since it was staged."""

    row: str
    column: str
    was: str
    stored: str
    yours: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditImpact:
    """Who gains and who loses; `people` is empty for who may not hear what others hold."""

    gainers: int = 0
    losers: int = 0
    more: bool = False  # than were looked at
    people: Sequence[PersonEffect] = ()
    names_told: bool = True
    touched: int = 0

    @property
    def unlisted(self) -> int:
        return self.touched - len(self.people) if self.names_told else 0


def parse_edits(text: str) -> list[CellEdit]:
    try:
        edits = msgspec.json.decode(text, type=list[CellEdit])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadInput("edits: must be a list of cells with old and new values") from error
    if len(edits) > MAX_EDITS:
        raise BadInput(f"Too many changes: at most {MAX_EDITS} at a time")
    return edits


def encode_edits(edits: Iterable[CellEdit]) -> str:
    return msgspec.json.encode(list(edits)).decode()


def parse_import_lines(text: str, columns: Sequence[str]) -> list[Mapping[str, str]]:
    """CSV or JSON as one pastes it; a first line that names the columns may be left out."""
    stripped = text.strip().removeprefix("\ufeff")
    found = _json_lines(stripped) if stripped.startswith(("[", "{")) else _csv_lines(stripped, columns)
    if len(found) > MAX_EDITS:
        raise BadInput(f"Too many lines: at most {MAX_EDITS} at a time")
    return found


def _json_lines(text: str) -> list[Mapping[str, str]]:
    try:
        given = msgspec.json.decode(text, type=list[dict[str, str | int | bool | None]])
    except msgspec.DecodeError as error:
        raise BadInput(f"Enter a JSON list of objects: {error}") from error
    return [{name: _cell_text(value) for name, value in line.items()} for line in given]


def _cell_text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _csv_lines(text: str, columns: Sequence[str]) -> list[Mapping[str, str]]:
    lines = [[_unquote(cell.strip()) for cell in line] for line in csv.reader(text.splitlines()) if any(line)]
    names: Sequence[str] = columns
    if lines and lines[0] and lines[0][0].lower() == columns[0]:
        names = [name.lower() for name in lines.pop(0)]
    return [dict(zip(names, line, strict=False)) for line in lines]


def _unquote(cell: str) -> str:
    """What an export has marked as no formula (listing.py)."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_PREFIXES) else cell


def describe_edit_impact(
    effects: Sequence[Effect], nicks: Mapping[str, str], *, more: bool, may_see_names: bool
) -> EditImpact:
    return EditImpact(
        gainers=sum(bool(one.gains or one.gains_roles) for one in effects),
        losers=sum(bool(one.loses or one.loses_roles) for one in effects),
        more=more,
        touched=len(effects),
        names_told=may_see_names,
        people=[person_effect(one, nicks.get(one.user_id, "")) for one in effects[:MAX_PEOPLE_SHOWN]]
        if may_see_names
        else (),
    )
