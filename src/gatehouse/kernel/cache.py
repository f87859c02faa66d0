"""A cache limited by the weight of its entries in bytes, not by their number."""

from collections import OrderedDict, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

V = TypeVar("V")

ENTRY_WEIGHT: Final = 400  # bytes the cache itself needs for an entry: two dictionary slots, a set slot, the key


@dataclass(frozen=True, slots=True, eq=False)
class CacheHandle:
    """Identifies one entry of a cache while it exists. It does not refer to the value, which may refer to it."""

    group: Hashable
    key: Hashable


@dataclass(slots=True)
class _Entry(Generic[V]):
    handle: CacheHandle
    value: V
    weight: int


class WeightedCache(Generic[V]):
    """The least recently used entry is dropped first; a value heavier than the whole cache is not stored at all.

    Entries belong to a group, so that everything made from one thing can be dropped together with it. Weights are
    estimates by the callers: what an entry alone keeps in memory. Safe to use from several threads.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self._weight = 0
        self._entries: OrderedDict[tuple[Hashable, Hashable], _Entry[V]] = OrderedDict()
        self._groups: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
        self._lock = Lock()

    @property
    def weight(self) -> int:
        return self._weight

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, group: Hashable, key: Hashable) -> V | None:
        with self._lock:
            entry = self._entries.get((group, key))
            if entry is None:
                return None
            self._entries.move_to_end((group, key))
            return entry.value

    def put(self, group: Hashable, key: Hashable, value: V, weight: int) -> CacheHandle:
        """Store the value under the key, in place of an older one."""
        ticket = CacheHandle(group, key)
        with self._lock:
            self._remove(group, key)
            self._entries[group, key] = _Entry(ticket, value, weight + ENTRY_WEIGHT)
            self._groups[group].add(key)
            self._weight += weight + ENTRY_WEIGHT
            self._shrink(group, key)
        return ticket

    def add_weight(self, handle: CacheHandle, more: int) -> None:
        """Count the growth of a value since it was put; ignored for an entry that is gone."""
        with self._lock:
            entry = self._entries.get((handle.group, handle.key))
            if entry is not None and entry.handle is handle:
                entry.weight += more
                self._weight += more
                self._shrink(handle.group, handle.key)

    def drop_group(self, group: Hashable) -> None:
        with self._lock:
            for key in tuple(self._groups.get(group, ())):
                self._remove(group, key)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._groups.clear()
            self._weight = 0

    def _shrink(self, group: Hashable, key: Hashable) -> None:
        """Evict entries; one that is too heavy alone is evicted before others."""
        if self._entries[group, key].weight > self.limit:
            self._remove(group, key)
        while self._weight > self.limit:
            self._remove(*next(iter(self._entries)))

    def _remove(self, group: Hashable, key: Hashable) -> None:
        entry = self._entries.pop((group, key), None)
        if entry is not None:
            self._weight -= entry.weight
            keys = self._groups[group]
            keys.discard(key)
            if not keys:
                del self._groups[group]
