"""Run axe in a page of a real browser to find violations of WCAG 2.2 A and AA."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from playwright.async_api import Page

AXE: Final = (Path(__file__).parent / "vendor/axe-core/axe.min.js").read_text(encoding="utf-8")
ALL_RULES: Final = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "rules": {"target-size": {"enabled": True}},
}
# For a page that was checked by all rules before: in other colors, and on a smaller screen as well.
COLOR_RULES: Final = {"runOnly": ["color-contrast", "link-in-text-block"]}
LOOK_RULES: Final = {
    "runOnly": ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]
}
RUN_AXE: Final = """
async (rules) => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const found = await axe.run(document, { ...rules, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}
"""


async def load_axe_with_every_page(page: Page) -> None:
    """Load axe before the scripts of every page that is opened: cheaper than to send it to each of them."""
    await page.add_init_script(AXE)


async def axe_violations(page: Page, rules: Mapping[str, object] = ALL_RULES) -> list[str]:
    """Return the violations that axe finds on the page. The debugger injects axe, bypassing the page's CSP."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    violations: list[str] = await page.evaluate(RUN_AXE, rules)
    return violations
