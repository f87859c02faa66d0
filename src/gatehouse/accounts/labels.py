"""Tags and purchases of an account: words that conditions look at (R1, interface §2.7); its language and country."""

import re
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import KEPT_TAGS, TAG_LONGEST, TAGS_MOST
from gatehouse.kernel.text import is_plain_line
from gatehouse.tokens.sizes import TAG_BYTES_MOST, json_length

OWN_TAG_BYTES_MOST: Final = TAG_BYTES_MOST - 128  # the rest is for the tags that the service keeps
LANG: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
COUNTRY: Final = re.compile(r"([A-Z]{2})?", re.ASCII)


def check_lang(text: str) -> str:
    if not LANG.fullmatch(text):
        raise BadAccount("must be a language tag such as en or pt-BR")
    return text


def check_country(text: str) -> str:
    if not COUNTRY.fullmatch(text):
        raise BadAccount("must be two capital letters such as DE")
    return text


def check_tags(tags: frozenset[str]) -> frozenset[str]:
    own = tags & KEPT_TAGS
    if own:
        raise BadAccount(f"{', '.join(sorted(own))}: managed automatically, cannot be set")
    if any("," in tag for tag in tags):
        raise BadAccount("a tag cannot contain a comma")  # they travel joined by commas (R2, claim tgs)
    if json_length(",".join(check_words(tags))) > OWN_TAG_BYTES_MOST:
        raise BadAccount(f"all tags together are limited to {OWN_TAG_BYTES_MOST} bytes")
    return tags


def check_words(words: frozenset[str]) -> frozenset[str]:
    if len(words) > TAGS_MOST:
        raise BadAccount(f"at most {TAGS_MOST} entries")
    for word in words:
        if not 0 < len(word) <= TAG_LONGEST or word != word.strip() or not is_plain_line(word):
            raise BadAccount(f"each entry must be 1 to {TAG_LONGEST} visible characters on one line")
    return words
