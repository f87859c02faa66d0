"""A studio, on each database in turn."""

import pytest

from tests.support.service import Service
from tests.support.studio import Studio, a_studio


@pytest.fixture
async def studio(service: Service) -> Studio:
    return await a_studio(service)
