"""Templates to HTML: escaped, with every name known."""

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from gatehouse.web.responses import html_answer
from gatehouse.web.static import Assets


class Pages:
    def __init__(self, assets: Assets) -> None:
        self._templates = Environment(
            loader=PackageLoader("gatehouse.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["asset"] = assets.address

    def text(self, template: str, **context: object) -> str:
        return self._templates.get_template(template).render(context)

    def answer(self, template: str, *, status: int = 200, **context: object) -> Response:
        return html_answer(self.text(template, **context), status=status)

    def error(self, status: int, title: str, message: str, request_id: str) -> str:
        return self.text("error.html", status=status, title=title, message=message, request_id=request_id)
