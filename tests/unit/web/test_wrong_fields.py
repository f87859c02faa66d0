"""What is wrong with a form is said at the field: it has the focus, and the folded part it is in is open."""

import pytest
from markupsafe import Markup

from gatehouse.web.pages.stacked_tables import at_field

WORDS = Markup("<span>Too long</span>")
WRONG = '<span class="wrong" id="url-wrong"><span>Too long</span></span>'
MARKS = ' aria-invalid="true" aria-describedby="url-wrong" autofocus'


def test_words_come_after_a_text_field_and_before_its_hint() -> None:
    page = Markup('<label>URL<input name="url" value="a"><small>A hint</small></label>')
    assert at_field(page, "url", WORDS) == (
        f'<label>URL<input name="url" value="a"{MARKS}>{WRONG}<small>A hint</small></label>'
    )


@pytest.mark.parametrize("tag", ["select", "textarea"])
def test_words_come_after_the_end_of_other_controls(tag: str) -> None:
    page = Markup('<label>URL<{0} name="url">a</{0}></label>').format(Markup(tag))  # noqa: S704 - of this test
    assert at_field(page, "url", WORDS) == f'<label>URL<{tag} name="url"{MARKS}>a</{tag}>{WRONG}</label>'


def test_words_come_after_those_beside_a_box() -> None:
    page = Markup('<label><input type="checkbox" name="url"> On</label> more')
    assert at_field(page, "url", WORDS) == f'<label><input type="checkbox" name="url"{MARKS}> On{WRONG}</label> more'


def test_field_keeps_its_description_and_is_the_only_one_with_the_focus() -> None:
    page = Markup('<input name="a" autofocus><input name="url" aria-describedby="hint"><input name="b" autofocus>')
    assert at_field(page, "url", WORDS) == (
        '<input name="a"><input name="url" aria-invalid="true" aria-describedby="hint url-wrong" autofocus>'
        f'{WRONG}<input name="b">'
    )


def test_folded_part_with_the_field_is_opened_and_others_are_not() -> None:
    page = Markup('<details><i></i></details><details class="more"><input name="url"></details>')
    assert at_field(page, "url", WORDS) == (
        f'<details><i></i></details><details class="more" open><input name="url"{MARKS}>{WRONG}</details>'
    )


@pytest.mark.parametrize(
    "page",
    [
        '<input type="hidden" name="url">',
        '<input name="url" aria-invalid="true">',  # it shows what is wrong itself
        '<input name="urls">',
    ],
)
def test_page_without_a_field_to_mark_stays(page: str) -> None:
    assert at_field(Markup(page), "url", WORDS) == page  # noqa: S704 - of this test


def test_page_without_a_problem_stays() -> None:
    assert at_field(Markup('<input name="">'), "", WORDS) == '<input name="">'
