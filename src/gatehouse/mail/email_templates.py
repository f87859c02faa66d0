"""The templates of emails, imported with the first email: a start needs none."""

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from gatehouse.kernel.text import is_plain_line
from gatehouse.mail.model import BadMessage


@cache  # templates are compiled once per process
def jinja_environment(*, escaping: bool) -> Environment:
    return Environment(
        loader=PackageLoader("gatehouse.mail"),
        autoescape=escaping,  # noqa: S701 - off for plain text only
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def subject_of(words: Template, context: Mapping[str, object]) -> str:
    subject = "".join(words.blocks["subject"](words.new_context(dict(context))))
    if not is_plain_line(subject):
        raise BadMessage("the subject must be one line")
    return subject
