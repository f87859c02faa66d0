"""Access in the console: the same results as the API's, with the permissions of R6."""

import csv
import io
import re
from html import unescape

import httpx2
import pytest

from gatehouse.permissions.model.facts import Assignment, ProjectModel
from gatehouse.permissions.model.rules import ROOT, End
from gatehouse.permissions.questions.check import CheckDraft, read_question
from gatehouse.web.api.permissions.explanation_records import explanation_record
from tests.support.browser import HttpBrowser, form_to, hidden_fields
from tests.support.builders import ORIGIN
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, STUDIO, ConsoleBrowsers, apply_document
from tests.support.game import register_game
from tests.support.oauth import REDIRECT, a_native_client, an_oidc_client, query_of
from tests.support.permission_builders import a_person, holdings_with, set_fields
from tests.support.service import RunningService

CHECK = f"/console/access/check?application_id={SHOP}"
MAKE = re.compile(r'<form method="post" action="([^"]+)">(?:(?!</form>).)*Make this change', re.DOTALL)
WHO = f"/console/access/who?application_id={SHOP}"
SIMULATE = f"/console/access/simulate?application_id={SHOP}"


async def test_a_check_shows_every_voice_and_names_the_nearest_missing_fact(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{CHECK}&user_id=pia&rule=user.kick")).text  # matched by nick
    assert "Yes: Pia has user.kick in Shop" in page
    assert "Role moderator: allow" in page
    assert f'<a href="/console/roles/{SHOP}/moderator">moderator</a>' in page
    assert "Denied by default" in page
    assert "To allow it" not in page
    assert re.search(r'name="value" value="remove"', page)
    by_condition = (await ada.get(f"{CHECK}&user_id={PIA}&rule=badge.gold")).text
    assert "Tag must be beta" in by_condition
    assert "(actual: beta)" in by_condition
    unmet = (await ada.get(f"{CHECK}&user_id={MAX}&rule=badge.gold")).text
    assert "Role beta would allow it, but its condition is not met" in unmet
    assert "Tag must be beta" in unmet
    lacking = (await ada.get(f"{CHECK}&user_id={PIA}&rule=store.refund")).text
    assert "No: Pia does not have store.refund in Shop" in lacking
    assert "cashier</a> would allow it, but is not assigned" in lacking
    assert "To allow it" in lacking
    # The page also shows the API's and the command line's output.
    facts = await studio.services.permissions.loader.load_facts(PIA, (SHOP,))
    assert facts is not None
    case = await studio.services.permissions.loader.load_input(facts)
    question = read_question(CheckDraft(rule="store.refund"), "data")
    explanation = explanation_record(await studio.services.questions.explainer.explain(case, SHOP, question, None))
    assert all(f"&#34;{sentence}&#34;" in lacking for sentence in explanation.sentences)
    assert "/api/permissions/explain" in lacking


async def test_a_check_tells_an_unverified_address_from_another_domain(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    """Only a verified address counts (R1), so the public domain alone does not decide."""
    await apply_document(studio, STUDIO.replace("{tag: beta}", "{domain: players.example}"))
    ada = await console_browsers(ADA)
    page_text = (await ada.get(f"{CHECK}&user_id={PIA}&rule=badge.gold")).text
    assert "Email domain must be players.example <small>(no verified email)</small>" in page_text
    assert "the login domain must be players.example, and no address is verified" in page_text
    assert "there is none" not in page_text


async def test_a_check_says_of_a_blocked_account_that_it_signs_in_nowhere(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    assert "This person can sign in to Shop." in (await ada.get(f"{CHECK}&user_id={PIA}")).text
    await studio.services.accounts.administration.block(PIA, ORIGIN)
    page_text = (await ada.get(f"{CHECK}&user_id={PIA}")).text
    assert "The account is blocked and cannot sign in anywhere." in page_text
    assert "This person can sign in" not in page_text


async def test_everybody_asks_about_themselves_and_about_others_who_may_read_what_they_hold(
    console_browsers: ConsoleBrowsers,
) -> None:
    paths = [
        (PIA, "", 200),
        (PIA, MAX, 403),
        (DEV, PIA, 403),
        (MAX, PIA, 200),
        (MAX, "Pia", 404),  # only administrators look people up by name
        (OLGA, "", 200),
    ]
    for who, about, status in paths:
        browser_client = await console_browsers(who)
        page = await browser_client.get(f"{CHECK}&user_id={about}&rule=user.kick")
        assert (page.status_code, 'class="tree"' in page.text) == (status, status == 200), (who, about)
        assert "This person can sign in" not in page.text  # blocks are shown only to administrators


async def test_the_beginnings_of_permissions_are_suggested_where_someone_may_read_the_schema(
    console_browsers: ConsoleBrowsers,
) -> None:
    page = (await (await console_browsers(ADA)).get(WHO)).text
    offered = page.partition('<datalist id="beginnings">')[2].partition("</datalist>")[0]
    for user_id in ("user.", "user.kick", "badge.gold"):
        assert f'<option value="{user_id}">' in offered


@pytest.mark.both_databases
async def test_holder_matrix_shows_the_source_and_end_of_each_cell(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    end = studio.clock.now() + 86_400
    cashier = holdings_with(Assignment(role="cashier", end=End(expired=end)))
    await studio.services.storage.user_records.edit_record(SHOP, DEV, set_fields(scopes={ROOT: cashier}), 0)
    ada = await console_browsers(ADA)
    page = (await ada.get(WHO)).text
    assert re.findall(r'class="cell (\w+)', page).count("condition") == 1  # Pia's badge
    assert page.count("cell given ending") == 1
    kicking = (await ada.get(f"{WHO}&rules=user.")).text
    assert "store.refund" not in kicking.partition("<table")[2]
    why = f"/console/access/check?user_id={PIA}&amp;application_id={SHOP}&amp;rule=private_data.user.kick"
    assert why in kicking
    assert "Olga" not in kicking
    searched = (await ada.get(f"{WHO}&rules=user.&q=olga")).text
    assert "Olga" in searched  # a search also shows people without it
    assert [PIA in page for page in (kicking, searched)] == [True, False]  # and no one else, not even in the markup
    file = await ada.get(f"{WHO}&format=csv")
    rows = {row["user_id"]: row for row in csv.DictReader(io.StringIO(file.text))}
    assert rows[PIA]["private_data.user.kick"] == "given"
    assert rows[DEV]["private_data.store.refund"].startswith("given until ")
    olga = await console_browsers(OLGA)
    assert "Pia" in (await olga.get(f"{WHO}&q=pia")).text
    for address in (f"{WHO}&rules=user.&q=dev", f"{WHO}&rules=user.&q=100&format=csv"):
        assert DEV not in (await olga.get(address)).text  # they have nothing there, so their nick does not find them
    for who in (PIA, DEV, MAX):
        assert (await (await console_browsers(who)).get(f"{WHO}&q=olga")).status_code == 403


async def test_a_page_of_who_can_ends_where_the_next_begins(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    people = [str(number) for number in range(2_000_000_001, 2_000_000_041)]
    for user_id in people:
        await a_person(studio.services.storage, user_id)
        await studio.services.storage.user_records.edit_record(
            SHOP, user_id, set_fields(scopes={ROOT: holdings_with("moderator")}), 0
        )
    ada = await console_browsers(ADA)
    seen, address = [], f"{WHO}&rules=user.kick"
    while address:
        page = (await ada.get(address)).text
        seen += re.findall(r"<code>([0-9]{10})</code>", page)
        following = re.search(r'href="\?([^"]*after=[^"]*)" rel="next"', page)
        address = f"/console/access/who?{following[1].replace('&amp;', '&')}" if following else ""
    assert seen == [PIA, *people]


async def test_permissions_that_one_page_of_who_can_has_no_room_for_stand_on_the_next_and_all_of_them_in_the_file(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    rules = "".join(f"          r{n:02}: {{value: true, protected: false}}\n" for n in range(120))
    await apply_document(
        studio, STUDIO.replace("      private_data:\n", f"      private_data:\n        many:\n{rules}", 1)
    )
    ada = await console_browsers(ADA)
    pages, address = [], f"{WHO}&rules=many."
    while address:
        page = (await ada.get(address)).text
        pages.append(re.findall(r'<th scope="col"><code>many\.(r[0-9]+)</code>', page))
        following = re.search(r'href="\?([^"]*columns=[^"&]*)" rel="next"', page)
        address = f"/console/access/who?{following[1].replace('&amp;', '&')}" if following else ""
    assert [len(rows) for rows in pages] == [12] * 10
    assert len({rule for rows in pages for rule in rows}) == 120
    assert "Permissions 109 to 120 of 120" in page
    assert 'rel="prev"' in page
    assert "Permissions 109 to 120 of 120" in (await ada.get(f"{WHO}&rules=many.&columns=99")).text
    file = csv.DictReader(io.StringIO((await ada.get(f"{WHO}&rules=many.&format=csv")).text))
    assert len(file.fieldnames or ()) == 2 + 120


async def test_a_change_is_simulated_counted_and_not_made(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    groups = {group.title: group.group_id for group in (await project_of(studio)).groups.values()}
    ada = await console_browsers(ADA)
    changes = {
        f"change=take_role&user_id={PIA}&role=moderator": ("1 person loses", "user.kick"),
        f"change=give_role&user_id={MAX}&role=cashier&until=2031-01-31": ("1 person gains", "store.refund"),
        "change=role_rule&role=moderator&rule=store.edit&value=true": ("1 person gains", "store.edit"),
        "change=role_rule&role=moderator&rule=user.kick&value=none": ("1 person loses", "user.kick"),
        "change=remove_rule&rule=user.mute": ("Impact", ""),
        f"change=group_member&group_id={groups['Testers']}&user_id={MAX}&way=add": ("No one is affected", ""),
        f"change=group_condition&group_id={groups['Staff']}&test=tag&wanted=beta": ("No one is affected", ""),
        f"change=membership&project_id={PROJECT}&group_id={groups['Staff']}&list=allow": ("Impact", ""),
    }
    before, changed = await state_of(studio), list[str]()
    for change, text in changes.items():
        page = await ada.get(f"{SIMULATE}&{change}")
        assert page.status_code == 200, (change, page.text)
        assert all(word in page.text for word in text), change
        assert "Make this change" in page.text
        if form := re.search(
            r'<form method="post" action="([^"]+)">(?:(?!</form>).)*Make this change', page.text, re.DOTALL
        ):
            staged = await post_all(ada, form[1], form[0])
            is_form = form[1].endswith(("/conditions/new", "/members/lists"))  # it shows the change, to be saved
            shown = "Save" if is_form else "Testers" if "group_member" in change else text[0]
            assert shown in staged.text, change
            changed.append(change.partition("&")[0].removeprefix("change="))
    assert len(changed) == len(changes) - 1  # a permission is removed on a page that asks
    assert await state_of(studio) == before
    assert (await ada.get(f"{SIMULATE}&change=give_role&user_id={PIA}&role=nothing")).status_code == 400
    assert (
        await (await console_browsers(PIA)).get(f"{SIMULATE}&change=remove_rule&rule=user.mute")
    ).status_code == 403


async def post_all(browser: HttpBrowser, path: str, form: str) -> httpx2.Response:
    """Post a form with all its values, those of one name too."""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form):
        fields.setdefault(name, []).append(unescape(value))
    return await browser.client.post(path, data=fields)


async def state_of(studio: RunningService) -> tuple[object, ...]:
    storage = studio.services.storage
    models = await storage.permissions.application_models([SHOP])
    return models[SHOP], await project_of(studio)


async def project_of(studio: RunningService) -> ProjectModel:
    return (await studio.services.storage.permissions.projects([PROJECT]))[PROJECT]


async def test_an_administrator_whom_an_application_keeps_out_is_told_the_rule(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    shop = await a_native_client(studio, "shop", application_id=SHOP)
    for user_id in (ADA, PIA):
        await studio.services.storage.user_records.edit_record(
            SHOP, user_id, set_fields(login={"can": {"value": False}}), 0
        )
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    page = await ada.get(shop.authorize_path(state="kept"))
    assert page.status_code == 403
    assert "<strong>login.can</strong> is set neither for this account" in page.text
    assert "<dt>Missing permission</dt><dd><code>login.can</code></dd>" in page.text
    assert "error=access_denied&amp;" in page.text
    assert "state=kept" in page.text
    check = re.search(r'href="(/console/access/check[^"]*)"', page.text)
    assert check is not None
    explained_page = (await ada.get(check[1].replace("&amp;", "&"))).text
    assert "login.can is not set for this person" in explained_page
    forms = await an_oidc_client(studio, "forms", application_id=SHOP)
    page = await ada.get(forms.authorize_path(response_mode="form_post"))
    assert page.status_code == 403
    assert hidden_fields(form_to(REDIRECT, page.text))["error"] == "access_denied"
    assert "form-action 'self' https://shop.example;" in page.headers["content-security-policy"]
    silent = await ada.get(shop.authorize_path(prompt="none"))
    assert query_of(silent.headers["location"])["error"] == "access_denied"
    sent_back = await pia.get(shop.authorize_path())
    assert query_of(sent_back.headers["location"])["error"] == "access_denied"
    for browser_client, names_rule in ((ada, True), (pia, False)):
        game = await register_game(studio, app_id=SHOP)
        await browser_client.get(f"/?gsid={game.gsid}")
        await browser_client.follow()
        await browser_client.post("/sign-in/confirm", decision="confirm")
        denied = await browser_client.follow()
        assert denied.status_code == 403
        assert ("login.can" in denied.text) is names_rule
        assert "Mind Games" in denied.text  # where to request access


async def test_a_remedy_is_reviewed_made_and_leads_back_to_the_answer(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada = await console_browsers(ADA)
    denied = (await ada.get(f"{CHECK}&user_id={PIA}&rule=store.refund&project_id=")).text
    users, matrix = (f"/console/applications/{SHOP}/{tab}" for tab in ("users", "matrix"))
    assert "1 permission more." in denied
    allow = form_to(f"{matrix}/review", denied)  # in the role that Pia has
    assert hidden_fields(allow)["column"] == "moderator"
    review = await ada.post(f"{users}/review", **hidden_fields(form_to(f"{users}/review", denied)))
    assert "1 person gains" in review.text
    assert "data-edits" not in review.text  # edits that are staged in the browser stay
    made = await ada.post(f"{users}/apply", **hidden_fields(form_to(f"{users}/apply", review.text)))
    assert made.status_code == 303
    allowed = (await ada.get(made.headers["location"])).text
    assert "Yes: Pia has store.refund in Shop" in allowed
    review = await ada.post(f"{users}/review", **hidden_fields(form_to(f"{users}/review", allowed)))
    assert "1 person loses" in review.text
    elsewhere = {**hidden_fields(form_to(f"{users}/apply", review.text)), "back": "https://evil.example/"}
    assert (await ada.post(f"{users}/apply", **elsewhere)).status_code == 200  # its own result page


async def test_a_ban_is_the_first_reason_and_lifted_from_the_answer(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada = await console_browsers(ADA)
    bans = f"/console/people/{PIA}/bans"
    form = {"scope": "application", "application_id": str(SHOP), "end": "day", "do": "apply"}
    await ada.get(bans)
    await ada.post(bans, **form)
    denied = (await ada.get(f"{CHECK}&user_id={PIA}&rule=user.kick")).text
    assert re.search(r'class="nearest">.*Banned from <a [^>]*>Shop</a>.*until', denied)
    assert denied.count("Banned from <a ") >= 2  # also why they cannot sign in
    for listed in (f"{WHO}&q=pia", "/console/people"):
        assert '<span class="badge bad">banned</span>' in (await ada.get(listed)).text
    lift = re.search(rf'href="({bans}/lift\?[^"]+)"', denied)
    assert lift is not None
    address = lift[1].replace("&amp;", "&")
    confirm = (await ada.get(address)).text
    assert "1 person gains" in confirm
    hidden = hidden_fields(confirm)
    fields = {name: hidden[name] for name in ("csrf", "application_id", "back")}
    lifted = await ada.client.post(address, data=fields)
    assert "Yes: Pia has user.kick in Shop" in (await ada.get(lifted.headers["location"])).text


async def test_near_names_are_suggested_and_a_blocked_account_can_do_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    misspelled = (await ada.get(f"{CHECK}&user_id={PIA}&rule=user.kik")).text
    assert "Shop has no permission user.kik. Did you mean" in misspelled
    assert re.search(r'href="[^"]*rule=user.kick">user.kick</a>', misspelled)
    await studio.services.accounts.administration.block(PIA, ORIGIN)
    blocked = (await ada.get(f"{CHECK}&user_id={PIA}&rule=user.kick")).text
    assert "No: Pia does not have user.kick in Shop" in blocked
    assert "The account is blocked" in blocked.partition('id="why"')[0]


async def test_who_can_names_the_role_and_removes_it_there(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada, users = await console_browsers(ADA), f"/console/applications/{SHOP}/users"
    page = (await ada.get(f"{WHO}&rules=user.kick")).text
    assert re.search(r'class="cell given" href="[^"]+" title="Why">moderator</a>', page)
    line = re.search(r'name="text" value="([^"]+)"[^>]*aria-label="Remove moderator from Pia"', page)
    assert line is not None
    review = await ada.post(f"{users}/review", **hidden_fields(form_to(f"{users}/review", page)), text=line[1])
    assert "1 person loses" in review.text
    made = await ada.post(f"{users}/apply", **hidden_fields(form_to(f"{users}/apply", review.text)))
    assert made.headers["location"].startswith("/console/access/who?")
    assert "moderator" not in (await ada.get(made.headers["location"])).text.partition("<tbody>")[2]
