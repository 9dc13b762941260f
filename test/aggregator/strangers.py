#!/usr/bin/env python3
"""Somebody without the key, who sends what he likes to an aggregator.

strangers.py record TO_PORT FILE                 passes one connection on, and keeps what its client sends
strangers.py send PORT SECONDS FILE              random bytes, and the recorded ones: whole, cut and changed
strangers.py idle PORT SECONDS COUNT             COUNT connections that say nothing; each comes again when it is closed
strangers.py much PORT SECONDS BYTES             offers BYTES on each of three connections, again and again

Each but record ends with a line of JSON that says what it did.
"""
import json
import random
import resource
import select
import socket
import sys
import threading
import time


def connect(port, timeout=2):
    return socket.create_connection(("127.0.0.1", port), timeout)


def record(to_port, path):
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening at", listener.getsockname()[1], flush=True)
    client, _ = listener.accept()
    server = connect(int(to_port))
    ends = {client: server, server: client}
    with open(path, "wb") as kept:
        while True:
            for end in select.select(list(ends), [], [])[0]:
                data = end.recv(65536)
                if end is client:
                    kept.write(data)
                    kept.flush()
                if not data:
                    return
                ends[end].sendall(data)


def changed(data):
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 50))):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def some_bytes(recorded):
    """What is sent in one connection, and its kind."""
    kind = random.choice(("random", "cut", "changed", "replayed", "tls"))
    first = recorded[: random.choice((400, 600, 2000, len(recorded)))]
    if kind == "random":
        return kind, random.randbytes(random.choice((1, 5, 24, 1000, 20000)))
    if kind == "tls":  # a record of TLS, with anything in it
        size = random.choice((1, 512, 16384))
        return kind, bytes((random.choice((20, 21, 22, 23)), 3, random.choice((1, 3)), size >> 8, size & 255)) \
            + random.randbytes(size)
    if kind == "cut":
        return kind, first[: random.randrange(1, len(first))]
    return kind, changed(first) if kind == "changed" else recorded


def send(port, seconds, path):
    with open(path, "rb") as kept:
        recorded = kept.read()
    random.seed(7)
    done = {}
    answers = 0
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        kind, data = some_bytes(recorded)
        try:
            with connect(int(port)) as knock:
                knock.settimeout(0.05)
                knock.sendall(data)
                if random.random() < 0.3:
                    answers += len(knock.recv(65536)) > 0
        except OSError:
            pass
        done[kind] = done.get(kind, 0) + 1
    print(json.dumps({"connections": sum(done.values()), "answers": answers, **done}))


def idle(port, seconds, count):
    count = int(count)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 100), hard), hard))
    end = time.monotonic() + float(seconds)
    poll = select.poll()
    open_ones, made, most = {}, 0, 0
    while time.monotonic() < end:
        while len(open_ones) < count and time.monotonic() < end:
            knock = socket.socket()
            knock.setblocking(False)
            knock.connect_ex(("127.0.0.1", int(port)))
            open_ones[knock.fileno()] = knock
            poll.register(knock, select.POLLRDHUP)
            made += 1
        most = max(most, len(open_ones))
        for fd, _ in poll.poll(100):
            poll.unregister(fd)
            open_ones.pop(fd).close()
    print(json.dumps({"connections": made, "most_at_once": most}))


def much(port, seconds, amount):
    data = b"\x16\x03\x01\x40\x00" + bytes(16384)  # records of a handshake that never ends
    end = time.monotonic() + float(seconds)
    taken, rounds = [0, 0, 0], [0, 0, 0]

    def offer(number):
        while time.monotonic() < end:
            rounds[number] += 1
            sent = 0
            try:
                with connect(int(port)) as knock:
                    while sent < int(amount) and time.monotonic() < end:
                        sent += knock.send(data)
            except OSError:
                pass
            taken[number] = max(taken[number], sent)

    threads = [threading.Thread(target=offer, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"connections": sum(rounds), "most_bytes_taken": max(taken)}))


if __name__ == "__main__":
    {"record": record, "send": send, "idle": idle, "much": much}[sys.argv[1]](*sys.argv[2:])
