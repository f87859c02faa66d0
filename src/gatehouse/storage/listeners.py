"""The listeners of this process by channel."""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from gatehouse.storage.runner import Listener
from gatehouse.storage.statements import Notification

PG_CHANNEL: Final = "gatehouse"  # the one channel of PostgreSQL; the channels of stores are part of the payload
MISSED_PAYLOAD = ""  # the payload that says notices may have been missed


def encode_notification(notice: Notification) -> str:
    return f"{notice.channel} {notice.payload}"


def decode_notification(text: str) -> Notification:
    channel, _, payload = text.partition(" ")
    return Notification(channel, payload)


class Listeners:
    def __init__(self) -> None:
        self._by_channel: defaultdict[str, set[Listener]] = defaultdict(set)

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        self._by_channel[channel].add(listener)

        def end() -> None:
            self._by_channel[channel].discard(listener)

        return end

    def notify(self, notice: Notification) -> None:
        for listener in tuple(self._by_channel.get(notice.channel, ())):
            listener(notice.payload)

    def notify_missed(self) -> None:
        for channel in tuple(self._by_channel):
            self.notify(Notification(channel, MISSED_PAYLOAD))
