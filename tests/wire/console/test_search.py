"""Search over everything: what the caller may open, and nothing else."""

import re
from html import unescape

from tests.support.console import ADA, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers
from tests.support.oauth import an_oidc_client
from tests.support.service import RunningService

RESULTS = re.compile(r'<div class="results" id="results">(.*?)</section>', re.DOTALL)


async def search(browsers: ConsoleBrowsers, user_id: str, text: str) -> set[str]:
    """The addresses that the search finds."""
    browser = await browsers(user_id)
    response = await browser.get(f"/console/search?q={text}")
    assert response.status_code == 200
    found = RESULTS.search(response.text)
    assert found
    return set(re.findall(r'<a [^>]*href="([^"]+)"', found[1]))


async def test_administrators_find_people_applications_projects_roles_pages_and_actions(
    console_browsers: ConsoleBrowsers,
) -> None:
    assert f"/console/people/{PIA}" in await search(console_browsers, ADA, "pia")
    assert f"/console/applications/{SHOP}" in await search(console_browsers, ADA, "SHOP")
    assert f"/console/projects/{PROJECT}" in await search(console_browsers, ADA, PROJECT[:4])
    assert f"/console/roles/{SHOP}/moderator" in await search(console_browsers, ADA, "moder")
    assert {"/console/settings", "/console/settings/email"} <= await search(console_browsers, ADA, "")
    assert "/console/people/import" in await search(console_browsers, ADA, "import")
    assert await search(console_browsers, ADA, "z" * 400) == set()
    page = (await (await console_browsers(ADA)).get("/console/search?q=pia")).text
    here = re.findall(r'<a class="entry[^"]*" href="([^"]+)"[^>]* aria-current="page"', page)
    assert here == ["/console/search"]


async def test_others_find_only_what_they_may_open(console_browsers: ConsoleBrowsers) -> None:
    for user_id in (OLGA, MAX):
        browser = await console_browsers(user_id)
        found = set[str]()
        for text in ("", "a", "o", "pia", "shop", "mod", str(SHOP), PROJECT):
            found |= await search(console_browsers, user_id, text)
        assert {(path, (await browser.get(path)).status_code) for path in found} == {(path, 200) for path in found}
        assert not any(path.startswith(("/console/people", "/console/settings")) for path in found)


async def test_words_are_found_in_any_order_with_spaces_for_underscores_and_by_synonyms(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await an_oidc_client(studio, "shop_front", name="Shop front", application_id=SHOP)
    expected = {
        "shop moderator": f"/console/roles/{SHOP}/moderator",
        "games mind": f"/console/projects/{PROJECT}",
        "front shop": f"/console/applications/{SHOP}/clients/shop_front",
        "user.kick": f"/console/applications/{SHOP}/rules?q=user.kick",
        "role add": "/console/roles/new",
        "invite": "/console/people/new",
    }
    for text, path in expected.items():
        assert path in await search(console_browsers, ADA, text), text
    (group,) = [path for path in await search(console_browsers, ADA, "testers") if "/groups/" in path]
    assert (await (await console_browsers(ADA)).get(group)).status_code == 200
    here = await search(console_browsers, ADA, f"ban&here=/console/people/{PIA}")
    assert f"/console/people/{PIA}/bans" in here
    assert not any("clients" in path for path in await search(console_browsers, MAX, "front"))
    assert "/console/people" not in "".join(await search(console_browsers, MAX, f"&here=/console/people/{PIA}"))


async def test_a_sentence_leads_to_the_review_of_the_role_with_its_end(
    console_browsers: ConsoleBrowsers,
) -> None:
    for sentence in ("assign cashier to pia until friday", "zuweisen cashier an pia bis freitag"):
        found = await search(console_browsers, ADA, sentence)
        (path,) = [unescape(one) for one in found if "/access/role" in one]
        assert path == f"/console/people/{PIA}/access/role?role={SHOP}%2Fcashier&end=friday"
    review = (await (await console_browsers(ADA)).get(path)).text
    assert "cashier" in review
    assert "<time" in review.partition("cashier")[2]
    assert not any("/access/role" in one for one in await search(console_browsers, MAX, "assign cashier to pia"))
