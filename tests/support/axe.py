"""axe in a page of a real browser: what stands against WCAG 2.2 A and AA there."""

from pathlib import Path
from typing import Final

from playwright.async_api import Page

AXE: Final = (Path(__file__).parent / "vendor/axe-core/axe.min.js").read_text(encoding="utf-8")
RULES: Final = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "rules": {"target-size": {"enabled": True}},
}
RUN_AXE: Final = """
async (rules) => {
  document.querySelectorAll("main details").forEach((one) => { one.open = true; });
  const found = await axe.run(document, { ...rules, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}
"""


async def axe_violations(page: Page) -> list[str]:
    """What axe finds on the page as it is; it comes in by the debugger, past the page's own policy."""
    await page.evaluate(AXE)
    found: list[str] = await page.evaluate(RUN_AXE, RULES)
    return found
