"""Whether a project is removed, remembered for the version of the structure it was read at."""

from typing import Final

from cachetools import LRUCache

from gatehouse.permissions.store import PermissionStore

LIVE_PROJECT_CACHE_SIZE: Final = 10_000


class LiveProjectCache:
    def __init__(self, store: PermissionStore) -> None:
        self._store = store
        self._cache: LRUCache[tuple[str, int], bool] = LRUCache(LIVE_PROJECT_CACHE_SIZE)

    async def is_live(self, project_id: str, version: int) -> bool:
        """`version` is the structure's, of the facts that brought the question up."""
        known = self._cache.get((project_id, version))
        if known is not None:
            return known
        structure = await self._store.structure((project_id,), ())
        model = structure.projects.get(project_id)
        live = model is not None and not model.project.removed
        self._cache[project_id, structure.version] = live
        return live
