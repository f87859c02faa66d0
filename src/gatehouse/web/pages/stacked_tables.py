"""Tables that a style sheet shows with every row as a block on narrow screens.

A browser then drops the roles of rows and cells, and the headers are hidden. So every element gets its role, and
every cell the name of its column.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from markupsafe import Markup, escape

CODE_SPAN_PATTERN: Final = re.compile(r"`([^`]+)`")

# Escaped by Jinja, no tag contains ">", and our tables are never nested.
HEAD_PATTERN: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW_PATTERN: Final = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL_PATTERN: Final = re.compile(r"<(th|td)\b([^>]*)>(\s*\u2013\s*</td>)?")
PART_PATTERN: Final = re.compile(r"<(thead|tbody|tr)\b")
ARIA_ROLES: Final = {"thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}


def code_spans(text: str) -> Markup:
    """Return the text with what stands between backticks as code."""
    return Markup(CODE_SPAN_PATTERN.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def stackable(table: Markup) -> Markup:
    """Return the table with a role on each row and cell, and its column's name on each cell.

    A cell with only a dash has `data-nothing`: a block leaves it out.
    """
    heads, end, bodies = str(table).partition("</thead>")
    columns = [Markup(words).striptags() for words in HEAD_PATTERN.findall(heads)]  # noqa: S704 - escaped by the template
    named = heads.replace("<th ", '<th role="columnheader" ') + end + ROW_PATTERN.sub(partial(_row, columns), bodies)
    return Markup(PART_PATTERN.sub(_part, named))  # noqa: S704 - what was escaped, and two more attributes


def _row(columns: Sequence[str], row: re.Match[str]) -> str:
    """Return the row; one with fewer cells than columns is next to a cell that spans it from above."""
    names = iter(columns[-len(CELL_PATTERN.findall(row[0])) :])
    return CELL_PATTERN.sub(lambda cell: _cell(cell, next(names)), row[0])


def _cell(cell: re.Match[str], column: str) -> str:
    tag, attributes, dash = cell.groups(default="")
    role = 'role="rowheader"' if tag == "th" else f'role="cell" data-column="{escape(column)}"'
    return f"<{tag} {role}{' data-nothing' if dash else ''}{attributes}>{dash}"


def _part(part: re.Match[str]) -> str:
    return f'{part[0]} role="{ARIA_ROLES[part[1]]}"'


CONTROL_PATTERN: Final = r"<(input|select|textarea)\b(?![^>]* type=\"hidden\")[^>]*? name=\"{}\"[^>]*>"
AUTOFOCUS_PATTERN: Final = re.compile(r"(<[a-z]+\b[^>]*?) autofocus\b")
DESCRIBED_PATTERN: Final = re.compile(r' aria-describedby="([^"]*)"')


def at_field(page: Markup, name: str, complaint: Markup) -> Markup:
    """Return the page with the complaint below its first field of that name, which gets the focus.

    Nothing changes where there is no such field, or it shows what is wrong itself.
    """
    html = str(page)
    found = re.search(CONTROL_PATTERN.format(re.escape(name)), html) if name else None
    if found is None or "aria-invalid" in found[0]:
        return page
    before, after = _with_open_details(AUTOFOCUS_PATTERN.sub(r"\1", html[: found.start()])), html[found.end() :]
    end = _end_of_field(found)
    inside, _, rest = after.partition(end) if end else ("", "", after)
    words = f'<span class="wrong" id="{name}-wrong">{complaint}</span>'
    below = f"{inside}{words}{end}" if end == "</label>" else f"{inside}{end}{words}"
    control = _wrong_control(found[0], name)
    return Markup(before + control + below + AUTOFOCUS_PATTERN.sub(r"\1", rest))  # noqa: S704 - escaped by the template


def _wrong_control(control: str, name: str) -> str:
    described = DESCRIBED_PATTERN.search(control)
    about = f"{described[1]} {name}-wrong" if described else f"{name}-wrong"
    plain = DESCRIBED_PATTERN.sub("", AUTOFOCUS_PATTERN.sub(r"\1", control)).removesuffix(">")
    return f'{plain} aria-invalid="true" aria-describedby="{about}" autofocus>'


def _end_of_field(control: re.Match[str]) -> str:
    """Return what the complaint stands at: the words beside a box come before it."""
    if control[1] != "input":
        return f"</{control[1]}>"
    return "</label>" if re.search(r' type="(?:checkbox|radio)"', control[0]) else ""


def _with_open_details(before: str) -> str:
    """Return the page up to the field, with the folded part open that the field is in."""
    start = before.rfind("<details")
    if start <= before.rfind("</details>"):
        return before
    tag = before[start : before.index(">", start)]
    return before if " open" in tag else f"{before[:start]}{tag} open{before[start + len(tag) :]}"
