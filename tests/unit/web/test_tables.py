"""Tables whose rows become blocks on a phone: every part has an ARIA role, every cell its column's name."""

from pathlib import Path
from typing import Final

from markupsafe import Markup

from gatehouse import web
from gatehouse.web.pages.stacked_tables import stackable

TEMPLATES: Final = Path(web.__file__).parent / "templates"
MACRO: Final = "console/parts.html"
MATRICES: Final = {"console/access/who.html", "console/assignments/table.html", "console/matrix/table.html"}
HEADS: Final = Markup(
    '<thead><tr><th scope="col">Key</th><th scope="col" class="number">Uses</th>'
    '<th scope="col"><span class="away">Acts &amp; more</span></th></tr></thead>'
)


def test_each_part_is_told_its_role_and_each_cell_its_column() -> None:
    html = stackable(
        HEADS + Markup('<tbody><tr><th scope="row">a</th><td class="number">1</td><td></td></tr></tbody>')
    )
    assert html == (
        '<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Key</th>'
        '<th role="columnheader" scope="col" class="number">Uses</th>'
        '<th role="columnheader" scope="col"><span class="away">Acts &amp; more</span></th></tr></thead>'
        '<tbody role="rowgroup"><tr role="row"><th role="rowheader" scope="row">a</th>'
        '<td role="cell" data-column="Uses" class="number">1</td>'
        '<td role="cell" data-column="Acts &amp; more"></td></tr></tbody>'
    )


def test_a_row_beside_a_cell_from_above_has_the_columns_that_are_left() -> None:
    html = stackable(HEADS + Markup("<tbody><tr><td>1</td><td>2</td></tr></tbody>"))
    assert '<td role="cell" data-column="Uses">1</td><td role="cell" data-column="Acts &amp; more">2</td>' in html


def test_a_template_makes_its_table_by_the_macro_unless_it_is_a_matrix() -> None:
    by_hand = {
        path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html") if "<table" in path.read_text()
    }
    assert by_hand == MATRICES | {MACRO}
