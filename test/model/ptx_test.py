#!/usr/bin/env python3
"""ptx_test.py [PTX]: a kernel's results reach a peer that was told of its end, under the PTX memory model.

First programs whose outcomes are known, from the PTX ISA and its paper: is the enumerator right? Then the end of a
kernel, cuda_kernels/signal.cuh, with the host that sees its flag and a peer that reads its outputs; and the same with
one mistake at a time, which must be found. With PTX, compiled kernels, what is modelled is what they have.
"""
import re
import sys
from ptx_model import Program, Thread

passed = failed = 0


def verdict(right, name, found):
    global passed, failed
    passed, failed = passed + right, failed + (not right)
    print(f'{"passed" if right else "FAILED"}  {name}: {found}')


def litmus(name, program, observe, allowed):
    """Whether some execution has what observe() looks for; or the set of all it returns."""
    outcomes = {observe(values, co) for values, co, races in program.executions()}
    found = outcomes if isinstance(allowed, set) else True in outcomes
    verdict(found == allowed, name, {True: 'allowed', False: 'forbidden'}.get(found, found)
            if isinstance(found, bool) else sorted(found))


def message(store, load, fence1=None, fence2=None, same_cta=False):
    a, b = Thread('a', 'gpu0', 0), Thread('b', 'gpu0', 0 if same_cta else 1)
    a.st('x', 1)
    if fence1:
        a.fence(fence1)
    a.st('f', 1, *store)
    b.ld('f', *load, must=lambda v: v == 1)
    if fence2:
        b.fence(fence2)
    data = b.ld('x')
    return Program([a, b]), lambda values, co: values[data.number][0] == 0


def buffering(kind, scope='gpu'):
    a, b = Thread('a', 'gpu0', 0), Thread('b', 'gpu0', 1)
    reads = []
    for thread, mine, other in ((a, 'x', 'y'), (b, 'y', 'x')):
        thread.st(mine, 1, 'gpu')
        thread.fence(scope, kind)
        reads.append(thread.ld(other, 'gpu'))
    return Program([a, b]), lambda values, co: all(values[r.number][0] == 0 for r in reads)


def independent_reads(kind):
    a, b, c, d = (Thread(name, 'gpu0', i) for i, name in enumerate('abcd'))
    a.st('x', 1, 'gpu')
    b.st('y', 1, 'gpu')
    reads = []
    for thread, first, second in ((c, 'x', 'y'), (d, 'y', 'x')):
        reads.append(thread.ld(first, 'gpu'))
        thread.fence('gpu', kind)
        reads.append(thread.ld(second, 'gpu'))
    return Program([a, b, c, d]), lambda values, co: [values[r.number][0] for r in reads] == [1, 0, 1, 0]


def increments(first, second):
    a, b = Thread('a', 'gpu0', 0), Thread('b', 'gpu0', 1)
    a.atom('x', lambda v: v + 1, first)
    b.atom('x', lambda v: v + 1, second)
    return Program([a, b]), lambda values, co: values[co['x'][-1]][1]


def load_buffering():
    a, b = Thread('a', 'gpu0', 0), Thread('b', 'gpu0', 1)
    first, second = a.ld('x', 'gpu'), b.ld('y', 'gpu')
    a.st('y', 1, 'gpu')
    b.st('x', 1, 'gpu')
    return Program([a, b]), lambda values, co: (values[first.number][0], values[second.number][0]) == (1, 1)


def coherent_reads():
    a, b = Thread('a', 'gpu0', 0), Thread('b', 'gpu0', 1)
    a.st('x', 1, 'gpu')
    first, second = b.ld('x', 'gpu'), b.ld('x', 'gpu')
    return Program([a, b]), lambda values, co: (values[first.number][0], values[second.number][0])


def two_scopes():
    a, b, c = Thread('a', 'gpu0', 0), Thread('b', 'gpu0', 1), Thread('c', 'gpu1', 0)
    a.st('x', 1)
    a.st('f', 1, 'gpu', 'rel')
    b.ld('f', 'gpu', 'acq', must=lambda v: v == 1)
    b.st('g', 1, 'sys', 'rel')
    c.ld('g', 'sys', 'acq', must=lambda v: v == 1)
    data = c.ld('x')
    return Program([a, b, c]), lambda values, co: values[data.number][0] == 0


def known():
    for name, parts, stale in (
            ('release.gpu, acquire.gpu', (('gpu', 'rel'), ('gpu', 'acq')), False),
            ('relaxed.gpu', (('gpu',), ('gpu',)), True),
            ('fence.acq_rel.gpu around relaxed', (('gpu',), ('gpu',), 'gpu', 'gpu'), False),
            ('release.cta, acquire.cta in two blocks', (('cta', 'rel'), ('cta', 'acq')), True),
            ('release.cta, acquire.cta in one block', (('cta', 'rel'), ('cta', 'acq'), None, None, True), False),
            ('fence.cta, flag.gpu in two blocks', (('gpu',), ('gpu',), 'cta', 'gpu'), True),
            ('weak flag', ((), ('gpu', 'acq'), 'gpu'), True)):
        litmus('a stale message: ' + name, *message(*parts), stale)
    litmus('buffered stores: fence.sc', *buffering('sc'), False)
    litmus('buffered stores: fence.acq_rel', *buffering('acq_rel'), True)
    litmus('buffered stores: fence.sc.cta in two blocks', *buffering('sc', 'cta'), True)
    litmus('increments of sys and sys', *increments('sys', 'sys'), {2})  # PTX ISA, atomicity, tests 1 and 2
    litmus('increments of cta and gpu', *increments('cta', 'gpu'), {1, 2})
    litmus('load buffering with dependencies', *load_buffering(), False)
    litmus('coherent reads', *coherent_reads(), {(0, 0), (0, 1), (1, 1)})
    litmus('independent reads, fence.acq_rel', *independent_reads('acq_rel'), True)
    litmus('independent reads, fence.sc', *independent_reads('sc'), False)
    litmus('a stale message over two scopes', *two_scopes(), False)


def signal(blocks=2, bar=True, fence1='sys', fence2='sys', kind='acq_rel', flag='sys', acquire='acq', arrive='gpu',
           page=True, reader='kernel'):
    """Rank A's kernel writes; its host sees the flag and says so in the control page; rank B's host sees that, and
    reads by a kernel, or by itself. A stale read is looked for.

    Each block has thread 0, which runs signal(), and thread 1, which writes an output. `blocks` - 1 is the last to
    arrive, the others are alike. `kind`: fence.acq_rel is the weakest that __threadfence_system() may be; nvcc makes
    membar.sys of it, which is fence.sc.sys."""
    threads, wrap = [], blocks - 1
    for block in range(blocks):
        last = block == wrap
        other, zero = Thread(f'{block}.1', 'gpuA', block), Thread(f'{block}.0', 'gpuA', block)
        threads += [other, zero]
        other.st(f'd{block}', 1)
        if bar:
            other.bar()
            zero.bar()
        if fence1:
            zero.fence(fence1, kind)
        if blocks > 1:
            zero.atom('arrived', lambda v: 0 if v == wrap else v + 1, arrive,
                      must=(lambda v: v == wrap) if last else (lambda v: v != wrap))
            if last and fence2:
                zero.fence(fence2, kind)
        if last:
            zero.st('flag', 1, flag)
    host_a, host_b, gpu = Thread('hostA'), Thread('hostB'), Thread('B', 'gpuB', 0)
    host_a.ld('flag', 'sys', acquire, must=lambda v: v == 1)
    host_a.st('page', 1, 'sys', 'rel' if page else '')
    host_b.ld('page', 'sys', 'acq', must=lambda v: v == 1)
    launch = [(host_b.api(), gpu.api())]
    reads = [(gpu if reader == 'kernel' else host_b).ld(f'd{block}') for block in range(blocks)]
    return Program(threads + [host_a, host_b, gpu], launch), \
        lambda values, co: any(values[r.number][0] != 1 for r in reads)


def kernels():
    for name, how in (('2 blocks', {}), ('2 blocks, fence.sc', {'kind': 'sc'}), ('1 block', {'blocks': 1}),
                      ('2 blocks, the peer reads from the host', {'reader': 'host'}),
                      # The last block's fence is the system's and fences are cumulative: the first need not be.
                      ('2 blocks, fence.gpu before the arrival', {'fence1': 'gpu'})):
        litmus('a stale read after signal(): ' + name, *signal(**how), False)
    for name, how in (('no barrier before thread 0 signals', {'bar': False}),
                      ('no fence before the arrival', {'fence1': None}),
                      ('fence.cta before the arrival', {'fence1': 'cta'}),
                      ('no fence after the last arrival', {'fence2': None}),
                      ('fence.cta after the last arrival', {'fence2': 'cta'}),
                      ('fence.gpu after the last arrival', {'fence2': 'gpu'}),
                      ('a flag that is not volatile', {'flag': None}),
                      ('a flag of GPU scope', {'flag': 'gpu'}),
                      ('an arrival of block scope', {'arrive': 'cta'}),
                      ('the host loads the flag relaxed', {'acquire': ''}),
                      ('the control page is stored relaxed', {'page': False}),
                      ('1 block, no fence', {'blocks': 1, 'fence1': None}),
                      ('1 block, fence.gpu', {'blocks': 1, 'fence1': 'gpu'})):
        litmus('mutant, ' + name, *signal(**how), True)


def compiled(path):
    """Each kernel ends with what signal() models, and has nothing else of the kind behind its barrier."""
    with open(path, encoding='ascii') as file:
        text = file.read()
    expected = ['bar.sync', 'membar.sys', 'atom.global.inc.u32', 'membar.sys', 'st.volatile.global.u32']
    for name, body in re.findall(r'\.entry (\w+)\((.*?)\n}', text, re.S):
        found = re.findall(r'\b((?:bar|barrier|membar|fence|atom|red|st\.volatile|ld\.volatile|st\.rel\w*)[.\w]*)', body)
        found = found[found.index('bar.sync'):] if 'bar.sync' in found else found
        verdict(found == expected, f'{name} ends as modelled', ', '.join(found))


known()
kernels()
if len(sys.argv) > 1:
    compiled(sys.argv[1])
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0 or passed == 0)
