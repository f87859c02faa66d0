"""Search over everything: what the caller may open, and nothing else."""

import re

from tests.support.console import ADA, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers

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
