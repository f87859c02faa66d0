"""Stores running sign-in flows (sign_in_flow/model.py)."""

from functools import partial

from msgspec.structs import replace
from sqlalchemy import bindparam, delete, insert, select, update

from gatehouse.audit.model import AuditRecord
from gatehouse.sign_in_flow.model import FlowStep, SignInFlow, SignInFlowMoved
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, inline_write, read
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import interactions

_THIS_FLOW = interactions.c.digest == bindparam("of")
_UNEXPIRED = interactions.c.ends_at > bindparam("now")

INSERT_FLOW = Statement(lambda: insert(interactions))
FIND_FLOW = Statement(lambda: select(interactions).where(_THIS_FLOW, _UNEXPIRED))
UPDATE_FLOW = Statement(
    lambda: (
        update(interactions)
        .where(_THIS_FLOW, interactions.c.version == bindparam("seen"))
        .values(
            {name: bindparam(name) for name in ("step", "user_id", "auth", "failures", "ask")}
            | {"version": interactions.c.version + 1}
        )
        .returning(interactions.c.version)
    )
)
TAKE_FLOW = Statement(lambda: delete(interactions).where(_THIS_FLOW, _UNEXPIRED).returning(*interactions.c))


def create_flow(interaction: SignInFlow) -> Verb[None]:
    yield INSERT_FLOW(**column_values(interaction))


def find_flow(digest: bytes, now: int) -> Verb[SignInFlow | None]:
    rows = yield FIND_FLOW(of=digest, now=now)
    return _flow_from_row(rows[0]) if rows else None


def update_flow(interaction: SignInFlow) -> Verb[SignInFlow]:
    moved = yield UPDATE_FLOW(
        of=interaction.digest,
        seen=interaction.version,
        step=interaction.step,
        user_id=interaction.user_id,
        auth=interaction.auth,
        failures=interaction.failures,
        ask=interaction.ask,
    )
    if not moved:
        raise SignInFlowMoved
    return replace(interaction, version=moved[0].version)


def take_flow(digest: bytes, now: int, entry: AuditRecord | None = None) -> Verb[SignInFlow | None]:
    rows = yield TAKE_FLOW(of=digest, now=now)
    if rows and entry is not None:
        yield from add_audit_record(entry)
    return _flow_from_row(rows[0]) if rows else None


class SignInFlowStorage(SqlStore):
    create_flow = inline_write(create_flow)
    find_flow = read(find_flow)
    update_flow = inline_write(update_flow, single_statement=update_flow)

    async def take_flow(self, digest: bytes, now: int, entry: AuditRecord | None = None) -> SignInFlow | None:
        verb = partial(take_flow, digest, now, entry)
        return await self.runner.write(verb, inline=True, single_statement=verb if entry is None else None)


def _flow_from_row(row: Row) -> SignInFlow:
    return SignInFlow(**{**row._asdict(), "step": FlowStep(row.step)})
