"""Run axe in a page of a real browser to find violations of WCAG 2.2 A and AA."""

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
    """Return the violations that axe finds on the page. The debugger injects axe, bypassing the page's CSP."""
    await page.evaluate(AXE)
    violations: list[str] = await page.evaluate(RUN_AXE, RULES)
    return violations
