"""Tags and purchases of an account: words that conditions look at (R1, interface §2.7); its language and country."""

import re
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import MAX_TAG_LENGTH, MAX_TAGS, SYSTEM_TAGS
from gatehouse.kernel.text import is_plain_line
from gatehouse.tokens.sizes import MAX_TAG_BYTES, json_length

MAX_CUSTOM_TAG_BYTES: Final = MAX_TAG_BYTES - 128  # the rest is for the tags that the service keeps
LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
COUNTRY_CODE: Final = re.compile(r"([A-Z]{2})?", re.ASCII)


def check_lang(text: str) -> str:
    if not LANGUAGE_TAG.fullmatch(text):
        raise BadAccount("must be a language tag such as en or pt-BR")
    return text


def check_country(text: str) -> str:
    if not COUNTRY_CODE.fullmatch(text):
        raise BadAccount("must be two capital letters such as DE")
    return text


def check_tags(tags: frozenset[str]) -> frozenset[str]:
    own = tags & SYSTEM_TAGS
    if own:
        raise BadAccount(f"{', '.join(sorted(own))}: managed automatically, cannot be set")
    if any("," in tag for tag in tags):
        raise BadAccount("a tag cannot contain a comma")  # they travel joined by commas (R2, claim tgs)
    if json_length(",".join(check_labels(tags))) > MAX_CUSTOM_TAG_BYTES:
        raise BadAccount(f"all tags together are limited to {MAX_CUSTOM_TAG_BYTES} bytes")
    return tags


def check_labels(words: frozenset[str]) -> frozenset[str]:
    if len(words) > MAX_TAGS:
        raise BadAccount(f"at most {MAX_TAGS} entries")
    for word in words:
        if not 0 < len(word) <= MAX_TAG_LENGTH or word != word.strip() or not is_plain_line(word):
            raise BadAccount(f"each entry must be 1 to {MAX_TAG_LENGTH} visible characters on one line")
    return words
