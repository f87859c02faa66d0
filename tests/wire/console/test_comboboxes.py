"""Fields that choose a person or thing by name: what they offer, accept and say, on every form that has one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import httpx2
import pytest

import gatehouse.web
from tests.support.browser import HttpBrowser
from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document
from tests.support.service import RunningService

TEMPLATES: Final = Path(gatehouse.web.__file__).parent / "templates/console"
NONSENSE: Final = "Zzz zzz"
APPLICATION: Final = f"/console/applications/{SHOP}"
SIMULATE: Final = "/console/access/simulate?change="
PAGES: Final = (
    "/console/access/check",
    "/console/access/who",
    *(f"{SIMULATE}{change}" for change in ("give_role", "role_rule", "group_member", "membership")),
    "/console/activity",
    "/console/people",
    "/console/people/bans",
    f"/console/people/selected?action=role&user_id={PIA}",
    f"/console/people/selected?action=group&user_id={PIA}",
    f"/console/people/{PIA}/bans",
    f"/console/people/{PIA}/access",
    "/console/projects/new",
    "/console/applications/new/empty",
    f"{APPLICATION}/settings",
    f"{APPLICATION}/sites",
    f"{APPLICATION}/matrix",
    f"{APPLICATION}/users",
    f"{APPLICATION}/bans",
    f"/console/projects/{PROJECT}/bans",
)
FILLED: Final = {"application_id": str(SHOP), "site_origin": "https://wiki.example", "title": "New", "name": "New"}
NOT_VISITED: Final = {("role", "role-0")}  # a service whose roles the viewer may not list
TWO_PAULAS: Final = """
users:
  - {login: paula@one.example, nick: Paula, user_id: "2000000001"}
  - {login: paula@two.example, nick: Paula, user_id: "2000000002", username: paula.two}
"""


@dataclass
class FoundForm:
    method: str
    action: str
    values: dict[str, str] = field(default_factory=dict)
    comboboxes: dict[str, str] = field(default_factory=dict)  # names by id


class FormFinder(HTMLParser):
    """Collect the forms of a page that have comboboxes, with the values of their fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[FoundForm] = []
        self._form: FoundForm | None = None
        self._is_combobox = False
        self.feed(page)
        self.forms = [form for form in self.forms if form.comboboxes]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = FoundForm(given.get("method", "get"), given.get("action", ""))
            self.forms.append(self._form)
        elif tag == "div" and "combobox" in given.get("class", "").split():
            self._is_combobox = True
        elif tag == "input" and self._form is not None and given.get("name"):
            if given.get("type") not in ("checkbox", "radio", "file"):
                self._form.values[given["name"]] = given.get("value", "")
            if self._is_combobox:
                self._form.comboboxes[given["id"]] = given["name"]
                self._is_combobox = False

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None


def problem_at(page: str, box: str) -> str:
    """The text of the problem that the page shows at a combobox."""
    return page.partition(f'id="{box}-problem"')[2].partition("</div>")[0]


async def send(browser: HttpBrowser, page: str, form: FoundForm, values: dict[str, str]) -> httpx2.Response:
    action = form.action or page
    if form.method == "get":
        return await browser.client.get(f"{action.partition('?')[0]}?{urlencode(values)}")
    return await browser.client.post(action, data=values)


def comboboxes_in_templates() -> Iterator[str]:
    for template in TEMPLATES.rglob("*.html"):
        yield from re.findall(r'\bcombobox\("\w+", "(\w+)"', template.read_text())


async def test_every_combobox_keeps_nonsense_and_says_at_the_field_that_nothing_is_called_that(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada, visited = await console_browsers(ADA), set[str]()
    for page in PAGES:
        shown = await ada.get(page)
        assert shown.status_code == 200, page
        for form in FormFinder(shown.text).forms:
            for box, name in form.comboboxes.items():
                filled = {
                    name: value for name, value in FILLED.items() if name in form.values and not form.values[name]
                }
                answer = await send(ada, page, form, {**form.values, **filled, name: NONSENSE})
                place = (page, form.action, name)
                assert answer.status_code == 400, place
                assert re.search(rf'<input id="{box}" name="{name}" value="{NONSENSE}"', answer.text), place
                assert problem_at(answer.text, box), place
                visited.add(name)
    assert set(comboboxes_in_templates()) - visited == {"role"} - visited


@pytest.mark.both_databases
async def test_people_are_named_by_nick_email_user_name_or_id_and_candidates_are_listed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, TWO_PAULAS)
    ada = await console_browsers(ADA)
    check = "/console/access/check?application_id=Shop&rule=user.kick&project_id=mg&user_id="
    for name in ("pia", "PIA@players.example", PIA):
        page = await ada.get(f"{check}{name}")
        assert (page.status_code, 'data-label="Pia"' in page.text) == (200, True), name
    assert (await ada.get(f"{check}paula.two")).status_code == 200
    several = await ada.get(f"{check}Paula")
    assert several.status_code == 400
    problem = problem_at(several.text, "user_id")
    assert "Several people are called “Paula”." in problem
    assert "2000000001" in problem
    assert "paula@two.example" in problem
    near = problem_at((await ada.get(f"{check}Paul")).text, "user_id")
    assert "No person called “Paul”. Try an email or ID. Did you mean:" in near
    assert "2000000002" in near
    assert "candidates" not in problem_at((await ada.get(f"{check}Zzz")).text, "user_id")


@pytest.mark.both_databases
async def test_options_contain_the_text_and_only_what_the_viewer_may_see(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(
        studio, "projects: [{title: Chess Club}]\ngroups: [{project_id: chess_club, title: Testers}]"
    )
    everyone = [await console_browsers(user_id) for user_id in (ADA, OLGA, PIA)]
    expected = {
        "kind=person&q=players": (PIA, (True, False, False)),
        "kind=project&q=": (PROJECT, (True, True, False)),
        "kind=project&q=GAMES": (PROJECT, (True, True, False)),
        "kind=project&q=mg": (PROJECT, (True, True, False)),
        "kind=project&q=chess": ("chess_club", (True, False, False)),
        "kind=application&q=sho": (str(SHOP), (True, True, False)),
        f"kind=group&q=test&project_id={PROJECT}": ("Testers", (True, True, False)),
        "kind=group&q=test&project_id=chess_club": ("Testers", (True, False, False)),
        f"kind=resource&resource=groups&q=test&project_id={PROJECT}": ("Testers", (True, True, False)),
        "kind=resource&resource=services&q=sho": (str(SHOP), (True, True, False)),
        "kind=resource&q=sho": (str(SHOP), (False, False, False)),
        f"kind=role&application_id={SHOP}&q=mod": ("moderator", (True, True, False)),
        f"kind=permission&application_id={SHOP}&q=KICK": ("user.kick", (True, True, False)),
        "kind=anything&q=sho": (str(SHOP), (False, False, False)),
    }
    for query, (value, seen) in expected.items():
        answers = [await browser.get(f"/console/options?{query}") for browser in everyone]
        offered = [
            f'data-label="{value}"' in answer.text or f'data-value="{value}"' in answer.text for answer in answers
        ]
        assert (query, tuple(offered)) == (query, seen)
        assert "<html" not in answers[0].text
