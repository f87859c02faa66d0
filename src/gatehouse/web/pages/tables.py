"""Tables that stand in narrow places, where a stylesheet shows every row as a block of its own.

A browser then forgets what a row and a cell are, and the heads are out of sight: so every element is told its role
in words, and every cell its column.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from markupsafe import Markup, escape

# What Jinja has escaped holds no ">" inside of a tag, and none of our tables stands in another.
HEAD_PATTERN: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW_PATTERN: Final = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL_PATTERN: Final = re.compile(r"<(th|td)\b([^>]*)>")
PART_PATTERN: Final = re.compile(r"<(thead|tbody|tr)\b")
ARIA_ROLES: Final = {"thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}


def stackable(table: Markup) -> Markup:
    """The same heads and rows, each with its role, and each cell with the name of its column."""
    heads, end, bodies = str(table).partition("</thead>")
    columns = [Markup(words).striptags() for words in HEAD_PATTERN.findall(heads)]  # noqa: S704 - escaped by the template
    named = heads.replace("<th ", '<th role="columnheader" ') + end + ROW_PATTERN.sub(partial(_row, columns), bodies)
    return Markup(PART_PATTERN.sub(_part, named))  # noqa: S704 - what was escaped, and two more attributes


def _row(columns: Sequence[str], row: re.Match[str]) -> str:
    """A row that has fewer cells than there are columns stands beside one that reaches down to it from above."""
    names = iter(columns[-len(CELL_PATTERN.findall(row[0])) :])
    return CELL_PATTERN.sub(lambda cell: _cell(cell, next(names)), row[0])


def _cell(cell: re.Match[str], column: str) -> str:
    tag, attributes = cell.groups()
    told = 'role="rowheader"' if tag == "th" else f'role="cell" data-column="{escape(column)}"'
    return f"<{tag} {told}{attributes}>"


def _part(part: re.Match[str]) -> str:
    return f'{part[0]} role="{ARIA_ROLES[part[1]]}"'
