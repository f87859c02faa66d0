"""What administrators see and do about text messages: how many were sent, and a test message."""

from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.phones.model import MessageCount, PhoneStore
from gatehouse.accounts.phones.verification import PhoneNumbers
from gatehouse.kernel.clock import Clock
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import Channel, OutboxStore
from gatehouse.mail.outbox import OutboxWorker


class TextMessageStatus(Struct, frozen=True, kw_only=True):
    sent: int  # in 24 hours
    most: int  # the ceiling of 24 hours
    waiting: int
    failed: int
    trouble: str  # the last error of the oldest waiting message


class TextMessages(Struct, frozen=True, kw_only=True, eq=False):
    store: PhoneStore
    outbox: OutboxStore
    worker: OutboxWorker  # of text messages
    phones: PhoneNumbers
    composer: Composer
    clock: Clock

    async def status(self) -> TextMessageStatus:
        outbox = await self.outbox.outbox_status(Channel.TEXT)
        return TextMessageStatus(
            sent=await self.store.messages_sent(self.clock.now()),
            most=self.phones.policy.messages_a_day,
            waiting=outbox.waiting,
            failed=outbox.given_up,
            trouble=outbox.trouble,
        )

    async def send_test(self, user: User, phone: str) -> None:
        """Send a message to the number past the outbox; it counts like a code.

        Raises PhonesOff, BadAccount, CountryNotOffered, TooMany, and Undelivered with the answer of the sender.
        """
        number = self.phones.check_number(phone)
        count = MessageCount(
            user_id=user.user_id,
            number_key=self.phones.number_key(number),
            network="",
            created_at=self.clock.now(),
        )
        await self.store.count_message(count, messages_a_day=self.phones.policy.messages_a_day)
        await self.worker.deliver_now(self.composer.compose_test_message(to=number, lang=user.lang))
