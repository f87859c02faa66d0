"""A browser's own words, as a person would say them: "Firefox on Linux"."""

from typing import Final

# The first that is found counts: Edge and Opera call themselves Chrome, and Chrome calls itself Safari.
BROWSER_NAMES: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEM_NAMES: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def device_name(agent: str) -> str:
    """Empty when nothing is known about it."""
    browser = next((name for mark, name in BROWSER_NAMES if mark in agent), "")
    system = next((name for mark, name in SYSTEM_NAMES if mark in agent), "")
    return " on ".join(part for part in (browser, system) if part)
