"""A pickle machine that executes nothing.

All 68 opcodes of protocols 0 to 5 as documented in CPython's `pickletools`, on a stack of inert records. Nothing is
imported, called or looked up in copyreg; the memo is sparse; every length is checked against the bytes left before it
is believed. A stream that breaks still gives what was on the stack and every global named so far, because a real
unpickler has run those by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from inspector.checkpoint.source import ByteSource
from inspector.limits import Limits
from inspector.readers.unpickle.globals.python2 import imported_name
from inspector.readers.unpickle.machine.steps import MARK_NBYTES, follow
from inspector.readers.unpickle.machine.stream import Broken, OverLimit, Window
from inspector.readers.unpickle.meanings.plain import takes_static_method
from inspector.readers.unpickle.nested.encoded import LONG, may_hide_pickle, may_stand_for_bytes
from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    BytesAt,
    Call,
    GlobalRef,
    Group,
    Mapping,
    Meaning,
    NotUnderstood,
    PersistentRef,
    StorageRef,
    TensorStub,
    Use,
    text_of,
)
from inspector.units import human_bytes

_BLOCK = 4096
_IMPORTABLE = re.compile(r"[^\W\d][\w.]*")
_MOST_SUSPECTS = 1000
# What records take on a 64-bit CPython, garbage collector's header included (bytes). Freed ones are not given back,
# but for marks: a real file keeps nearly everything, and a hostile one that does not has no need to.
LIST_NBYTES = 72
MAPPING_NBYTES = 152
PAIR_NBYTES = 82
SLOT_NBYTES = 9
PERSISTENT_NBYTES = 250
_LARGE_NBYTES = 1 << 20
CALL_NBYTES = 320
_TENSOR_NBYTES = 240
_GLOBAL_NBYTES = 1500
_SPARSE_NBYTES = 150
# A pickle may name any attribute of `torch.tensor`; torch.load itself renames the module (torch/serialization.py).
_RENAMED = {"torch.tensor": "torch._tensor"}

# Written out in a test, `str | bytes` would be made anew every time.
_TEXTS = (str, bytes)
_LISTS = (list, tuple)
# What no meaning copies.
_FREE = frozenset({int, bool, float, type(None), StorageRef, GlobalRef, TensorStub})

Persistent = Callable[[object], object]
Build = Callable[[object, object], bool]
Handler = Callable[["Machine"], None]
# What another unpickler than Python's puts in the place of the object that BUILD has just filled.
Replaced = Callable[["Machine", object, object], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """What becomes of names, states and persistent ids.

    meanings: by the name that is called. build: fills an object with its state. persistent: what stands for an id.
    """

    meanings: MappingABC[str, Meaning]
    build: Build
    persistent: Persistent = PersistentRef
    replaced: Replaced | None = None


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What one pickle held.

    value: the object on top at STOP, or the lowest one on the stack of a broken stream. end: offset after STOP.
    broken: why the stream could not be followed to its end, "" when it could. protocol: highest announced.
    oddities: operations that a real unpickler would refuse. nbytes: what the records take in memory, by estimate.
    frame_end: where the last frame ends. operand: the first opcode that torch's restricted unpickler has not, None for
    none. named_before: how many of the names come before it.
    """

    value: object
    end: int
    uses: dict[tuple[str, str], Use]
    broken: str
    over_limit: bool
    protocol: int
    opcodes: int
    oddities: int
    nbytes: int
    frame_end: int = 0
    operand: int | None = None
    named_before: int = 0


def calls_importable(outcome: Outcome) -> bool:
    """Whether a pickle calls a name that Python could import. It runs even if nonsense follows, or no end."""
    return any(u.calls and _IMPORTABLE.fullmatch(f"{u.module}.{u.name}") for u in outcome.uses.values())


def importable_names(outcome: Outcome) -> list[tuple[str, str]]:
    """(module, name) of those that Python could import."""
    return [(u.module, u.name) for u in outcome.uses.values() if _IMPORTABLE.fullmatch(f"{u.module}.{u.name}")]


class Stop(Exception):
    """STOP was reached."""


class Machine(Window):
    """Runs one pickle. One machine, one run."""

    def __init__(
        self,
        source: ByteSource,
        start: int,
        stop: int,
        *,
        limits: Limits,
        semantics: Semantics,
        keep_below: int = 4096,
    ) -> None:
        super().__init__(source, start, stop, limits)
        self.meanings = semantics.meanings
        self.build = semantics.build
        self.persistent = semantics.persistent
        self.replaced = semantics.replaced
        self.keep_below = keep_below
        self.frame_end = 0
        self.stack: list[object] = []
        self.below: list[list[object]] = []
        # Real files number their memo 0, 1, 2 ...: a list takes a tenth of a dict. What is out of line goes aside.
        self.memo: list[object] = []
        self.sparse: dict[int, object] = {}
        self.refs: dict[tuple[str, str], GlobalRef] = {}
        self.unplaced: list[Use] = []
        self.protocol = 0
        self.opcode = 0
        self.operand: int | None = None
        self.named_before = 0
        self.oddities = 0
        self.copied = 0
        self.made = 0
        self.spent = 0
        self.slots_below = 0
        self.suspects: list[tuple[object, str]] = []
        self.more_suspects = 0

    def run(self, table: Sequence[Handler]) -> Outcome:
        """Follow the stream to STOP or to where it breaks. Never raises for what the stream contains.

        table: a handler for each of the 256 bytes (`opcodes.TABLE`).
        """
        broken, over, steps = "", False, 0
        budget = self.limits.opcodes
        try:
            while True:
                follow(self, table, min(_BLOCK, budget - steps))
                steps += _BLOCK
                if steps >= budget:
                    raise OverLimit(f"more than {budget:,} steps")
                self._check()
        except Stop:
            value = self.stack[-1] if self.stack else None
        except IndexError:
            broken = f"opcode 0x{self.opcode:02x} at byte {self.position - 1:,} needs a value that is not there"
        except OverLimit as problem:
            broken, over = str(problem), True
        except Broken as problem:
            broken = str(problem)
        except (ValueError, OverflowError) as problem:
            broken = f"opcode 0x{self.opcode:02x} before byte {self.position:,} has an unreadable argument ({problem})"[
                :300
            ]
        if broken:
            bottom = self.below[0] if self.below else self.stack
            value = bottom[0] if bottom else None
        self.memo, self.sparse = [], {}
        uses = {key: ref.use for key, ref in self.refs.items()}
        return Outcome(
            value=value,
            end=self.position,
            uses=uses,
            broken=broken,
            over_limit=over,
            protocol=self.protocol,
            opcodes=steps,
            oddities=self.oddities,
            nbytes=self.nbytes,
            frame_end=self.frame_end,
            operand=self.operand,
            named_before=self.named_before,
        )

    @property
    def nbytes(self) -> int:
        """What everything made so far takes, by estimate."""
        slots = self.slots_below + len(self.stack) + len(self.memo)
        return self.spent + SLOT_NBYTES * slots + _SPARSE_NBYTES * len(self.sparse)

    def _check(self) -> None:
        """Once in a while; a byte of file can make a hundred and fifty of memory."""
        if self.made > self.limits.memo:
            raise OverLimit(f"more than {self.limits.memo:,} containers and calls")
        if len(self.memo) + len(self.sparse) > self.limits.memo:
            raise OverLimit(f"more than {self.limits.memo:,} memo entries")
        if self.nbytes > self.most_nbytes:
            raise OverLimit(f"what it makes takes more than {human_bytes(self.most_nbytes)} of memory")

    def spend(self, nbytes: int) -> None:
        """Count what is about to be made; a single operation can make a great deal."""
        self.spent += nbytes
        if nbytes > _LARGE_NBYTES:
            self._check()

    def remember(self, index: int) -> None:
        """The object on top becomes memo entry `index`."""
        item = self.stack[-1]
        if index == len(self.memo):
            self.memo.append(item)
            if self.sparse:
                self.sparse.pop(index, None)
        elif 0 <= index < len(self.memo):
            self.memo[index] = item
        else:
            self.sparse[index] = item

    # -- calls that are not made --------------------------------------------------------------------------------

    def ref(self, module: str, name: str) -> GlobalRef:
        key = (module, name)
        found = self.refs.get(key)
        if found is None:
            if len(module) > 1000 or len(name) > 1000:
                raise OverLimit(f"a global name of {len(module) + len(name):,} characters")
            if len(self.refs) >= self.limits.global_names:
                raise OverLimit(f"more than {self.limits.global_names:,} different global names")
            self.spent += _GLOBAL_NBYTES + 4 * (len(module) + len(name))
            shown, called = imported_name(module, name, self.protocol)
            shown = _RENAMED.get(shown, shown)
            use = Use(shown, called, written=key if (shown, called) != key else None)
            found = GlobalRef(shown, called, use, self.meanings.get(f"{shown}.{called}"))
            self.refs[key] = found
            self.unplaced.append(use)
        found.use.count += 1
        return found

    def call(self, callee: object, args: object, how: str, kwargs: object = None) -> object:
        """What stands for callee(*args): a known meaning's record, or an inert Call."""
        result: object = NOT_UNDERSTOOD
        self.made += 1
        if type(callee) is GlobalRef:
            use = callee.use
            use.calls += 1
            if not use.arguments:
                use.arguments = text_of(args, 200)
            if use.name == "getattr" and takes_static_method(use.module, args):
                use.followed += 1
            if callee.meaning is not None and type(args) is tuple and kwargs is None and self.affordable(args):
                result = callee.meaning(args)
        if isinstance(result, NotUnderstood):
            if type(args) is tuple and args:
                self._watch_arguments(callee, args)
            result = Call(callee, args, how, kwargs, why=result.why)
            self.spent += CALL_NBYTES
        else:
            self.spent += MAPPING_NBYTES if type(result) is Mapping else _TENSOR_NBYTES
            if type(result) is bytes and may_hide_pickle(result[:LONG]):
                self.watch(result)
        if type(callee) is GlobalRef and callee.use.calls == 1:
            callee.use.holder = result
        if self.unplaced:
            for use in self.unplaced:
                use.holder = result if use.holder is None else use.holder
            self.unplaced.clear()
        return result

    def _watch_arguments(self, callee: object, args: tuple[object, ...]) -> None:
        name = callee.full if type(callee) is GlobalRef else ""
        for arg in args[:4]:
            if isinstance(arg, bytes | str | BytesAt):
                self.watch(arg, name)

    def watch(self, constant: object, callee: str = "") -> None:
        """Note a constant that may be a pickle itself; `nested_pickles` looks into it. callee: what it is handed to."""
        if len(self.suspects) < _MOST_SUSPECTS:
            self.suspects.append((constant, callee))
        else:
            self.more_suspects += 1

    def watch_text(self, text: str) -> None:
        """Note a text that may spell a pickle."""
        if may_stand_for_bytes(text):
            self.watch(text)

    def affordable(self, args: tuple[object, ...]) -> bool:
        """Whether a meaning may copy these arguments.

        A real file hands every constant over once; a hostile one recalls a long one from the memo again and again, ten
        bytes a time. So all copies together may be about as long as the stream.
        """
        cost = 0
        for arg in args:
            if type(arg) in _FREE:
                continue
            if isinstance(arg, _TEXTS):
                cost += len(arg)
            elif isinstance(arg, _LISTS):
                cost += len(arg)
                if len(arg) > 8:
                    self.spend(PAIR_NBYTES * len(arg))
            elif type(arg) is Mapping:
                cost += len(arg.pairs)
                self.spend(PAIR_NBYTES * len(arg.pairs))
            elif type(arg) is Group:
                cost += len(arg.items)
                self.spend(SLOT_NBYTES * len(arg.items))
        if cost < 64:
            return True
        self.copied += cost
        return self.copied <= 2 * (self.stop - self.start) + 4096

    def mark(self) -> list[object]:
        """The items above the last MARK, which is taken off."""
        items = self.stack
        if not self.below:
            raise Broken(f"no MARK for the opcode at byte {self.position - 1:,}")
        self.stack = self.below.pop()
        self.slots_below -= len(self.stack)
        # The items stay in memory until they are where they belong, though no longer on the stack.
        self.spent -= MARK_NBYTES
        if len(items) > _LARGE_NBYTES // SLOT_NBYTES and self.nbytes + 2 * SLOT_NBYTES * len(items) > self.most_nbytes:
            raise OverLimit(f"what it makes takes more than {human_bytes(self.most_nbytes)} of memory")
        return items

    def add_items(self, target: object, items: list[object]) -> None:
        self.spend(SLOT_NBYTES * len(items))
        if type(target) is list:
            target.extend(items)
        elif isinstance(target, Group | Call):
            target.items.extend(items)
        else:
            self.odd_target(target)

    def add_pairs(self, target: object, flat: list[object]) -> None:
        if len(flat) % 2:
            raise Broken(f"an odd number of keys and values at byte {self.position:,}")
        self.spend(PAIR_NBYTES * (len(flat) // 2))
        if isinstance(target, Mapping | Call):
            target.pairs.extend(zip(flat[::2], flat[1::2], strict=True))
        else:
            self.odd_target(target)

    def odd_target(self, target: object) -> None:
        """A step that makes no sense for the object it acts on, or that changes what others will use."""
        self.oddities += 1
        if type(target) is GlobalRef:
            target.use.altered = True

    def long_constant(self, n: int) -> object:
        if n > LONG and self.pos + LONG > len(self.data) and self.position + LONG <= self.stop:
            self._more(LONG)
        head = self.data[self.pos : self.pos + min(n, LONG)]
        found = self.long_bytes(n, keep_below=self.keep_below)
        if may_hide_pickle(head):
            self.watch(found)
        self.spent += 120 + (len(found) if isinstance(found, bytes) else 0)
        return found


def registrar(table: dict[int, Handler]) -> Callable[[bytes], Callable[[Handler], Handler]]:
    """A decorator that puts a handler into the table under its opcode."""

    def op(code: bytes) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            table[code[0]] = handler
            return handler

        return register

    return op


def read_uint(m: Machine, n: int) -> int:
    """n bytes, little-endian."""
    return int.from_bytes(m.take(n), "little")


def read_text(raw: bytes) -> str:
    """UTF-8 as pickle writes it; what is no UTF-8 is shown escaped.

    So is half a surrogate pair, which pickle lets pass: no terminal, table or browser could be given such a text.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace")
