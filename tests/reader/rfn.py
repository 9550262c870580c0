#!/usr/bin/env python3
"""A second reader of .rfn files, written from FORMAT.md alone. It shares nothing with the code that writes them but the
two tables that FORMAT.md names as part of the format, crates/model/calls.txt and constants.txt.

    rfn.py dump FILE               every call as a JSON object a line, as `refrain dump --json` prints them
    rfn.py check [FILE CALLS]...   compares these with the lines of CALLS, and the calls with the file's digests; where CALLS
                                   is a .rfn too, compares the sections of both; last says which forms were met
    rfn.py vectors FORMAT.md       the test vectors that the document lists

Meant to be read beside the document: plain, not fast."""

import functools
import itertools
import json
import math
import operator
import os
import pickle
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "..", "..", "crates", "model")
PRIME = os.path.join(HERE, "..", "..", "crates", "tracefile", "src", "prime-3.bin")
M64 = (1 << 64) - 1
M32 = (1 << 32) - 1


class Bad(Exception):
    """The file is not what FORMAT.md describes."""


FORMS = set()  # what the format has and these files had


def need(what, why):
    if not what:
        raise Bad(why)


# --- conventions -------------------------------------------------------------------------------------------------------


def signed(x):
    x &= M64
    return x - (1 << 64) if x >> 63 else x


def unzigzag(x):
    return x >> 1 if x & 1 == 0 else -(x >> 1) - 1


def rotl(x, by):
    return (x << by | x >> (64 - by)) & M64


def pair(a, b):
    return ((((a * 0x9E3779B1) & M32 ^ b) * 0x85EBCA6B) & M32) ^ (a >> 7)


def xxh64(data, seed=0):
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def turn(lane, word):
        return rotl((lane + word * p2) & M64, 31) * p1 & M64

    at, length = 0, len(data)
    if length >= 32:
        lanes = [(seed + p1 + p2) & M64, (seed + p2) & M64, seed, (seed - p1) & M64]
        while at + 32 <= length:
            for i in range(4):
                lanes[i] = turn(lanes[i], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        h = sum(rotl(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & M64
        for lane in lanes:
            h = ((h ^ turn(0, lane)) * p1 + p4) & M64
    else:
        h = (seed + p5) & M64
    h = (h + length) & M64
    while at + 8 <= length:
        h = (rotl(h ^ turn(0, int.from_bytes(data[at : at + 8], "little")), 27) * p1 + p4) & M64
        at += 8
    if at + 4 <= length:
        h = (rotl(h ^ (int.from_bytes(data[at : at + 4], "little") * p1 & M64), 23) * p2 + p3) & M64
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ (byte * p5 & M64), 11) * p1 & M64
    h = (h ^ h >> 33) * p2 & M64
    h = (h ^ h >> 29) * p3 & M64
    return h ^ h >> 32


def mix(state, value):
    total = ((state ^ state >> 29) + (value & M64) * 0xD6E8FEB86659FD93 + 1) & M64
    product = total * 0x9E3779B97F4A7C15
    return (product & M64) ^ (product >> 64)


def digest_symbol(digest, symbol):
    return mix(digest, symbol)


def digest_value(digest, value):
    return mix(rotl(digest, 17), value)


DIGEST = 0x5245465241494E21


def blend(member, digest):
    x = digest ^ ((member + 1) * 0x9E3779B97F4A7C15 & M64)
    for _ in range(2):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & M64
    return x ^ x >> 32


def module_key(path, build_id):
    return max(xxh64(build_id, 1) if build_id else xxh64(path.encode(), 2), 1)


def stack_site(outer, module, offset):
    return max(xxh64(b"".join(n.to_bytes(8, "little") for n in (outer, module, offset))), 1)


def group_name(local, remote):
    FORMS.add("members")
    first, second = sorted((local, remote))
    words = [len(first)] + first + second
    return xxh64(b"".join((n & M32).to_bytes(4, "little") for n in words))


# --- tokens ------------------------------------------------------------------------------------------------------------

FIELDS = {
    name: number
    for number, name in enumerate(
        "Bits Count Text Magnitude SymbolLength SymbolByte SymbolLanes Item ItemCount Thread RankParts RankStart RankDims "
        "RankCount RankStride CohortStructure Lane LaneStream Shape ShapeCount Value Step StrideCount Tallies TallyMinimum "
        "TallySpread TallyTotal Variants NumberPlace MapShape MapValue MapStep ProfileRow Level LevelRun "
        "PathBefore PathLevel PathCount PathTotal MapView".split()
    )
}
FIELDS.update(SiteUp=40, SiteModule=41, SiteOffset=42, SymbolSite=43, Classes=44, ClassBits=45, ClassValue=46, ClassCount=47, Pooled=48, SiteKnown=49, Neighbours=55, RankKind=56)
BYTES = {FIELDS["Text"], FIELDS["SymbolByte"]}


def varint(data, at):
    value = shift = 0
    while True:
        need(at < len(data), "it ends early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            need(value <= M64, "a number of more than 64 bits")
            return value, at
        shift += 7


class Curve:
    """A Morton curve: bit i of a rank is bit i / axes of coordinate i mod axes; what is seen are the coordinates side by side."""

    def __init__(self, axes, bits):
        self.lengths = [(bits + axes - 1 - axis) // axes for axis in range(axes)]
        self.starts = [sum(self.lengths[:axis]) for axis in range(axes)]
        self.places = [self.starts[i % axes] + i // axes for i in range(bits)]

    def seen(self, rank):
        return sum((rank >> i & 1) << place for i, place in enumerate(self.places))

    def rank(self, seen):
        return sum((seen >> place & 1) << i for i, place in enumerate(self.places))

    def moved(self, seen, way):
        return sum(((seen >> s) + (way >> s) & (1 << n) - 1) << s for s, n in zip(self.starts, self.lengths))


class Tokens:
    """`get(field, a, b)` is the next token, whichever way it is stored."""

    def number(self, field, a=0, b=0):
        return self.token(FIELDS[field], a, b)

    def zigzag(self, field, a=0, b=0):
        return unzigzag(self.number(field, a, b))

    def measure(self, field, a=0):
        bits = self.number(field, a)
        need(bits <= 64, "a number of more than 64 bits")
        return bits if bits < 2 else 1 << (bits - 1) | self.number("Bits", bits - 1)

    def text(self, a):
        out = bytearray()
        while True:
            byte = self.number("Text", a)
            if byte == 0:
                return out.decode()
            out.append(self.number("Text", a) if byte == 1 else byte)


class Plain(Tokens):
    def __init__(self, data):
        self.data, self.at = data, 0

    def token(self, field, a, b):
        if field in BYTES:
            need(self.at < len(self.data), "it ends early")
            self.at += 1
            return self.data[self.at - 1]
        value, self.at = varint(self.data, self.at)
        return value

    def end(self):
        need(self.at == len(self.data), "it goes on after its end")


# --- the coder ---------------------------------------------------------------------------------------------------------


def hash2(a, b):
    x = (a ^ b * 0x9E3779B97F4A7C15 & M64) * 0xD6E8FEB86659FD93 & M64
    return x ^ x >> 32


LOGISTIC = [int(n) for n in """22 36 60 98 162 267 439 720 1179 1921 3108 4971 7812 11955 17625 24743 32768 40793 47911 53581
57724 60565 62428 63615 64357 64816 65097 65269 65374 65438 65476 65500 65514""".split()]


def squash(x):
    y = min(max(x, -2047), 2047) + 2048
    i, f = y >> 7, y & 127
    return (LOGISTIC[i] * (128 - f) + LOGISTIC[i + 1] * f + 64) >> 7


SQUASH = [squash(x) for x in range(-2047, 2048)]


def stretches():
    out, x = [], -2047
    for q in range(4096):
        while x < 2047 and SQUASH[x + 2047] < 16 * q + 8:
            x += 1
        out.append(x)
    return out


STRETCH = stretches()
RATES = [65536 // (2 * n + 3) for n in range(61)]


class Packed(Tokens):
    def __init__(self, shift):
        self.shift = shift
        self.buckets = {}
        self.by_field = [[1250] * 12 for _ in range(max(FIELDS.values()) + 1)]
        self.by_known = [[1250] * 12 for _ in range(12)]
        self.last = [[0, 0, 0] for _ in range(max(FIELDS.values()) + 1)]
        self.any = [0, 0]
        self.prime()

    def begin(self, data):
        self.data, self.at = data, 0
        self.low, self.high, self.code = 0, M32, 0
        for _ in range(4):
            self.code = self.code << 8 | self.byte()

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def prime(self):
        with open(PRIME, "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            field, at = data[at], at + 1
            a, at = varint(data, at)
            b, at = varint(data, at)
            value, at = varint(data, at)
            self.one(field, a, b, value)

    def decide(self, p, bit):
        """Codes one decision; `bit` is None where it is read."""
        if bit is not None:
            return bit
        mid = self.low + ((self.high - self.low) * p >> 16)
        bit = 1 if self.code <= mid else 0
        if bit:
            self.high = mid
        else:
            self.low = mid + 1
        while (self.low ^ self.high) >> 24 == 0:
            self.low = self.low << 8 & M32
            self.high = (self.high << 8 | 0xFF) & M32
            self.code = (self.code << 8 | self.byte()) & M32
        return bit

    def token(self, field, a, b):
        return self.one(field, a, b, None)

    def one(self, field, a, b, value):
        if field == 0:
            if value is not None:
                return value
            out = 0
            for _ in range(a):
                out = out << 1 | self.decide(32768, None)
            return out
        h1, h2, h3 = self.last[field]
        g1, g2 = self.any
        c0 = hash2(0, field)
        c1 = hash2(hash2(c0, 1), h1)
        c2 = hash2(hash2(c1, 2), h2)
        c4 = hash2(hash2(c0, 4), g1)
        c6 = hash2(hash2(c0, 6), a)
        contexts = [c0, c1, c2, hash2(hash2(c2, 3), h3), c4, hash2(hash2(c4, 5), g2), c6, hash2(hash2(c6, 7), h1)]
        self.contexts = contexts + [hash2(hash2(c6, 8), g1), hash2(hash2(c0, 9), b), hash2(hash2(c6, 10), b)]
        self.field = field
        known = value is not None
        if field in BYTES:
            out = self.tree(0, 8, value)
        else:
            bits = value.bit_length() if known else 0
            length = self.tree(0, 3, min(bits, 7) if known else None)
            if length == 7:
                length += self.tree(256, 6, bits - 7 if known else None)
            length = min(length, 64)
            out = min(length, 1)
            left, before = length - 1, 0
            while left > 0:
                size = min(left, 8)
                left -= size
                node = length << 40 | left << 32 | before << 16 | 1 << 15
                before = self.tree(node, size, value >> left & ((1 << size) - 1) if known else None)
                out = out << size | before
        self.last[field] = [out, h1, h2]
        self.any = [hash2(field + 1, out), g1]
        return out

    def tree(self, node, size, value):
        left, prefix = size, 1
        while left > 0:
            end = max(left - 3, 0)
            run = []
            node_part = (node ^ prefix) * 0x9E3779B97F4A7C15 & M64
            for context in self.contexts:
                x = (context ^ node_part) * 0xD6E8FEB86659FD93 & M64  # hash2, written out
                q = (x ^ x >> 32) * 0xA24BAED4963EE407 & M64
                place, check = q >> self.shift, q & M32
                bucket = self.buckets.get(place)
                # One that was never used has the check 0 and slots as new as these.
                if bucket is None or bucket[0] != check:
                    if bucket is None:
                        bucket = self.buckets[place] = [0, None]
                    bucket[0], bucket[1] = check, [[32768, 0] for _ in range(7)]
                run.append(bucket)
            path = 1
            while left > end:
                left -= 1
                bit = self.model(run, path, None if value is None else value >> left & 1)
                path = path << 1 | bit
                prefix = prefix << 1 | bit
        return prefix ^ 1 << size

    def model(self, run, path, bit):
        slots = [bucket[1][path - 1] for bucket in run]
        inputs = [STRETCH[slot[0] >> 4] for slot in slots] + [256]
        known = sum(1 for slot in slots if slot[1] > 0)
        mixers = (self.by_field[self.field], self.by_known[known])
        mixed = []
        for weights in mixers:
            m = sum(map(operator.mul, weights, inputs)) >> 13
            mixed.append(min(max(m, -2047), 2047))
        p = min(max(squash(mixed[0] + mixed[1] >> 1), 16), 65520)
        bit = self.decide(p, bit)
        target = 65535 if bit else 0
        for weights, m in zip(mixers, mixed):
            off = (target - SQUASH[m + 2047]) * 3
            e = off // 8 if off >= 0 else -(-off // 8)
            weights[:] = [w + (((4 * x * e >> 16) + 1) >> 1) for w, x in zip(weights, inputs)]
            if max(weights) > 32767 or min(weights) < -32768:
                weights[:] = [min(max(w, -32768), 32767) for w in weights]
        for slot in slots:
            n = slot[1]
            slot[0] += (target - slot[0]) * RATES[n] >> 15
            if n < 60:
                slot[1] = n + 1
        return bit


@functools.lru_cache
def primed(shift):
    """A coder as each file finds it. Priming takes longer than reading a small file, so it is done once."""
    return pickle.dumps(Packed(shift))


def coder_of(data, length):
    coder = pickle.loads(primed(64 - min(max(max(length, 1).bit_length() - 1 + 3, 14), 20)))
    coder.begin(data)
    return coder


# --- container ---------------------------------------------------------------------------------------------------------

KINDS = {1: "meta", 2: "symbols", 3: "structure", 4: "ranks", 5: "streams", 6: "tallies", 7: "blocks", 10: "sites"}
# 14 `sides`, 16 `chunked` and 17 `references` have no calls, and are optional: they are passed over like sections of unknown kinds.
VERSION = 3


class File:
    def __init__(self, data):
        need(data[:4] == b"\x93RFN", "not a Refrain file")
        need(len(data) > 6, "the file ends early")
        need(data[4] == VERSION, f"format version {data[4]}; this reads version {VERSION}")
        self.flags, count = data[5], data[6]
        need(self.flags < 8, "unknown flags")
        length, at = varint(data, 7)
        entries = []
        for _ in range(count):
            head, at = data[at], at + 1
            version = 1
            if head & 0x80:
                version, at = data[at], at + 1
            size, at = varint(data, at)
            crc = None
            # The pieces of the packed stream have one checksum together, which the first of them has.
            if not head & 0x20 or not any(entry[0] & 0x20 for entry in entries):
                crc, at = int.from_bytes(data[at : at + 4], "little"), at + 4
            entries.append((head, version, size, crc))
        need(zlib.crc32(data[:at]) == int.from_bytes(data[at : at + 4], "little"), "the header is damaged")
        at += 4
        pieces, order = {}, []
        packed, paths = b"", None
        for head, version, size, crc in entries:
            body, at = data[at : at + size], at + size
            need(len(body) == size and (head & 0x20 or zlib.crc32(body) == crc), "a section is damaged")
            kind = KINDS.get(head & 0x1F) if version == 1 else None
            if kind is None:
                need(head & 0x40 and not head & 0x20, f"section of unknown kind {head & 0x1F}, version {version}")
                FORMS.update(["side lanes"] if head & 0x1F == 14 else ["chunks"] if head & 0x1F == 16 else [])
                paths = body if head & 0x1F == 11 else paths
                continue
            order.append(kind)
            pieces[kind] = None if head & 0x20 else body
            packed += body if head & 0x20 else b""
        need(at == len(data), "bytes after the last section")
        crcs = [crc for head, _, _, crc in entries if head & 0x20 and crc is not None]
        need(crcs in ([], [zlib.crc32(packed)]), "the packed sections are damaged")
        optional = [kind for kind in ("sites", "blocks") if kind in pieces]
        wanted = ["meta", "symbols", "structure", "ranks", "streams"] + [k for k in optional if k == "sites"]
        need(order == wanted + ["tallies"] + [k for k in optional if k == "blocks"], "sections are missing or out of order")
        need(length <= 256 * len(packed) + (1 << 20), "more is announced than there can be")
        stream = coder_of(packed, length) if packed else None
        self.blocks = pieces.get("blocks")
        self.block_at = 0
        self.sites = {}
        for kind in order:
            if kind == "blocks":
                continue
            tokens = stream if pieces[kind] is None else Plain(pieces[kind])
            getattr(self, "read_" + kind)(tokens)
            if pieces[kind] is not None:
                tokens.end()
        need(self.blocks is None or self.block_at == len(self.blocks), "there are more blocks than streams have")
        self.paths = None if paths is None else self.read_paths(paths)

    # Ranks

    def parts(self, t, near):
        out = []
        count = t.number("RankParts")
        for _ in range(count):
            start = near + t.zigzag("RankStart", min(count, 9))
            near = start
            dims = t.number("RankDims")
            out.append((start, [(t.number("RankCount", dims), t.number("RankStride", dims)) for _ in range(dims)]))
        return out

    def ranks(self, t, near):
        """The ranks, lowest first, and the parts as told (the box, where some are missing from it)."""
        told = self.parts(t, near)
        if told:
            return sorted(r for part in told for r, _ in points(part)), told
        told = self.parts(t, near)
        if not told:
            return [], told
        FORMS.add("all but")
        missing = {r for part in self.parts(t, told[0][0]) for r, _ in points(part)}
        return sorted(r for part in told for r, _ in points(part) if r not in missing), told

    # Sections

    def read_meta(self, t):
        meta = {"version": t.text(1)}
        meta["command"] = [t.text(2) for _ in range(t.number("Count", 10))]
        meta["library"], meta["abi"] = t.text(3), t.text(4)
        meta["ranks"] = t.number("Count", 11)
        meta["hosts"] = [(t.text(5), self.ranks(t, 0)[0]) for _ in range(t.number("Count", 12))]
        meta["started"], meta["wall"] = t.measure("Magnitude", 1), t.measure("Magnitude", 2)
        meta["options"] = [(t.text(6), t.text(7)) for _ in range(t.number("Count", 13))]
        meta["notes"] = [t.text(8) for _ in range(t.number("Count", 14))]
        follows = t.number("Count", 15)
        need(follows in range(0, 64, 2), "it goes on with something unknown")
        if follows & 2:
            meta["memory"] = [t.measure("Magnitude", hint) for hint in (5, 6, 6, 6)]
        if follows & 4:
            meta["clocks"] = [self.read_clock(t) for _ in range(t.number("Count", 16))]
        if follows & 8:
            meta["flight"] = self.read_flight(t)
        if follows & 16:
            meta["merge"] = t.measure("Magnitude", 15)
        if follows & 32:
            meta["cores"] = [
                (self.ranks(t, 0)[0], t.number("Count", 37), t.number("Count", 38), t.measure("Magnitude", 17))
                for _ in range(t.number("Count", 36))
            ]
        self.meta = meta

    def read_flight(self, t):
        modules = []
        for _ in range(t.number("Count", 18)):
            path = t.text(9)
            modules.append((path, bytes(t.number("Bits", 8) for _ in range(t.number("Count", 19)))))
        place = lambda: (modules[t.number("Count", 29)], t.measure("Magnitude", 13))
        threads = []
        for _ in range(t.number("Count", 20)):
            one = {"rank": t.number("Count", 21), "thread": t.number("Count", 22)}
            known = t.number("Count", 23)
            need(known < 128, "something unknown of a call in flight")
            one["inside"] = bool(known & 1)
            one["function"] = t.number("Count", 24) if known & 64 else None
            one["args"] = []
            for _ in range(t.number("Count", 25)):
                form = t.number("Count", 26)
                need(form < 4, "an unknown form")
                one["args"].append((form, t.measure("Magnitude", 12) if form else None))
            one["waits_for"] = t.number("Count", 28)
            one["requests"] = [(t.number("Count", 22), t.number("Count", 27)) for _ in range(t.number("Count", 27))]
            one["ns"] = t.measure("Magnitude", 14) if known & 2 else None
            one["place"] = place() if known & 4 else None
            one["error"] = (t.number("Count", 30), t.text(10)) if known & 8 else None
            one["fault"] = t.number("Count", 31) if known & 16 else None
            one["fault_place"] = place() if known & 32 else None
            threads.append(one)
        return threads

    def read_clock(self, t):
        clock = {"ranks": self.ranks(t, 0)[0], "flags": t.number("Count", 17)}
        clock["wander"], clock["residual"] = t.measure("Magnitude", 7), t.measure("Magnitude", 8)
        at = offset = 0
        clock["points"] = []
        for _ in range(2 if clock["flags"] & 4 else 1):
            at += t.measure("Magnitude", 9)
            change = t.measure("Magnitude", 10)
            offset += change >> 1 ^ -(change & 1)
            clock["points"].append((at & M64, at + offset & M64, t.measure("Magnitude", 11)))
        return clock

    def read_symbols(self, t):
        self.symbols = []
        for _ in range(t.number("Count", 2)):
            data = bytearray()
            for i in range(t.number("SymbolLength")):
                place = min(i, 65535)
                data.append(t.number("SymbolByte", pair(place, data[0] if data else 0), place))
            lanes = t.number("SymbolLanes", head_of(data))
            self.symbols.append((bytes(data), lanes))

    def read_structure(self, t):
        self.structures = []
        count = t.number("Count", 3)
        if count:
            self.structures = [("rules", r) for r in self.read_rules(t, count)]
            return
        largest = 0
        for _ in range(t.number("Count", 9)):
            if t.number("Item", 4) == 0:
                self.structures.append(("rules", None))
                continue
            nodes, largest = self.read_loops(t, largest)
            self.structures.append(("loops", nodes))
        awaited = [i for i, s in enumerate(self.structures) if s[1] is None]
        if awaited:
            need(t.number("Count", 3) == len(awaited), "not as many grammars as announced")
            for i, rules in zip(awaited, self.read_rules(t, len(awaited))):
                self.structures[i] = ("rules", rules)

    def read_rules(self, t, count):
        FORMS.add("rules")
        rules, starts, largest = [], [], 0
        for _ in range(count):
            start = []
            open_rules = [(start, 2)]
            while open_rules:
                items, hint = open_rules[-1]
                step = t.number("Item", hint + (not items))
                if step == 0:
                    open_rules.pop()
                    continue
                times = t.number("ItemCount", min(step, M32)) + 1
                if step == 2:
                    rules.append([])
                    items.append((rules[-1], times))
                    open_rules.append((rules[-1], 0))
                elif step > 3 and step % 2 == 0:
                    FORMS.add("shared rules")
                    items.append((rules[(step - 4) // 2], times))
                else:
                    symbol = largest if step == 1 else (step - 3) // 2
                    largest = max(largest, symbol + 1)
                    items.append((symbol, times))
            starts.append(start)
        return starts

    def read_loops(self, t, largest):
        """Nodes in preorder: (symbol or None for a loop, the node after all that is inside)."""
        FORMS.add("loops")
        nodes, open_bodies, first = [], [None], True
        while open_bodies:
            step = t.number("Item", 8 + 2 * min(len(open_bodies), 4) + first)
            first = step == 2
            if step == 0:
                loop = open_bodies.pop()
                if loop is not None:
                    nodes[loop] = (None, len(nodes))
            elif step == 2:
                open_bodies.append(len(nodes))
                nodes.append(None)
            else:
                symbol = largest if step == 1 else step - 3
                largest = max(largest, symbol + 1)
                nodes.append((symbol, len(nodes) + 1))
        return nodes, largest

    def symbols_of(self, structure):
        """In the order in which they first appear in the expansion (in the tree, of loops)."""
        kind, content = structure
        order, seen = [], set()
        if kind == "loops":
            walk = (symbol for symbol, _ in content if symbol is not None)
        else:
            walk = each_terminal(content)
        for symbol in walk:
            if symbol not in seen:
                seen.add(symbol)
                order.append(symbol)
        return order

    def places(self, structure):
        kind, content = structure
        if kind == "loops":
            for symbol, _ in content:
                yield M32, M32, 1 if symbol is None else 0, 2
        for symbol in self.symbols_of(structure):
            data, lanes = self.symbols[symbol]
            for lane in range(lanes):
                yield symbol, head_of(data), lane, lanes

    def read_ranks(self, t):
        self.cohorts = []
        first = structures = 0
        past = {"streams": 0, "last": {}, "alike": {}, "shapes": [], "maps": []}
        self.members = {}  # the cohort of each, and what it is called there
        self.tables = []  # lanes that are told as neighbours: cohort, lane, the rows of its ranks
        count = t.number("Count", 4)
        self.kinds = None
        if count == 0:
            row = t.number("Count", 32)
            self.kinds = self.read_kinds(t, row - 1) if row else None
            count = t.number("Count", 4) if row else 0
        for _ in range(count):
            thread = t.number("Thread")
            FORMS.update(["threads"] if thread else [])
            ranks, told = self.ranks(t, first)
            if not ranks:
                FORMS.add("ranks along a curve")
                axes, bits = t.number("Neighbours", 1), t.number("Neighbours", 2)
                seen, told = self.ranks(t, 0)
                need(seen and 1 <= axes <= 3 and axes <= bits <= 24 and seen[-1] < 1 << bits, "ranks that are on no curve")
                ranks = sorted(Curve(axes, bits).rank(place) for place in seen)
            first = ranks[0] if ranks else 0
            past["shapes"].append(told)
            structure = structures - t.zigzag("CohortStructure")
            structures = max(structures, structure + 1)
            kind, content = self.structures[structure]
            may_lack = kind == "loops" and len(content) > 0
            lanes = []
            for place in self.places(self.structures[structure]):
                stream = self.choose(t, place, past)
                if stream == "neighbours":
                    need(thread == 0 and self.kinds is None, "neighbours of threads")
                    lanes.append((place, []))
                elif stream is None:
                    lanes.append(self.variants(t, place, past, ranks, first, may_lack))
                else:
                    lanes.append((place, [(None, stream, [])]))
            self.read_neighbours(t, ranks, lanes, past)
            digest = t.number("Bits", 64)
            for rank in ranks:
                member = thread * self.meta["ranks"] + rank
                need(member not in self.members and member < 1 << 32, "a member of two cohorts, or of none")
                FORMS.update(["threads of one cohort"] if rank >= self.meta["ranks"] else [])
                self.members[member] = len(self.cohorts), rank
            base = thread * self.meta["ranks"]
            self.cohorts.append({"ranks": ranks, "base": base, "structure": structure, "lanes": lanes, "digest": digest})

    def choose(self, t, place, past):
        symbol, head, lane, lanes = place
        met = (symbol, lane) in past["last"]
        expected = past["last"].get((symbol, lane), past["alike"].get((head, lane)))
        e = 0 if expected is None else (expected + 1) & M32
        if met:
            here = pair(pair(symbol, lane), 1)
            h, k = (here, 1), (here, e)
        else:
            h, k = (pair(pair(head, lane), 2), 2 + lanes - lane), (pair(lanes - lane, 3), e)
        how = t.number("Lane", *h)
        if how == 3:
            return None
        if how == 4:
            return "neighbours"
        need(how in (1, 2) or how == 0 and expected is not None, "a lane like one that is not there")
        stream = expected if how == 0 else past["streams"] if how == 1 else t.number("LaneStream", *k)
        past["streams"] = max(past["streams"], stream + 1)
        past["last"][symbol, lane] = past["alike"][head, lane] = stream
        return stream

    def read_kinds(self, t, row):
        """The rank that each number stands for, where ranks that are alike in everything have numbers side by side."""
        FORMS.add("kinds of ranks")
        ranks, kinds, following = self.ranks(t, 0)[0], [], 0
        for at in range(len(ranks)):
            def back(by):
                return kinds[at - by] + 1 if at >= by else 0

            hint = (back(1), back(2)) if row < 2 else (pair(back(1), back(row)), back(row - 1))
            kinds.append(t.number("RankKind", *hint))
            need(kinds[-1] <= following, "a kind of ranks before the one before it")
            following = max(following, kinds[-1] + 1)
        order = sorted(range(len(ranks)), key=lambda at: kinds[at])
        return {number: ranks[at] for number, at in zip(ranks, order)}

    def restore_kinds(self):
        """Gives ranks their own numbers again."""
        own = self.kinds
        if own is None:
            return
        self.members = {own[member]: (cohort, own[rank]) for member, (cohort, rank) in self.members.items()}
        for cohort in self.cohorts:
            need(cohort["base"] == 0, "a rank of no kind")
            cohort["ranks"] = sorted(own[rank] for rank in cohort["ranks"])
            for _, variants in cohort["lanes"]:
                variants[:] = [
                    (
                        None if ranks is None else {own[rank] for rank in ranks},
                        stream,
                        [(at, {own[rank]: value for rank, value in function.items() if rank in own}) for at, function in numbers],
                    )
                    for ranks, stream, numbers in variants
                ]

    def read_neighbours(self, t, ranks, lanes, past):
        """The lanes of a cohort that are told as neighbours along a curve."""
        mine = [at for at, (_, variants) in enumerate(lanes) if not variants]
        how = [t.number("Neighbours", 0) for _ in mine]
        tables, rows = [], [None] * len(mine)

        def functions(at, width, seen):
            _, head, lane, _ = lanes[mine[at]][0]
            maps = [self.function(t, pair(pair(head, lane), 5), number, 0, past) for number in range(width)]
            return [[function[place] for function in maps] for place in seen]

        for at in (at for at, h in enumerate(how) if h == 0):
            FORMS.add("neighbours along a curve")
            axes, bits, width, tail, is_sorted = (t.number("Neighbours", k) for k in range(1, 6))
            need(1 <= axes <= 3 and axes <= bits <= 24 and ranks[-1] < 1 << bits, "neighbours that are on no curve")
            need(1 <= tail <= width <= 64, "neighbours that are on no curve")
            curve = Curve(axes, bits)
            seen = [curve.seen(rank) for rank in ranks]
            own, orders = [], []
            for rank, place, ways in zip(ranks, seen, functions(at, width, seen)):
                need(all(0 <= way < 1 << bits for way in ways), "a way that leads to no rank")
                row = [curve.rank(curve.moved(place, way)) - rank for way in ways]
                orders.append(sorted(range(width), key=lambda number: row[number]) if is_sorted else range(width))
                own.append([row[number] for number in orders[-1]])
            tables.append((seen, orders, width, tail))
            rows[at] = own, tail
        for at, h in enumerate(how):
            if h and h % 2 == 0:
                need(h // 2 <= len(tables), "neighbours like some that are not there")
                seen, orders, width, tail = tables[h // 2 - 1]
                told = functions(at, width, seen)
                rows[at] = [[numbers[number] for number in order] for numbers, order in zip(told, orders)], tail
        for at, h in enumerate(how):
            if h % 2:
                need(h // 2 < at and rows[h // 2] is not None, "neighbours like some that are not there")
                rows[at] = rows[h // 2]
        self.tables += [(len(self.cohorts), at, *own) for at, own in zip(mine, rows)]

    def fill_neighbours(self):
        """Streams for the rows of neighbours, behind all others."""
        known = {}
        for cohort, at, rows, tail in self.tables:
            variants = {}
            for rank, row in zip(self.cohorts[cohort]["ranks"], rows):
                key = tuple(row), tail
                if key not in known:
                    known[key] = len(self.streams)
                    self.rows.add(len(self.streams))
                    self.streams.append(row_of(row, tail))
                variants.setdefault(known[key], set()).add(rank)
            self.cohorts[cohort]["lanes"][at][1].extend((ranks, stream, []) for stream, ranks in variants.items())

    def variants(self, t, place, past, ranks, near, may_lack):
        _, head, lane, _ = place
        v = pair(pair(head, lane), 4)
        count = t.number("Variants", v, 0) + 1
        lacking = t.number("Variants", v, 4) if may_lack else 0
        groups = count + (lacking > 0)
        FORMS.update((["variants"] if count > 1 else []) + (["groups without numbers"] if lacking else []))
        members = [ranks]
        if groups > 1:
            choice = self.function(t, v, 1, near, past)
            members = [[] for _ in range(groups)]
            for rank in ranks:
                members[choice[rank]].append(rank)
        if lacking:
            del members[lacking - 1]
        out = []
        for group in members:
            stream = self.choose(t, place, past)
            numbers, at = [], 0
            for _ in range(t.number("Variants", v, 2)):
                FORMS.add("functions of the rank")
                at += t.number("NumberPlace", v, 3)
                numbers.append((at, self.function(t, pair(pair(head, lane), 5), at, near, past)))
                at += 1
            out.append((set(group), stream, numbers))
        return place, out

    def function(self, t, a, b, near, past):
        """A function of the rank, as a table."""
        return self.told(t, a, b, near, past)["table"]

    def told(self, t, a, b, near, past):
        how = t.number("MapShape", a, b)
        shape, order = None, None
        if how == 0:
            shape = self.parts(t, near)
            if not shape:
                kind = t.number("MapView", 0)
                need(kind < 7, "a function of no kind")
                if kind == 6:
                    FORMS.add("partners")
                    power, more, ranks = (t.number("MapView", k) for k in (8, 9, 10))
                    block = (1 << power) + more
                    need(power < 31 and 0 < ranks < 1 << 32 and ranks % (2 * block) == 0, "partners among no ranks")
                    table = {rank: -block if rank // block % 2 else block for rank in range(ranks)}
                    return self.keep(past, table, None, None, False)
                if kind == 5:
                    FORMS.add("sums of functions")
                    one, other = (self.told(t, a, b, near, past) for _ in range(2))
                    need(not one["sum"] and not other["sum"], "a sum of sums")
                    table = {r: signed(n + other["table"][r]) for r, n in one["table"].items() if r in other["table"]}
                    return self.keep(past, table, None, None, True)
                if kind == 4:
                    FORMS.add("functions on a grid that is turned")
                    before = past["maps"][-(t.number("MapView", 5) + 1)]
                    need(before["order"] and not before["sum"], "a turn of no grid")
                    columns, side, skew, outer, inner = before["order"]
                    outer = (outer + t.zigzag("MapView", 6)) % side
                    inner = (inner + t.zigzag("MapView", 7)) % side
                    return self.keep(past, None, before["seen"], (columns, side, skew, outer, inner), False)
                FORMS.add("another order of ranks")
                side, skew = (t.number("MapView", k) for k in (1, 2))
                outer, inner = (t.number("MapView", k) for k in (3, 4)) if kind > 1 else (0, 0)
                need(2 <= side < 1 << 16 and max(skew, outer, inner) < side, "an order of no ranks")
                order = kind % 2, side, skew, outer, inner
                how = t.number("MapShape", a, b)
                need(how == 0 or how % 2, "an order of a function that has its own")
                shape = None if how else self.parts(t, near)
        if how and how % 2 == 0:
            past["maps"].append(past["maps"][-(how // 2)])
            return past["maps"][-1]
        shape = past["shapes"][-(how // 2 + 1)] if how else shape
        past["shapes"].append(shape)
        seen = {}
        for start, dims in shape:
            value = t.zigzag("MapValue", a, b)
            steps = [t.zigzag("MapStep", a, b) for _ in dims]
            for at, index in points((start, dims)):
                seen[at] = signed(value + sum(i * step for i, step in zip(index, steps)))
        return self.keep(past, None, seen, order, False)

    def keep(self, past, table, seen, order, is_sum):
        if table is None:
            table = {rank_seen_at(order, at): number for at, number in seen.items()} if order else seen
        past["maps"].append({"table": table, "seen": seen, "order": order, "sum": is_sum})
        return past["maps"][-1]

    def read_streams(self, t):
        count = t.number("Count", 5)
        uses = [None] * count
        for cohort in self.cohorts:
            for (symbol, head, lane, _), variants in cohort["lanes"]:
                for _, stream, _ in variants:
                    uses[stream] = uses[stream] or ((pair(head, lane), head), symbol, lane)
        self.streams, last = [], {}
        for use in uses:
            hint, symbol, lane = use or ((0, 0), M32, 0)
            stream = self.stream(t, hint)
            if symbol < len(self.symbols) and stream[1]:
                key = self.symbols[symbol][0], lane
                other, number = last.get(key, (symbol, None))
                if other != symbol and number is not None and stream[0][0][0] == "value":
                    FORMS.add("numbers near those of other places")
                    stream[0][0] = ("value", signed(stream[0][0][1] + number))
                is_constant = len(stream[0]) == 1 and stream[0][0][0] == "value" and [what for what, _ in stream[1]] == [0]
                last[key] = symbol, stream[0][0][1] if is_constant else None
            self.streams.append(stream)
        self.read_pools(t)
        self.restore_kinds()
        self.fill_neighbours()

    def read_pools(self, t):
        """Streams without steps: numbers of many members, told together."""
        groups, seen = {}, set()
        for cohort in self.cohorts:
            for (symbol, head, lane, _), variants in cohort["lanes"]:
                for ranks, stream, _ in variants:
                    if not self.streams[stream][1] and stream not in seen:
                        seen.add(stream)
                        first = cohort["base"] + min(cohort["ranks"] if ranks is None else ranks)
                        groups.setdefault((symbol, lane), (head, []))[1].append((first, stream))
        need(len(seen) == sum(not start for _, start in self.streams), "a stream is empty")
        room = 0
        for (symbol, lane), (head, streams) in groups.items():
            streams.sort()
            how = t.number("Count", 24)
            lag = t.number("Count", 25) if how == 0 else 0
            told, length = [], 0
            for _ in streams:
                length += t.zigzag("Count", 26)
                need(0 <= length <= 1 << 16, "a stream of too many numbers")
                tail, numbers = t.number("Count", 27), []
                for at in range(length if how == 0 else 0):
                    origin = numbers[at - lag] if 0 < lag <= at else None
                    if origin is None:
                        numbers.append(t.zigzag("Pooled", pair(pair(head, lane), 6), 0))
                    else:
                        by = t.zigzag("Pooled", pair(pair(head, lane), 7), origin + 1 & M32)
                        numbers.append(signed(origin + by))
                told.append((length, tail, numbers))
            if how:
                FORMS.add("transposed numbers")
                room -= self.transpose(symbol, how - 1, streams, told)
                need(room >= 0, "the transpose of numbers that are not there")
            else:
                FORMS.add("numbers told together")
                room += 2 * sum(length for length, _, _ in told)
            for (_, stream), (_, tail, numbers) in zip(streams, told):
                self.streams[stream] = row_of(numbers, tail)
        self.rows = seen

    def transpose(self, symbol, lane, streams, told):
        rows = []
        for cohort in self.cohorts:
            for place, variants in cohort["lanes"]:
                if (place[0], place[2]) == (symbol, lane):
                    for ranks, stream, own in variants:
                        need(not own and self.streams[stream][1], "the transpose of numbers that are not there")
                        ranks = cohort["ranks"] if ranks is None else ranks
                        rows += [(cohort["base"] + rank, stream) for rank in ranks]
        rows.sort()
        width = len(rows)
        longest = max((length for length, _, _ in told), default=0)
        count = -(-longest // width) * width
        table = [list(itertools.islice(numbers_of(self.streams[stream], {}), count)) for _, stream in rows]
        column = {member: at for at, (member, _) in enumerate(rows)}
        for (first, _), (length, _, numbers) in zip(streams, told):
            at = column[first]
            numbers += [table[k % width][k // width * width + at] for k in range(length)]
        return width * count

    def stream(self, t, hint):
        """(terms, start rule); a term is a list so that it can be told from a rule."""
        known = 4 if self.blocks is None else 6
        terms, rules = [], [[]]
        open_rules = [rules[0]]
        while open_rules:
            step = t.number("Shape", *hint)
            if step == 0:
                open_rules.pop()
                continue
            inner = None
            if step == 1:
                terms.append(("value", t.zigzag("Value", *hint)))
                what = len(terms) - 1
            elif step == 2:
                start, by = t.zigzag("Value", *hint), t.zigzag("Step", *hint)
                FORMS.add("strides")
                terms.append(("stride", start, by, t.number("StrideCount", *hint)))
                what = len(terms) - 1
            elif step == 3:
                inner = what = []
                rules.append(inner)
            elif step == 4 and known == 6:
                numbers = t.number("Count", 6)
                if numbers:
                    size = t.number("Count", 7)
                    data = self.blocks[self.block_at : self.block_at + size]
                    need(len(data) == size, "a stream has more blocks than there are")
                    self.block_at += size
                    FORMS.add("blocks")
                    terms.append(("packed", unpack(data, numbers)))
                else:
                    FORMS.add("rows")
                    count, by = t.number("Count", 8), t.zigzag("Step", *hint)
                    starts = self.stream(t, hint)
                    terms.append(("rows", count, by, starts, self.stream(t, hint)))
                what = len(terms) - 1
            elif step == 5 and known == 6:
                FORMS.add("running sums")
                terms.append(("running", t.number("Count", 8), self.stream(t, hint)))
                what = len(terms) - 1
            else:
                number, rule = divmod(step - known, 2)
                what = rules[number] if rule else number
            open_rules[-1].append((what, t.number("ShapeCount", *hint) + 1))
            if inner is not None:
                open_rules.append(inner)
        return terms, rules[0]

    def read_sites(self, t):
        FORMS.add("sites")
        modules = []
        for _ in range(t.number("Count", 16)):
            path = t.text(9)
            modules.append((path, bytes(t.number("Bits", 8) for _ in range(t.number("Count", 17)))))
        keys = [0] + [module_key(*module) for module in modules]
        need(len(set(keys)) == len(keys), "a module is there twice")
        frames, last, sites, known, inner = [], {}, [0], {}, [0] * 4
        for _ in range(t.number("Count", 18)):
            up = t.number("SiteUp", min(len(frames), 255))
            need(up <= len(frames), "a call stack is called from one that is not there")
            left = len(frames) - up
            sibling = frames[left] if up else None
            del frames[left:]
            module = t.number("SiteModule", frames[-1][0] + 1 if frames else 0)
            offset = number = 0
            if module:
                number = t.number("SiteKnown", 1, sibling[3]) if up else t.number("SiteKnown", 0, functools.reduce(pair, inner, 0))
                offsets = known.setdefault(module, [])
                if number == 0:
                    near = sibling[1] if sibling and sibling[0] == module else last.get(module, 0)
                    offsets.append((near + t.zigzag("SiteOffset", 3 if up else 2)) & M64)
                    number = len(offsets)
                need(number <= len(offsets), "an offset that was not told")
                offset = offsets[number - 1]
            if not up:
                inner = inner[1:] + [number]
            last[module] = offset
            site = stack_site(frames[-1][2] if frames else 0, keys[module], offset)
            frames.append((module, offset, site, number))
            sites.append(site)
        need(len(set(sites)) == len(sites), "a call stack is there twice")
        before = 0
        for symbol in range(len(self.symbols)):
            before += t.zigzag("SymbolSite")
            self.sites[symbol] = sites[before]

    def read_tallies(self, t):
        def tally(n, before=None):
            length = t.number("TallyMinimum") if before is None else before.bit_length() + t.zigzag("TallyMinimum", 1)
            low = digits(t, length, 5)
            spread = digits(t, t.number("TallySpread", low.bit_length()), 4)
            bits = (n * spread & M64).bit_length() - t.zigzag("TallyTotal")
            total = digits(t, t.number("TallyTotal", 1), 5) if bits == 65 else n * low + digits(t, bits, 5)
            return total & M64, low, (low + spread) & M64

        known = {"kinds": [], "together": False, "shares": []}

        def kinds_of(count, together):
            kinds = []
            for _ in range(count):
                more = t.number("ClassBits", 1 if kinds else 0)
                if together:
                    value = 0
                elif kinds and more == 0:
                    value = kinds[-1][1] + t.number("ClassValue", 1)
                else:
                    value = t.zigzag("ClassValue", 0)
                kind = ((kinds[-1][0] if kinds else 0) + more, value)
                need(kind[0] <= 64 and (not kinds or kinds[-1] < kind), "classes are not in order")
                kinds.append(kind)
            return kinds

        def parts(shares, n):
            return [share * (n // sum(shares)) for share in shares]

        def counts_of(count, n):
            how = t.number("Classes", 2)
            need(how < 3, "counts of an unknown kind")
            told = [t.number("ClassCount", how) for _ in range(count - (how == 0))]
            return [told + [n - sum(told)], parts(told, n) if how == 1 else told, told][how]

        groups = {}

        def light(symbol, many):
            """Which of a symbol's tallies are told with those of others."""
            if kind < 2:
                return [False] * many
            head = head_of(self.symbols[symbol][0])
            some = t.number("Tallies", 2, head)
            need(some < 3, "light tallies of an unknown kind")
            return [t.number("Tallies", 3, head) == 1 for _ in range(many)] if some == 2 else [some == 1] * many

        def part(symbol, n):
            """A part of what the light calls of a function took, when that is known."""
            group = groups.setdefault(head_of(self.symbols[symbol][0]), {"count": 0})
            start, end = group["count"], min(group["count"] + n, M64)
            group["count"] = end

            def share():
                total, low, high = group["tally"]
                until = [total * calls // group["count"] if group["count"] else 0 for calls in (start, end)]
                return until[1] - until[0], low, high

            return share

        def times(symbol, n):
            number = t.number("Classes", 0) if self.symbols[symbol][1] else 0
            if number == 0:
                told = part(symbol, n) if light(symbol, 1)[0] else tally(n)
                return lambda: (known_now(told), None)
            FORMS.add("classes")
            count, together = (number + 1) // 2, number % 2 == 0
            need(count <= (65 if together else 16), "there are too many classes")
            same = t.number("Classes", 1) if len(known["kinds"]) == count else 0
            need(same < 3 and (same == 0 or known["together"] == together), "classes are not well formed")
            if same == 0:
                known.update(kinds=kinds_of(count, together), together=together)
            counts = parts(known["shares"], n) if same == 2 else counts_of(count, n)
            shared = math.gcd(*counts) or 1
            known["shares"] = [c // shared for c in counts]
            told, low = [], None
            for what, c, is_light in zip(known["kinds"], counts, light(symbol, count)):
                told.append((what, c, part(symbol, c) if is_light else tally(c, low)))
                low = low if is_light else told[-1][2][1]

            def all_of_it():
                classes = [(what, c, known_now(one)) for what, c, one in told]
                every = [one[2] for one in classes]
                whole = min(sum(one[0] for one in every), M64), min(one[1] for one in every), max(one[2] for one in every)
                return whole, (together, classes)

            return all_of_it

        def known_now(told):
            return told() if callable(told) else told

        kind = t.number("Tallies")
        need(kind < 3, "tallies of an unknown kind")
        if kind == 0:
            self.tallies = [(tally(0), None)] * len(self.symbols)
        else:
            told = [times(symbol, n) for symbol, n in enumerate(self.occurrences())]
            for group in groups.values():
                FORMS.add("light tallies")
                group["tally"] = tally(group["count"])
            self.tallies = [one() for one in told]
        self.profile = self.read_profile(t) if t.number("Tallies", 1) else None

    def read_profile(self, t):
        """Time by rank: for each kind of it the levels of the ranks, the least and the most."""
        ranks = self.ranks(t, 0)[0]
        rows = []
        number, near = -1, 0
        count = t.number("Count", 19)
        coarse = t.number("Level", 2)
        need(coarse < 64, "a unit of impossible size")
        for _ in range(count):
            number += 1 + t.number("ProfileRow")
            unit = coarse if number > 1 else max(coarse - 3, 0)
            low = near = near + t.zigzag("Level", 0)
            spread = t.number("Level", 1)
            levels = [] if spread else [low] * len(ranks)
            fresh = False
            while len(levels) < len(ranks):
                level = low + t.number("Level", 2 + spread.bit_length())
                again = fresh and levels[-1] == level
                levels += [level] * (1 + (t.number("LevelRun") if again else 0))
                fresh = not again
            need(len(levels) == len(ranks) and min(levels) == low and max(levels) == low + spread, "levels do not fit")
            extremes = []
            for level in [low, low + spread][: len(ranks)] if number < 2 else []:
                alike = [rank for rank, other in zip(ranks, levels) if other == level]
                rank = alike[t.number("Bits", (len(alike) - 1).bit_length())]
                open_bits = max(level // 16 - 1, 0)
                lowest = (level - 16 * open_bits) << open_bits
                time = (lowest << unit) + t.number("Bits", open_bits + unit)
                extremes.append((rank, time))
            rows.append((number, levels, extremes))
        return ranks, coarse, rows

    def read_paths(self, body):
        """By symbol and what came before (-1 nothing, or as many as there are symbols: others), two histograms."""
        length, at = varint(body, 0)
        need(length <= 256 * len(body) + (1 << 20), "more is announced than there can be")
        t = coder_of(body[at:], length)
        near = [0, 0]

        def histogram(k):
            levels = t.number("PathLevel", k)
            if levels == 0:
                return 0, [], 0
            first = near[k] = near[k] + t.zigzag("PathLevel", 2 + k)
            need(0 <= first and first + levels <= 496, "a time of impossible size")
            counts = [digits(t, t.number("PathCount", k), 3) for _ in range(levels)]
            need(counts[0] and counts[-1], "times that are not well formed")
            told = 0
            for level, count in enumerate(counts, first):
                open_bits = max(level // 8 - 1, 0)
                told += (((level - 8 * open_bits) << open_bits) + (1 << open_bits) // 2) * count
            told = min(max(told, 1), M64)
            more = told * t.zigzag("PathTotal", k)
            return first, counts, told + (abs(more) + 64) // 128 * (1 if more >= 0 else -1)

        paths = {}
        for symbol in range(len(self.symbols)):
            before = None
            for _ in range(t.number("PathBefore", 0)):
                if before is None:
                    before = symbol + t.zigzag("PathBefore", 1)
                else:
                    before += 1 + t.number("PathBefore", 2)
                need(0 <= before <= len(self.symbols) + 1, "a path from a call that is not there")
                paths[symbol, before - 1] = histogram(0), histogram(1)
        FORMS.add("paths")
        return paths

    def occurrences(self):
        sums = [0] * len(self.symbols)
        left = 1 << 20
        for cohort in self.cohorts:
            kind, content = self.structures[cohort["structure"]]
            ranks = cohort["ranks"]
            each, factor = ranks[:1], len(ranks)
            if kind == "loops" and content:
                differ = any(v[0][0] is not None for _, v in cohort["lanes"][: len(content)])
                if differ and len(content) * len(ranks) <= left:
                    left -= len(content) * len(ranks)
                    each, factor = ranks, 1
            for rank in each:
                for symbol, count in self.counts(cohort, rank).items():
                    sums[symbol] = (sums[symbol] + factor * count) & M64
        return sums

    def counts(self, cohort, rank):
        kind, content = self.structures[cohort["structure"]]
        out = {}
        if kind == "rules":
            count_rule(content, 1, out, {})
        else:
            for symbol, times in self.runs(cohort, rank):
                out[symbol] = out.get(symbol, 0) + times
        return out

    # Calls

    def lane(self, cohort, index, rank):
        for members, stream, numbers in cohort["lanes"][index][1]:
            if members is None or rank in members:
                return numbers_of(self.streams[stream], {at: table[rank] for at, table in numbers})
        return iter(())

    def runs(self, cohort, rank):
        """(symbol, how often in a row)"""
        kind, content = self.structures[cohort["structure"]]
        if kind == "rules":
            yield from expand(content)
            return
        times = [self.lane(cohort, i, rank) for i in range(len(content))]
        bodies = [[0, 0, len(content), 0, False]]  # next node, start, end, times to come, whether something happened
        while bodies:
            body = bodies[-1]
            if body[0] == body[2]:
                if body[3] and body[4]:
                    body[0], body[3], body[4] = body[1], body[3] - 1, False
                else:
                    bodies.pop()
                    if bodies:
                        bodies[-1][4] |= body[4]
                continue
            at = body[0]
            symbol, after = content[at]
            body[0] = after
            n = next(times[at], 0)
            if n > 0 and symbol is not None:
                body[4] = True
                yield symbol, n
            elif n > 0:
                bodies.append([at + 1, at + 1, after, n - 1, False])

    def events(self, cohort, rank):
        """(symbol, function that gives the next number of one of its lanes)"""
        kind, content = self.structures[cohort["structure"]]
        at = len(content) if kind == "loops" else 0
        lanes = {}
        for symbol in self.symbols_of((kind, content)):
            count = self.symbols[symbol][1]
            lanes[symbol] = [self.lane(cohort, at + i, rank) for i in range(count)]
            at += count
        for symbol, times in self.runs(cohort, rank):
            for _ in range(times):
                yield symbol, lanes[symbol]

    def calls(self, table, rank, thread):
        """Of one thread of one rank: each call as JSON has it, and last the digest."""
        caller = Caller(table, rank)
        # The communicators that other threads make are known to this one.
        for other in self.threads(rank):
            if other != thread:
                caller.thread = other
                for _ in self.thread(caller, other * self.meta["ranks"] + rank):
                    pass
        caller.thread = thread
        yield from self.thread(caller, thread * self.meta["ranks"] + rank)

    def threads(self, rank):
        """Lowest first."""
        world = self.meta["ranks"]
        return sorted(member // world for member in self.members if member % world == rank)

    def thread(self, caller, member):
        cohort, rank = self.members[member]
        cohort = self.cohorts[cohort]
        layouts = {}
        digest = DIGEST
        for symbol, lanes in self.events(cohort, rank):
            if symbol not in layouts:
                data, count = self.symbols[symbol]
                layout = Layout(caller.table, data)
                need(layout.lanes == count, "a symbol has other lanes than its bytes say")
                layouts[symbol] = layout, xxh64(data, self.sites.get(symbol, 0))
            layout, name = layouts[symbol]
            digest = digest_symbol(digest, name)
            values = []

            def take(lane):
                nonlocal digest
                value = next(lanes[lane])
                digest = digest_value(digest, value)
                values.append((lane, value))
                return value

            call = caller.call(layout, take)
            failed = take(layout.polls) if layout.polls is not None else 0
            if failed:
                FORMS.add("failed polls")
                before = iter([v for v in layout.failed_poll(values[:-1])])
                poll = caller.call(layout, lambda _: next(before))
                for _ in range(failed):
                    yield poll
            yield call
        yield digest


def digits(t, bits, kept):
    need(0 <= bits <= 64, "a time of impossible size")
    lost = max(bits - 1 - kept, 0)
    return bits if bits < 2 else (1 << (bits - 1)) | t.number("Bits", bits - 1 - lost) << lost


def head_of(data):
    head = 1
    for byte in data[:2]:
        head = head * 256 + byte
    return head


def rank_seen_at(order, seen):
    columns, side, skew, a, b = order
    if seen >= side * side:
        return seen
    outer = (seen // side - a) % side
    inner = (seen - skew * outer - b) % side
    return side * inner + outer if columns else side * outer + inner


def points(part):
    """Every rank of a box, with its place in it."""
    start, dims = part

    def walk(depth, rank, index):
        if depth == len(dims):
            yield rank, index
            return
        count, stride = dims[depth]
        for i in range(count):
            yield from walk(depth + 1, rank + i * stride, index + (i,))

    yield from walk(0, start, ())


def each_terminal(rule):
    """Terminals in the order of the expansion, each rule once."""
    seen = set()
    stack = [iter(rule)]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif not isinstance(item[0], list):
            yield item[0]
        elif id(item[0]) not in seen:
            seen.add(id(item[0]))
            stack.append(iter(item[0]))


def count_rule(rule, times, out, known):
    def of(rule):
        if id(rule) not in known:
            sums = {}
            for what, count in rule:
                for symbol, n in (of(what) if isinstance(what, list) else {what: 1}).items():
                    sums[symbol] = sums.get(symbol, 0) + n * count
            known[id(rule)] = sums
        return known[id(rule)]

    for symbol, n in of(rule).items():
        out[symbol] = out.get(symbol, 0) + n * times


def expand(rule):
    """(terminal, count) of a rule, in order."""
    stack = [[rule, 0, 1]]
    while stack:
        top = stack[-1]
        if top[1] == len(top[0]):
            top[1], top[2] = 0, top[2] - 1
            if top[2] == 0:
                stack.pop()
            continue
        what, count = top[0][top[1]]
        top[1] += 1
        if isinstance(what, list):
            if what and count:
                stack.append([what, 0, count])
        else:
            yield what, count


def fill(stream, own, place):
    """The stream with these numbers in their places, its own being from `place` on; and the next place."""
    terms = []
    for term in stream[0]:
        if term[0] == "value":
            term = "value", own.get(place, term[1])
            place += 1
        elif term[0] == "stride":
            term = "stride", own.get(place, term[1]), own.get(place + 1, term[2]), term[3]
            place += 2
        elif term[0] == "running":
            FORMS.add("functions of the rank in blocks")
            steps, place = fill(term[2], own, place)
            term = "running", term[1], steps
        elif term[0] == "rows":
            FORMS.add("functions of the rank in blocks")
            step = own.get(place, term[2])
            starts, place = fill(term[3], own, place + 1)
            counts, place = fill(term[4], own, place)
            term = "rows", term[1], step, starts, counts
        terms.append(term)
    return (terms, stream[1]), place


def row_of(numbers, tail):
    """A stream of these numbers, of which the last so many come over and over; 0: it goes on as a stride."""
    last = tail or 3
    need(last <= len(numbers), "a stream that goes on as it cannot")
    before, end = numbers[:-last], numbers[-last:]
    terms, start = [], []
    if before:
        terms.append(("packed", [(number, 1) for number in before]))
        start.append((0, 1))
    if tail:
        terms.append(("packed", [(number, 1) for number in end]))
    else:
        step = signed(end[1] - end[0])
        need(step != 0 and signed(end[2] - end[1]) == step, "a stream that goes on as it cannot")
        terms.append(("stride", end[0], step, 3))
    start.append((len(terms) - 1, 1))
    return terms, start


def numbers_of(stream, own):
    """The numbers of a stream, without end; `own` are those that stand at a place instead of what is there."""
    terms, start = fill(stream, own, 0)[0] if own else stream
    for what, count in expand(start[:-1]):
        for _ in range(count):
            yield from term_numbers(terms[what], False)
    last = start[-1][0]
    while True:
        if isinstance(last, list):
            for what, count in expand(last):
                for _ in range(count):
                    yield from term_numbers(terms[what], False)
        else:
            yield from term_numbers(terms[last], True)


def term_numbers(term, endless):
    if term[0] == "value":
        yield term[1]
    elif term[0] == "stride":
        _, start, step, count = term
        i = 0
        while endless or i < count:
            if i == count:
                FORMS.add("strides without end")
            yield signed(start + i * step)
            i += 1
    elif term[0] == "packed":
        for value, times in term[1]:
            for _ in range(times):
                yield value
    elif term[0] == "rows":
        _, count, step, starts, counts = term
        i = 0
        for value, length in zip(numbers_of(starts, {}), numbers_of(counts, {})):
            for _ in range(max(length, 1)):
                if not endless and i == count:
                    return
                yield value
                value, i = signed(value + step), i + 1
    else:
        _, count, steps = term
        total, i = 0, 0
        for step in numbers_of(steps, {}):
            if not endless and i == count:
                return
            total, i = signed(total + step), i + 1
            yield total


# --- blocks ------------------------------------------------------------------------------------------------------------


class Range:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.range, self.code = M64, 0
        for _ in range(8):
            self.code = self.code << 8 | self.byte()

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def settle(self):
        while self.range < 1 << 56:
            self.range = self.range << 8 & M64
            self.code = (self.code << 8 | self.byte()) & M64

    def plain(self, k):
        self.range >>= k
        value = min(self.code // self.range, (1 << k) - 1)
        self.code -= value * self.range
        self.settle()
        return value

    def bit(self, table, at):
        p, n = table.get(at, (1 << 31, 0))
        share = (self.range >> 16) * min(max(p >> 16, 1), 65535)
        bit = 1 if self.code < share else 0
        if bit:
            self.range = share
        else:
            self.code -= share
            self.range -= share
        self.settle()
        p += ((M32 if bit else 0) - p) * (655360 // (10 * n + 16)) >> 16
        table[at] = p, min(n + 1, 250)
        return bit

    def tree(self, table, k):
        prefix = 1
        for _ in range(k):
            prefix = 2 * prefix + self.bit(table, prefix)
        return prefix - (1 << k)

    def number(self, table, k, below=None):
        size = min(self.tree(table, k), 64)
        if size == 0:
            return 0
        value, left = 1, size - 1
        if below is not None:
            modelled = min(left, 4)
            value = value << modelled | self.tree(below.setdefault(size, {}), modelled)
            left -= modelled
        while left > 0:
            piece = min(left, 32)
            left -= piece
            value = value << piece | self.plain(piece)
        return value


def unpack(data, count):
    """Numbers, and how often each stands there."""
    coder = Range(data)
    guess, chain, linked = coder.plain(1), coder.plain(1), coder.plain(1)
    lag = coder.plain(7)
    shift = low = 0
    if lag == 126:
        FORMS.add("shifted blocks")
        shift = min(coder.plain(6), 32)
        low = coder.plain(shift)
        lag = coder.plain(7)
    counted = lag == 127
    if counted:
        FORMS.add("counted blocks")
        lag = coder.plain(7)
    need(counted or count <= 8192, "a block of too many numbers")
    size = min(coder.plain(7), 64)
    base = coder.plain(size // 2) << (size - size // 2)
    base = unzigzag(base | coder.plain(size - size // 2))
    widest = min(coder.plain(7), 64)
    distances, table, before = [], {}, 0
    for _ in range(coder.plain(8)):
        before = (before + coder.number(table, 7)) & M64
        distances.append(before)
    n = len(distances)
    hits, symbols, classes, below = {}, {}, {}, {}
    slots, out, times = {}, [], []
    repeats, details = {}, {}
    right = s = size = 0
    following = None  # the place of the guess
    while count > 0:
        need(len(out) < 8192, "a block of too many numbers")
        i = len(out)
        value = None
        if guess and following is not None and coder.bit(hits, min(right, 15)):
            FORMS.add("guesses")
            value = out[following]
        hit = value is not None
        if not hit:
            origin = out[i - lag] if lag and i >= lag else base
            distance = None
            if n:
                s = min(coder.tree(symbols.setdefault(s if chain else 0, {}), n.bit_length()), n)
                distance = distances[s] if s < n else None
            if distance is None:
                table = classes.setdefault(size if linked else 0, {})
                distance = coder.number(table, widest.bit_length(), below)
                size = distance.bit_length()
            value = signed(origin + (unzigzag(distance) if lag else distance))
        out.append(value)
        right = right + 1 if hit else 0
        following = following + 1 if hit else None
        if guess and len(out) >= 4:
            h = 0
            for v in out[-4:]:
                h = rotl((h ^ v & M64) * 0x9E3779B97F4A7C15 & M64, 29)
            slot = (h * 0xD6E8FEB86659FD93 & M64) >> 52
            place = slots.get(slot)
            if following is None and place is not None and out[place - 4 : place] == out[-4:]:
                following = place
            slots[slot] = len(out)
        often = 1
        if counted:
            often += coder.number(repeats.setdefault(value % 4, {}), 6, details.setdefault(value % 4, {}))
        times.append(often)
        count -= often
    need(count == 0, "a block of too many numbers")
    need(len(data) <= coder.at <= len(data) + 8, "a block is cut short, or goes on after its end")
    return [(signed(value << shift | low), often) for value, often in zip(out, times)]


# --- the call table ----------------------------------------------------------------------------------------------------

HANDLES = """Comm Group Datatype Op Request Win File Info Errhandler Message Session ToolEnum ToolCvar ToolPvar
ToolPvarSession ToolEventRegistration ToolEventInstance""".split()
SHORT = dict(Comm="comm", Group="group", Datatype="type", Op="op", Request="req", Win="win", File="file", Info="info",
             Errhandler="errh", Keyval="keyval", Message="msg", Session="session", ToolEnum="tenum", ToolCvar="cvar",
             ToolPvar="pvar", ToolPvarSession="pvars", ToolEventRegistration="tevent", ToolEventInstance="tinst")
NUMBERS = {"int", "undefinable", "logical", "tag", "peer", "root", "rank", "enum", "mask", "argc"}
MEANINGS = {"logical", "undefinable", "tag", "peer", "root", "rank", "enum", "mask"}


class Param:
    """`kind` is what the type or the meaning says; `arg` what it names in parentheses."""

    def __init__(self, words):
        words = Words(words)
        self.name = words.take()
        words.expect(":")
        self.dir = words.take() if words.peek() in ("out", "inout") else "in"
        self.kind, self.arg = words.term()
        self.len, self.when, self.effect, self.scope = [], [], None, None
        if words.peek() == "|":
            words.take()
            words.term()
        while words.peek() is not None:
            if words.peek() == "[":
                words.take()
                while True:
                    term = words.take()
                    if words.peek() == "*":
                        words.take()
                        term = term + "*" + words.take()
                    elif words.peek() == "(":
                        words.at -= 1
                        term = words.term()
                    self.len.append(term)
                    if words.take() == "]":
                        break
            elif words.peek() == "if":
                words.take()
                self.when.append(words.term())
                while words.peek() == "&":
                    words.take()
                    self.when.append(words.term())
            elif words.peek() in ("new", "known", "freed", "completed", "started"):
                self.effect = words.take()
            elif words.peek() in ("parent", "later", "members", "inter", "process"):
                self.scope = words.term()
            else:
                self.kind, self.arg = words.term()
        self.handle = self.kind if self.kind in HANDLES else "Keyval" if self.kind == "keyval" else None
        if self.kind in ("Aint", "Count", "Offset", "Fint", "tool"):
            self.kind = "int"


class Words:
    def __init__(self, words):
        self.words, self.at = words, 0

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else None

    def take(self):
        self.at += 1
        return self.words[self.at - 1]

    def expect(self, word):
        need(self.take() == word, f"expected {word} in calls.txt")

    def term(self):
        """A word and the names in parentheses behind it."""
        word, args = self.take(), []
        if self.peek() == "(":
            self.take()
            while True:
                args.append(self.take())
                if self.take() == ")":
                    break
        return word, args


def words_of(text):
    out, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = at + 1
        if text[at].isalnum() or text[at] == "_":
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        elif text.startswith("...", at):
            end = at + 3
        elif text.startswith("->", at):
            end = at + 2
        out.append(text[at:end])
        at = end
    return out


class Function:
    pass


class Table:
    """The functions of calls.txt by number, the constants of constants.txt by number and by set."""

    def __init__(self, folder=MODEL):
        self.functions, by_name = {}, {}
        with open(os.path.join(folder, "calls.txt")) as file:
            lines = [line for line in file if line.strip() and not line.startswith("#")]
        waiting = [line.split(None, 3) for line in lines]
        while waiting:
            later = []
            for number, name, since, rest in waiting:
                if rest.startswith("like ") and rest.split()[1] not in by_name:
                    later.append([number, name, since, rest])
                    continue
                function = self.function(int(number), name, rest, by_name)
                self.functions[function.id] = by_name[name] = function
            need(len(later) < len(waiting), "calls.txt: a function is like one that is not there")
            waiting = later
        self.constants, self.sets, self.also = {}, {}, {}
        with open(os.path.join(folder, "constants.txt")) as file:
            for line in file:
                words = line.split("#")[0].split()
                if not words:
                    continue
                if words[0] == "set":
                    current = words[1]
                    self.sets[current] = []
                else:
                    self.constants[int(words[0])] = words[1]
                    self.sets[current].append(words[1])

    def function(self, number, name, rest, by_name):
        f = Function()
        f.id, f.name, f.params, f.returns, f.poll = number, name, [], "code", False
        words = Words(words_of(rest))
        if words.peek() == "like":
            words.take()
            other = by_name[words.take()]
            f.params, f.returns, f.poll = list(other.params), other.returns, other.poll
            while words.peek() == "-":
                words.take()
                gone = words.take()
                f.params = [p for p in f.params if p.name != gone]
        if words.peek() == "+":
            words.take()
        if words.peek() == "(":
            f.params += self.parameters(words)
        while words.peek() is not None:
            word = words.take()
            if word == "->":
                f.returns = words.take()
            elif word == "poll":
                f.poll = True
        f.index = {p.name: i for i, p in enumerate(f.params)}
        return f

    def parameters(self, words):
        words.take()
        out, current, depth = [], [], 0
        while True:
            word = words.take()
            if depth == 0 and word in (",", ")"):
                if current:
                    out.append(Param(current))
                current = []
                if word == ")":
                    return out
                continue
            depth += word in "([" and 1 or word in ")]" and -1 or 0
            current.append(word)


# --- symbols -----------------------------------------------------------------------------------------------------------

UNDEFINED = -32766


class Layout:
    """What a symbol's bytes say: for each parameter a slot, and the lanes that it reads."""

    def __init__(self, table, data):
        self.table, self.data, self.lanes = table, data, 0
        number, self.at = varint(data, 0)
        need(number in table.functions, f"unknown function {number}")
        self.function = f = table.functions[number]
        outcome = self.byte()
        self.outcome = outcome & 3
        need(self.outcome < 3, "unknown outcome")
        self.slots = [self.slot(f, i, p) for i, p in enumerate(f.params)]
        self.result = None
        if f.returns == "Aint" or f.returns == "code" and self.outcome:
            self.result = self.reserve(1)
        self.inline = None
        if outcome & 4:
            count, self.at = varint(data, self.at)
            FORMS.add("inline values")
            self.inline = []
            for _ in range(count):
                value, self.at = varint(data, self.at)
                self.inline.append(unzigzag(value))
        need(self.at == len(data), "a symbol goes on after its end")
        self.polls = None
        if f.poll and self.outcome == 0 and self.inline is None:
            self.polls = self.reserve(1)
        if self.inline is not None:
            self.lanes = 0

    def byte(self):
        need(self.at < len(self.data), "a symbol ends early")
        self.at += 1
        return self.data[self.at - 1]

    def get(self):
        value, self.at = varint(self.data, self.at)
        return value

    def string(self):
        size = self.get()
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8", "replace")

    def reserve(self, n):
        self.lanes += n
        return self.lanes - n

    def length(self, f, p, i):
        if not p.len or known_length(f, i) is not None:
            return None
        return self.reserve(1)

    def slot(self, f, i, p):
        if p.kind in ("opaque", "...") or self.outcome == 1 and p.dir == "out" and p.kind != "buffer":
            return ("absent",)
        scalar = not p.len
        if p.handle and scalar and p.dir != "out" and p.handle not in ("Request", "Message"):
            code = self.get()
            return ("absent",) if code == 0 else ("object", code - 1)
        if scalar and p.dir == "in" and not p.when and p.kind in ("int", "undefinable", "logical"):
            return ("number", self.reserve(1))
        tag = self.byte()
        if tag in (0, 4):
            return ("absent",)
        if tag == 2:
            return ("fixed", "NULL")
        if tag == 3:
            number = self.get()
            need(number in self.table.constants, f"unknown constant {number}")
            return ("fixed", self.table.constants[number])
        if tag == 5:
            if p.kind in ("strings", "argv"):
                return ("fixed", [self.string() for _ in range(self.get())])
            if p.kind == "string_lists":
                return ("fixed", [[self.string() for _ in range(self.get())] for _ in range(self.get())])
            return ("fixed", self.string())
        if tag == 6:
            FORMS.add("texts in lanes")
            places = self.get()
            lane = self.reserve(1 + places)
            return ("text", lane)
        if tag in (7, 16):
            FORMS.add("statuses")
            FORMS.update(["ignored statuses"] if tag == 16 else [])
            length = self.length(f, p, i)
            return ("status", length, self.reserve(5 if self.outcome == 2 else 4), tag == 16)
        if tag >= 8:
            need(tag < 16, "unknown area")
            return ("address", tag - 8, self.reserve({4: 1, 5: 3}.get(tag - 8, 2)))
        if p.handle:
            if p.handle == "Comm" and p.effect == "new":
                return self.new_comm(p)
            length = self.length(f, p, i)
            lane = self.reserve(1)
            facts = None
            if p.handle == "Datatype" and p.dir == "out" and scalar and p.effect in ("new", "known"):
                facts = self.reserve(3)
            return ("code", length, lane, facts)
        if p.kind == "argc":
            return ("number", self.reserve(1))
        length = self.length(f, p, i)
        if p.dir == "inout":
            before = self.reserve(1)
            return ("inout", length, before, self.reserve(1) if self.outcome != 1 else None)
        return ("number", self.reserve(1)) if scalar else ("list", length, self.reserve(1))

    def new_comm(self, p):
        group = self.byte()
        need(group < 4, "unknown group")
        slot = {"group": group, "code": self.reserve(1), "order": self.reserve(1), "rank": None}
        if group and p.scope[0] in ("members", "inter", "process"):
            slot["rank"] = self.reserve(1)
        slot["lists"] = [self.reserve(2) for _ in range({2: 1, 3: 2}.get(group, 0))]
        return ("new", slot)

    def failed_poll(self, values):
        """The values of a poll that failed before a call with these."""
        roles = {}
        f = self.function
        flag = any(p.dir == "out" and p.kind == "logical" for p in f.params)
        for p, slot in zip(f.params, self.slots):
            if p.dir != "out":
                continue
            if p.kind == "logical":
                role = 0
            elif p.kind == "undefinable" and not p.len:
                role = UNDEFINED if flag else 0
            else:
                role = None
            if slot[0] == "number":
                lanes = [slot[1]]
            elif slot[0] == "status":
                lanes = list(range(slot[2], slot[2] + 4)) + ([slot[1]] if slot[1] is not None else [])
            elif slot[0] in ("list", "code"):
                lanes = [slot[2]] + ([slot[1]] if slot[1] is not None else [])
            else:
                continue
            for lane in lanes:
                roles[lane] = role
        for lane, value in values:
            if lane not in roles:
                yield value
            elif roles[lane] is not None:
                yield roles[lane]


def known_length(f, i):
    """The earlier parameter that says how long an array is."""
    p = f.params[i]
    if len(p.len) != 1 or not isinstance(p.len[0], str) or p.len[0] not in f.index:
        return None
    j = f.index[p.len[0]]
    q = f.params[j]
    if j < i and q.dir != "inout" and not q.when and not q.len and q.kind in ("int", "undefinable"):
        return j
    return None


def summed(f, i):
    """Whether parameter i may be running sums of the one before."""
    p, q = f.params[i], f.params[i - 1]
    return i > 0 and p.name.endswith("displs") and q.name.endswith("counts") and p.len == q.len and p.dir == "in"


def in_lanes(p):
    if p.kind in ("int", "undefinable", "logical", "mask", "Status"):
        return True
    if p.handle:
        return p.dir == "out" and not (p.handle == "Comm" and p.effect == "new")
    return bool(p.len) and p.kind in NUMBERS


def condition(f, i):
    """The condition on an earlier output that says whether parameter i was written."""
    p = f.params[i]
    for word, args in p.when:
        if word in ("flag", "defined"):
            j = f.index[args[0]]
            if j < i and in_lanes(p) and not f.params[j].when:
                return word, j
    return None


# --- calls -------------------------------------------------------------------------------------------------------------

NAMED = -(1 << 63)
AREAS = ["heap", "static", "stack", "other", None, "gpu", "managed", "pinned"]
WORLDS = {"MPI_COMM_WORLD": "world", "MPI_COMM_SELF": "self"}


class Caller:
    """One rank: what it knows of its communicators and windows."""

    def __init__(self, table, rank):
        self.table, self.rank, self.thread = table, rank, 0
        self.comms, self.wins = {}, {}

    def call(self, layout, take):
        f = layout.function
        if layout.inline is not None:
            values = iter(layout.inline)
            take = lambda _: next(values)
        args, facts = [], {}
        for i, p in enumerate(f.params):
            slot = layout.slots[i]
            when = condition(f, i)
            written = True
            if when and when[0] == "flag":
                written = args[when[1]] is True
            elif when:
                written = args[when[1]] != "MPI_UNDEFINED"
            if slot[0] in ("absent", "fixed") or written:
                args.append(self.value(layout, i, p, slot, args, facts, take))
            else:
                args.append(None)
            if slot[0] == "status" and slot[3]:
                if written:
                    facts.setdefault("matched", []).append(args[i])
                args[i] = "MPI_STATUSES_IGNORE" if p.len else "MPI_STATUS_IGNORE"
        result = take(layout.result) if layout.result is not None else None if f.returns == "clock" else 0
        if layout.inline is not None:
            need(next(values, None) is None, "a symbol has more values than it needs")
        for p, value in zip(f.params, args):
            if p.handle == "Win" and p.effect == "new" and p.dir == "out" and isinstance(value, str) and "#" in value:
                comm = comm_param(f)
                self.wins[value] = 0 if comm is None else self.base(layout, comm)
        out = {"call": f.name, "args": {p.name: v for p, v in zip(f.params, args)}, "result": result}
        if facts:
            out["facts"] = {name: v[0] if len(v) == 1 else v for name, v in facts.items()}
        return out

    def value(self, layout, i, p, slot, args, facts, take):
        f = layout.function
        base = self.base(layout, f.index[p.arg[0]]) if p.kind == "peer" else 0
        number = lambda v: self.number(p, v, base)

        def length(lane):
            if lane is not None:
                return take(lane)
            if not p.len:
                return None
            n = args[known_length(f, i)]
            return max(n, 0) if isinstance(n, int) and not isinstance(n, bool) else 0

        def several(count, one):
            return one() if count is None else [one() for _ in range(count)]

        kind = slot[0]
        if kind == "absent":
            return None
        if kind == "fixed":
            return WORLDS.get(slot[1], slot[1]) if p.handle == "Comm" else slot[1]
        if kind == "object":
            return self.object(p.handle, slot[1])
        if kind == "number":
            return number(take(slot[1]))
        if kind == "list":
            count = length(slot[1])
            if count is not None and count < 0 and summed(f, i):
                FORMS.add("sums of counts")
                at, gap, unit = take(slot[2]), take(slot[2]), signed(take(slot[2]) + 1)
                need(isinstance(args[i - 1], list) and len(args[i - 1]) == -1 - count, "sums of other counts")
                sums = []
                for one in args[i - 1]:
                    sums.append(number(at))
                    at = signed(at + unit * one + gap)
                return sums
            return several(count, lambda: number(take(slot[2])))
        if kind == "inout":
            count = length(slot[1])
            before = several(count, lambda: number(take(slot[2])))
            return before if slot[3] is None else {"in": before, "out": several(count, lambda: number(take(slot[3])))}
        if kind == "code":
            out = several(length(slot[1]), lambda: self.object(p.handle, take(slot[2])))
            if slot[3] is not None:
                for k, name in enumerate(("size", "lb", "extent")):
                    fact = take(slot[3] + k)
                    if "#" in out:
                        facts.setdefault(name, []).append(fact)
            return out
        if kind == "status":
            comm = comm_param(f)
            base = self.rank if comm is None else self.base(layout, comm)
            return several(length(slot[1]), lambda: self.status(layout, slot[2], base, take))
        if kind == "address":
            _, area, lane = slot
            if area == 4:
                return "0x%x" % (take(lane) & M64)
            device = take(lane) if area == 5 else ""
            lane += area == 5
            segment = take(lane)
            return "%s%s#%d%+d" % (AREAS[area], device, segment, take(lane + 1))
        if kind == "text":
            return bytes(take(slot[1] + 1 + k) for k in range(take(slot[1]))).decode("utf-8", "replace")
        return self.new_comm(layout, p, slot[1], facts, take)

    def number(self, p, v, base):
        if 0 <= v - NAMED < 1 << 16:
            return self.table.constants.get(v - NAMED, v)
        if p.kind == "peer":
            return signed(v + base)
        if p.kind == "logical":
            return v != 0
        if p.kind in ("undefinable", "rank") and v == UNDEFINED:
            return "MPI_UNDEFINED"
        if p.kind == "mask":
            if v >> 32:
                return v
            names = self.table.sets[p.arg[0]]
            return "|".join(names[bit] for bit in range(32) if v >> bit & 1 and bit < len(names)) or "0"
        return v

    def status(self, layout, lane, base, take):
        mark = take(lane + 3)
        undefined, cancelled = mark >> 1, bool(mark & 1)
        need(0 <= undefined < 8, "a status that says what cannot be")
        peer, tag = Param(["x", ":", "peer", "(", "x", ")"]), Param(["x", ":", "tag"])
        out = {"source": None, "tag": None, "bytes": None, "cancelled": None, "error": None}
        if not undefined & 1:
            out["source"], out["tag"] = self.number(peer, take(lane), base), self.number(tag, take(lane + 1), 0)
        if not undefined & 2:
            out["bytes"] = take(lane + 2)
        if not undefined & 4:
            out["cancelled"] = cancelled
        if layout.outcome == 2:
            out["error"] = take(lane + 4)
        elif undefined == 7:
            return None
        return out

    def object(self, handle, code):
        if handle == "Request" and code < 0:
            bits = -1 - code
            return self.named(handle, made_by(bits & 0xFFFF, bits >> 16))
        if code & 1:
            name = self.table.constants[code >> 1]
            return WORLDS.get(name, name) if handle == "Comm" else name
        number = code >> 1
        if handle == "Request":
            number = made_by(self.thread, number)
        if handle == "Comm" and number in self.comms:
            return self.comms[number][0]
        return self.named(handle, number)

    def named(self, handle, number):
        thread, number = number >> 20, number & 0xFFFFF
        return f"{SHORT[handle]}#{thread}.{number}" if thread else f"{SHORT[handle]}#{number}"

    def base(self, layout, j):
        """The caller's rank in the communicator or window of parameter j."""
        slot, p = layout.slots[j], layout.function.params[j]
        if slot[0] != "object":
            return 0
        code = slot[1]
        if code & 1:
            return self.rank if self.table.constants[code >> 1] == "MPI_COMM_WORLD" else 0
        if p.handle == "Win":
            return self.wins.get(self.named("Win", code >> 1), 0)
        return self.comms.get(code >> 1, (None, 0))[1]

    def new_comm(self, layout, p, slot, facts, take):
        f = layout.function
        code, order = take(slot["code"]), take(slot["order"])
        rank = take(slot["rank"]) if slot["rank"] is not None else None
        parent, parent_rank = "?", 0
        if p.scope[0] in ("parent", "later"):
            j = f.index[p.scope[1][0]]
            if layout.slots[j][0] == "object":
                shown = self.object("Comm", layout.slots[j][1])
                if "#" not in shown and shown != "MPI_COMM_NULL":
                    parent = shown
            parent_rank = self.base(layout, j)
        lists = [[take(lane + 1) for _ in range(take(lane))] for lane in slot["lists"]]
        if slot["group"] == 1:
            facts["group"] = ["as " + parent]
            rank = parent_rank
        for name, members in zip(("group", "remote_group"), lists):
            facts[name] = [members]
        if rank is None:
            rank = lists[0].index(self.rank) if lists and self.rank in lists[0] else 0
        if code & 1:
            return self.table.constants[code >> 1]
        name = {
            "members": lambda: "group-%016x.%d" % (group_name(lists[0], []), order),
            "inter": lambda: "inter-%016x.%d" % (group_name(lists[0], lists[1] if len(lists) > 1 else []), order),
            "process": lambda: "process.%d" % order,
        }.get(p.scope[0], lambda: "%s.%d" % (parent, order))()
        self.comms[code >> 1] = name, rank
        return name


def made_by(thread, number):
    return min(thread, 4095) << 20 | number


def comm_param(f):
    for i, p in enumerate(f.params):
        if p.handle == "Comm" and p.dir == "in" and not p.len:
            return i
    return None


# --- commands ----------------------------------------------------------------------------------------------------------


def dump(file, table):
    """Every call of every rank and thread, and (rank, thread, digest) behind each thread's."""
    for rank in range(file.meta["ranks"]):
        for thread in file.threads(rank):
            for number, call in enumerate(file.calls(table, rank, thread)):
                if isinstance(call, int):
                    yield rank, thread, call
                else:
                    yield {"rank": rank, "thread": thread, "number": number, **call}


def check(file, table, lines):
    sums = {}
    count = 0
    for one in dump(file, table):
        if isinstance(one, tuple):
            rank, thread, digest = one
            member = thread * file.meta["ranks"] + rank
            at = file.members[member][0]
            sums[at] = (sums.get(at, 0) + blend(member, digest)) & M64
            continue
        other = next(lines, None)
        need(other is not None, f"call {count} is not in the other list")
        if one != json.loads(other):
            raise Bad(f"call {count} differs:\n  {json.dumps(one)}\n  {other.strip()}")
        count += 1
    need(next(lines, None) is None, "the other list is longer")
    for at, cohort in enumerate(file.cohorts):
        if sums.get(at, 0) != cohort["digest"]:
            raise Bad(f"the digest of cohort {at} differs")
    return count


def same(one, other):
    for name in "flags meta symbols structures cohorts members sites tallies profile".split():
        need(getattr(one, name) == getattr(other, name), f"{name} differ")
    need(len(one.streams) == len(other.streams), "streams differ")
    for at, streams in enumerate(zip(one.streams, other.streams)):
        first = lambda stream: list(itertools.islice(numbers_of(stream, {}), 4096))
        # What is told with others has no shape of its own.
        rows = at in one.rows or at in other.rows
        need(streams[0] == streams[1] or rows and first(streams[0]) == first(streams[1]), "streams differ")


def vectors(text):
    """Each line is a name, its arguments, `=` and the result in hexadecimal."""
    made = {
        "xxh64": lambda data, seed: xxh64(bytes.fromhex(data), int(seed)),
        "mix": lambda state, value: mix(int(state, 16), int(value)),
        "digest": lambda *events: digest_of(events),
        "blend": lambda member, digest: blend(int(member), int(digest, 16)),
        "module": lambda path, build: module_key(path, bytes.fromhex("" if build == "-" else build)),
        "site": lambda outer, module, offset: stack_site(int(outer, 16), int(module, 16), int(offset, 16)),
        "group": lambda *lists: group_name(*[[int(n) for n in one.split(",") if n != "-"] for one in lists]),
        "pair": lambda a, b: pair(int(a), int(b)),
        "hash": lambda a, b: hash2(int(a, 16), int(b, 16)),
        }
    done = 0
    for line in text.split("### Test vectors", 1)[1].splitlines():
        words = line.split()
        if line.startswith("    ") and "=" in words and words[0] in made:
            at = words.index("=")
            args = ["" if word == '""' else word for word in words[1:at]]
            result = made[words[0]](*args)
            need(result == int(words[at + 1], 16), f"{line.strip()}: it is {result:x}")
            done += 1
    return done


def digest_of(events):
    digest = DIGEST
    for event in events:
        kind, value = event.split(":")
        digest = digest_symbol(digest, int(value, 16)) if kind == "s" else digest_value(digest, int(value))
    return digest


@functools.lru_cache(maxsize=2)
def trace_of(path):
    with open(path, "rb") as file:
        return File(file.read())


def main(words):
    try:
        if words[:1] == ["vectors"]:
            with open(words[1]) as file:
                done = vectors(file.read())
            need(done > 10, "the document has no vectors")
            print(f"{done} vectors hold")
            return 0
        if words[0] == "paths":
            for (symbol, before), histograms in trace_of(words[1]).paths.items():
                told = (" ".join(map(str, [first, *counts, total])) for first, counts, total in histograms)
                print(f"{symbol} {before}: {'; '.join(told)}")
            return 0
        table = Table()
        if words[0] == "dump":
            for one in dump(trace_of(words[1]), table):
                if isinstance(one, dict):
                    print(json.dumps(one, separators=(",", ":"), ensure_ascii=False))
            return 0
        for path, other in zip(words[1::2], words[2::2]):
            words = [path]  # for a complaint
            trace = trace_of(path)
            if other.endswith(".rfn"):
                same(trace, trace_of(other))
                print(f"{path}: the same sections")
                continue
            with open(other) as lines:
                print(f"{path}: {check(trace, table, lines)} calls and {len(trace.cohorts)} digests agree")
        print("forms: " + ", ".join(sorted(FORMS)))
    except Bad as bad:
        print(f"{words[-1]}: {bad}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
