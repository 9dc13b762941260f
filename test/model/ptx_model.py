"""Every execution of a small program that the PTX memory model allows.

PTX ISA 8.x, chapter "Memory Consistency Model", for sm_70 and later; Lustig, Sahasrabuddhe, Giroux: "A Formal Analysis
of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019. The relations have the names of that chapter.

An execution is a graph: the events of the threads (loads, stores, atomics, fences, barriers), which store each load
reads from, in which order the stores of a location become visible (coherence) and in which order the fences.sc are.
This enumerates all graphs and keeps those for which the axioms hold. The programs have some ten events, so it may.

One proxy (generic), no partial overlap. A thread's program is straight: a branch is written as what a load must return
(`must`), and executions in which it returns something else belong to no such program.
"""
from itertools import permutations, product


class Event:
    def __init__(self, thread, kind, location=None, value=None, scope=None, order='', must=None, update=None,
                 barrier=None):
        self.thread, self.kind, self.location, self.value = thread, kind, location, value
        self.scope, self.strong, self.order = scope, scope is not None, order
        self.must, self.update, self.barrier = must, update, barrier
        self.number = -1  # in its program

    # R, W, U: load, store, atomic update; F: fence; B: barrier; A: a point that CUDA or MPI orders with another one
    writes = property(lambda self: self.kind in 'WU')
    reads = property(lambda self: self.kind in 'RU')
    fences = property(lambda self: self.kind == 'F')


class Thread:
    """On a GPU, in a block (cta) of a grid on a device; or on the host (cta None)."""

    def __init__(self, name, device='host', cta=None):
        self.name, self.device, self.cta = name, device, cta
        self.events = []

    def _add(self, *args, **options):
        event = Event(self, *args, **options)
        self.events.append(event)
        return event

    def st(self, location, value, scope=None, order=''):  # weak without a scope
        return self._add('W', location, value, scope, order)

    def ld(self, location, scope=None, order='', must=None):
        return self._add('R', location, None, scope, order, must)

    def atom(self, location, update, scope, order='', must=None):
        return self._add('U', location, None, scope, order, must, update)

    def fence(self, scope, order='acq_rel'):
        return self._add('F', scope=scope, order=order)

    def bar(self, number=0):
        return self._add('B', barrier=number)

    def api(self):
        return self._add('A')


def closure(pairs, count):
    """Of a relation, as a row of bits for each event."""
    rows = [0] * count
    for a, b in pairs:
        rows[a] |= 1 << b
    for k in range(count):
        for i in range(count):
            if rows[i] >> k & 1:
                rows[i] |= rows[k]
    return rows


def is_cyclic(rows):
    return any(rows[i] >> i & 1 for i in range(len(rows)))


class Program:
    def __init__(self, threads, synchronizes=()):
        """synchronizes: pairs of api() events, of which the first happens before the second."""
        locations = sorted({e.location for t in threads for e in t.events if e.location})
        start = Thread('start')
        self.events = [Event(start, 'W', location, 0, 'sys') for location in locations]
        self.first_of = {location: i for i, location in enumerate(locations)}
        self.inits = len(self.events)
        for thread in threads:
            self.events += thread.events
        for number, event in enumerate(self.events):
            event.number = number
        self.start = start
        self.api = [(a.number, b.number) for a, b in synchronizes]
        self.po = {(a.number, b.number) for t in threads for i, a in enumerate(t.events) for b in t.events[i + 1:]}

    def includes(self, event, other):
        """Whether the event's scope includes the other one's thread."""
        if self.start in (event.thread, other.thread) or event.scope == 'sys':
            return True
        a, b = event.thread, other.thread
        if event.scope == 'gpu':
            return a.device == b.device != 'host'
        return event.scope == 'cta' and a.device == b.device and a.cta == b.cta is not None

    def morally_strong(self, a, b):
        if (a.number, b.number) in self.po or (b.number, a.number) in self.po:
            return True
        return a.strong and b.strong and self.includes(a, b) and self.includes(b, a)

    def releases(self):
        """(first event, store) of the release patterns."""
        for w in self.events[self.inits:]:
            if not (w.writes and w.strong):
                continue
            if 'rel' in w.order:
                yield w, w
            for f in w.thread.events:
                if (f.number, w.number) in self.po and \
                        (f.fences or (f.writes and 'rel' in f.order and f.location == w.location)):
                    yield f, w

    def acquires(self):
        """(load, last event) of the acquire patterns."""
        for r in self.events[self.inits:]:
            if not (r.reads and r.strong):
                continue
            if 'acq' in r.order:
                yield r, r
            for f in r.thread.events:
                if (r.number, f.number) in self.po and \
                        (f.fences or (f.reads and 'acq' in f.order and f.location == r.location)):
                    yield r, f

    def executions(self):
        """(value read by an event's number, coherence by location, data races) of each."""
        reads = [e for e in self.events if e.reads]
        stores = {l: [w for w in self.events if w.writes and w.location == l] for l in self.first_of}
        fences = [e for e in self.events if e.fences and e.order == 'sc']
        patterns = list(self.releases()), list(self.acquires())
        for choice in product(*([w for w in stores[r.location] if w is not r] for r in reads)):
            rf = dict(zip((r.number for r in reads), choice))
            values = self.values(rf)
            if values is None or any(r.must and not r.must(values[r.number][0]) for r in reads):
                continue
            for orders in product(*(permutations(stores[l][1:]) for l in self.first_of)):
                co = {l: [self.first_of[l]] + [w.number for w in order] for l, order in zip(self.first_of, orders)}
                for sc in permutations(fences):
                    observed = self.observation(rf)
                    sw = self.synchronizes(observed, patterns, sc)
                    races = self.races_if_consistent(rf, co, sc, sw, observed)
                    if races is not None:
                        yield values, co, races

    def values(self, rf):
        """(read, written) of each event; None where they are out of thin air."""
        values = {}

        def of(number, depth=0):
            event = self.events[number]
            if number not in values and depth <= len(self.events):
                if event.kind == 'W':
                    values[number] = (None, event.value)
                elif (source := of(rf[number].number, depth + 1)) is not None:
                    values[number] = (source[1], event.update(source[1]) if event.kind == 'U' else None)
            return values.get(number)

        if any((e.reads or e.writes) and of(e.number) is None for e in self.events):
            return None
        return values

    def observation(self, rf):
        """Stores before loads that read from them, through atomic updates too."""
        observed = {(w.number, r) for r, w in rf.items() if self.morally_strong(self.events[r], w)}
        for update in (e.number for e in self.events if e.kind == 'U'):
            before = [a for a, b in observed if b == update]
            after = [b for a, b in observed if a == update]
            observed |= set(product(before, after))
        return observed

    def synchronizes(self, observed, patterns, sc):
        sw = set(self.api)
        for first, w in patterns[0]:
            for r, last in patterns[1]:
                if (w.number, r.number) in observed and self.morally_strong(first, last):
                    sw.add((first.number, last.number))
        sw |= {(a.number, b.number) for i, a in enumerate(sc) for b in sc[i + 1:] if self.morally_strong(a, b)}
        barriers = [e for e in self.events if e.kind == 'B']
        sw |= {(a.number, b.number) for a in barriers for b in barriers if a is not b and a.barrier == b.barrier and
               (a.thread.device, a.thread.cta) == (b.thread.device, b.thread.cta)}
        return sw

    def base_causality(self, sw):
        """Synchronizes and program order, transitively; None if it has a cycle.

        The two sides of a barrier synchronize with each other, which orders what comes before the one and after the
        other. So a barrier is two points: its arrival, number, and its departure, count + number.
        """
        count = len(self.events)
        leave = [count + e.number if e.kind == 'B' else e.number for e in self.events]
        pairs = {(leave[a], b) for a, b in self.po} | {(a, leave[b]) for a, b in sw}
        pairs |= {(e.number, leave[e.number]) for e in self.events if e.kind == 'B'}
        pairs |= set(product(range(self.inits), range(self.inits, count)))
        rows = closure(pairs, 2 * count)
        return None if is_cyclic(rows) else [row & ((1 << count) - 1) for row in rows[:count]]

    def races_if_consistent(self, rf, co, sc, sw, observed):
        """The data races of an execution that the axioms allow; None for one that they do not."""
        base = self.base_causality(sw)
        if base is None:
            return None
        causality = list(base)
        for a, b in observed:
            causality[a] |= base[b]

        def before(a, b):
            return causality[a] >> b & 1

        position = {w: i for order in co.values() for i, w in enumerate(order)}
        # From-reads: a load before the stores that come after the one it reads from.
        fr = {(r, later) for r, w in rf.items() for later in co[w.location][position[w.number] + 1:] if later != r}
        axioms = (
            # Coherence.
            all(not before(b, a) for order in co.values() for i, a in enumerate(order) for b in order[i + 1:]),
            # Fence-SC.
            all(not (before(b.number, a.number) and self.morally_strong(a, b))
                for i, a in enumerate(sc) for b in sc[i + 1:]),
            # Atomicity: nothing that is morally strong comes between an update's load and store.
            all(self.is_atomic(r, w, co, position) for r, w in rf.items() if self.events[r].kind == 'U'),
            # Causality: no load reads from a store after it, or is before one that a later store has hidden.
            all(not before(r, w.number) for r, w in rf.items()) and all(not before(b, a) for a, b in fr),
            # Sequential consistency per location, among morally strong operations.
            not is_cyclic(closure(self.per_location(rf, co, fr), len(self.events))),
            # No thin air: every program order counts as a dependency here.
            not is_cyclic(closure(self.po | {(w.number, r) for r, w in rf.items()}, len(self.events))))
        if not all(axioms):
            return None
        events = self.events[self.inits:]
        return [(a, b) for i, a in enumerate(events) for b in events[i + 1:]
                if a.location and a.location == b.location and (a.writes or b.writes) and
                not before(a.number, b.number) and not before(b.number, a.number) and not self.morally_strong(a, b)]

    def is_atomic(self, update, source, co, position):
        first, last = position[source.number], position[update]
        between = co[source.location][first + 1:last]
        return first < last and not any(self.morally_strong(self.events[w], self.events[update]) for w in between)

    def per_location(self, rf, co, fr):
        pairs = {(a, b) for a, b in self.po
                 if self.events[a].location and self.events[a].location == self.events[b].location}
        communication = {(w.number, r) for r, w in rf.items()} | fr
        for order in co.values():
            communication |= {(a, b) for i, a in enumerate(order) for b in order[i + 1:]}
        return pairs | {(a, b) for a, b in communication if self.morally_strong(self.events[a], self.events[b])}
