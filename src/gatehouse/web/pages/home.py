"""What stands at the root address."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.dialects import Dialect
from gatehouse.web.pages.contexts import HomeContext
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.routes.table import Endpoint, RateClass


class HomePage:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def show(self, request: Request) -> Response:
        return self._pages.show(request, HomeContext())

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="home",
            path="/",
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="The root page",
            hidden=True,
        )
