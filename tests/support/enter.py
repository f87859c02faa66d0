"""Press Enter in every form of a page and compare with its primary button."""

from typing import Final

from playwright.async_api import Page

# The first field of every form in reach, and its primary button: the first one that is not outlined or quiet.
PREPARE: Final = """
() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  window.enterSubmits = {};
  if (!window.enterListens) {
    window.enterListens = true;
    addEventListener("submit", (event) => {
      event.preventDefault();
      event.stopImmediatePropagation();
      const done = event.submitter ? window.describeButton(event.submitter) : "no button";
      window.enterSubmits[event.target.dataset.enterForm] = done;
    }, true);
  }
  window.describeButton = (button) =>
    `${button.name}=${button.value} to ${button.formAction}`;
  const inReach = (one) => one.checkVisibility() && !one.disabled;
  const found = [];
  document.querySelectorAll("form").forEach((form, number) => {
    const fields = [...form.elements].filter((one) => one.matches(
      "input:not([type=hidden], [type=file], [type=submit], [type=button], [type=color], [readonly])"
    ) && inReach(one));
    const buttons = [...form.elements].filter((one) => one.matches("button[type=submit]") && inReach(one));
    const primary = buttons.find((one) => !one.matches(".outline, .quiet, .link, [aria-hidden]"));
    if (!fields.length || !primary || buttons.length < 2) return;
    form.noValidate = true;
    form.dataset.enterForm = number;
    fields[0].dataset.enterField = number;
    found.push([number, window.describeButton(primary)]);
  });
  return found;
}
"""


async def enter_problems(page: Page) -> list[str]:
    """Return the forms in which Enter does something else than their primary button does."""
    problems = []
    for number, primary in await page.evaluate(PREPARE):
        await page.locator(f'[data-enter-field="{number}"]').press("Enter")
        done = (await page.evaluate("window.enterSubmits")).get(str(number), "nothing")
        if done != primary:
            problems.append(f"Enter does {done}, not {primary}")
    return problems
