"""Every form that edits something stored has a save bar; forms that act at once have none."""

import re

from tests.support.browser import FORM
from tests.support.console import ADA, DEV, PIA, SHOP, ConsoleBrowsers
from tests.support.service import RunningService
from tests.wire.console.test_api_calls import OBJECTS, fill_studio
from tests.wire.console.test_files import APPLICATION, MIND_GAMES

MORE_FORMS = (
    "/account",
    *(f"/console/people/{PIA}/{form}" for form in ("edit", "email")),
    f"{MIND_GAMES}/members/lists",
    *(f"{APPLICATION}/{form}" for form in ("new_client", "rules/new", "rules/several", "rules/import")),
    *(f"/console/settings/{tab}" for tab in ("webhooks/new", "terms", "providers")),
    *(f"/console/{kind}/new" for kind in ("people", "projects", "roles", "applications")),
)
ACTION = re.compile(r'<form method="post" action="([^"]+)"')
ID = re.compile(r"[0-9a-f]{24,32}")
STORED = re.compile(r'<input type="hidden" name="(?:version|part)"')  # which one, or which version of it
FIELD = re.compile(r'<(?:input(?! type="hidden")|select|textarea) [^>]*name="')
ADDS_RULES = {f"{APPLICATION}/rules/{form}" for form in ("several", "import")}  # and shows them before
WITH_SAVE_BAR = {
    *(f"/account/{form}" for form in ("profile", "username", "look")),
    *(f"/console/people/{PIA}{form}" for form in ("/edit", "/email")),
    *(f"{MIND_GAMES}{form}" for form in ("/settings", f"/members/{DEV}", "/members/lists", f"/services/{SHOP}")),
    *(f"{MIND_GAMES}/groups/*{form}" for form in ("", "/conditions/new")),
    *(f"{APPLICATION}/{form}" for form in ("settings", "settings/service", "api", "clients/web", "new_client")),
    *(f"{APPLICATION}/rules/{form}" for form in ("new", "login", "private_data.user.kick")),
    f"/console/roles/{SHOP}/moderator/settings",
    *(f"/console/settings{tab}" for tab in ("", "/branding", "/email", "/languages", "/sessions", "/sign-in")),
    *(f"/console/settings/webhooks/{form}" for form in ("new", "*")),
}


async def test_every_form_that_edits_something_stored_has_a_save_bar(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, forms = await console_browsers(ADA), dict[str, str]()
    for path in (*OBJECTS, *MORE_FORMS, *await fill_studio(studio, ada)):
        page = await ada.get(path)
        assert page.status_code == 200, path
        forms |= {ID.sub("*", action[1]): form for form in FORM.findall(page.text) if (action := ACTION.match(form))}
    with_bar = {action for action, form in forms.items() if "data-save-bar" in form}
    editing = {action for action, form in forms.items() if STORED.search(form) and FIELD.search(form)}
    assert editing - with_bar == ADDS_RULES
    assert with_bar == WITH_SAVE_BAR
