"""Reads what `refrain export` writes for viewers, as strictly as the formats' descriptions allow, and says what is in it.

    pictures.py chrome|perfetto|paje|paraver FILE

Prints one JSON object: calls, messages, threads. Ends with an error where something is not as the format says. Nothing here was
taken from the writer: it is a second opinion. `perfetto` needs the Python package of that name; without it: exit code 77.
"""

import json
import re
import sys
from collections import Counter, defaultdict


def chrome(path):
    with open(path) as file:
        trace = json.load(file)
    assert trace["displayTimeUnit"] in ("ns", "ms")
    names, calls, starts, ends = {}, defaultdict(list), {}, {}
    for event in trace["traceEvents"]:
        place = (event["pid"], event.get("tid"))
        match event["ph"]:
            case "M":
                assert event["name"] in ("process_name", "thread_name", "process_sort_index"), event
                if event["name"] == "thread_name":
                    names[place] = event["args"]["name"]
            case "X":
                assert event["dur"] >= 0 and event["name"].startswith("MPI_") and event["cat"], event
                calls[place].append((event["ts"], event["ts"] + event["dur"]))
            case "s":
                assert event["id"] not in starts, event
                starts[event["id"]] = (place, event["ts"])
            case "f":
                assert event["id"] not in ends and event["bp"] == "e", event
                ends[event["id"]] = (place, event["ts"])
            case other:
                raise AssertionError(f"unknown phase {other}")
    assert set(calls) <= set(names), "a thread has no name"
    for place, spans in calls.items():
        for (_, end), (start, _) in zip(spans, spans[1:]):
            assert start >= end - 1e-6, f"calls of {place} overlap: {start} {end}"
    # A flow is drawn between the events around its ends.
    within = {place: sorted(spans) for place, spans in calls.items()}
    for place, time in list(starts.values()) + list(ends.values()):
        assert any(start - 1e-6 <= time <= end + 1e-6 for start, end in within[place]), (place, time)
    assert set(starts) == set(ends), "a message has one end only"
    assert all(starts[id][1] <= ends[id][1] for id in starts), "a message comes before it is sent"
    return sum(map(len, calls.values())), len(starts), len(names)


def perfetto(path):
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
    except ImportError:
        print("pictures: the Python package perfetto is not there", file=sys.stderr)
        sys.exit(77)
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    tracks, names, annotations, categories = {}, {}, {}, {}
    open_slices, last = defaultdict(list), {}
    calls, starts, ends = 0, {}, {}
    sequence = None
    for number, packet in enumerate(trace.packet):
        assert not len(UnknownFieldSet(packet)), "a field that the schema does not have"
        sequence = sequence or packet.trusted_packet_sequence_id
        assert packet.trusted_packet_sequence_id == sequence != 0
        assert number > 0 or packet.sequence_flags == 1, "the first packet clears what was interned"
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and track.uuid != 0
            if track.HasField("thread"):
                parent = tracks[track.parent_uuid]
                assert parent.process.pid == track.thread.pid and track.thread.thread_name
            else:
                assert track.process.process_name.startswith("rank ")
            tracks[track.uuid] = track
            continue
        assert packet.HasField("track_event") and packet.sequence_flags == 2
        for kind, known in (("event_names", names), ("debug_annotation_names", annotations), ("event_categories", categories)):
            for entry in getattr(packet.interned_data, kind):
                assert entry.iid not in known and entry.iid != 0
                known[entry.iid] = entry.name
        event = packet.track_event
        assert not len(UnknownFieldSet(event))
        assert tracks[event.track_uuid].HasField("thread")
        assert packet.timestamp >= last.get(event.track_uuid, 0), "time goes backwards"
        last[event.track_uuid] = packet.timestamp
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            assert names[event.name_iid].startswith("MPI_")
            assert [categories[id] for id in event.category_iids]
            for annotation in event.debug_annotations:
                assert annotations[annotation.name_iid] and annotation.WhichOneof("value")
            open_slices[event.track_uuid].append(packet.timestamp)
            assert len(open_slices[event.track_uuid]) == 1, "calls of a thread overlap"
            for flow in event.flow_ids:
                assert flow not in starts
                starts[flow] = packet.timestamp
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            open_slices[event.track_uuid].pop()
            calls += 1
            for flow in event.terminating_flow_ids:
                assert flow not in ends
                ends[flow] = packet.timestamp
        else:
            raise AssertionError(f"type {event.type}")
    assert not any(open_slices.values()), "a call does not end"
    assert set(starts) == set(ends), "a message has one end only"
    assert all(starts[id] <= ends[id] for id in starts)
    return calls, len(starts), sum(track.HasField("thread") for track in tracks.values())


def paje(path):
    definitions, fields, current = {}, [], None
    types, containers, values = {"0": None}, {"0": "0"}, {}
    state, links, messages, calls, last = {}, {}, 0, 0, float("-inf")
    threads = 0
    with open(path) as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.startswith("%"):
            words = line[1:].split()
            if words[0] == "EventDef":
                current, fields = (words[1], words[2]), []
            elif words[0] == "EndEventDef":
                assert current[1] not in definitions
                definitions[current[1]] = (current[0], fields)
            else:
                name, kind = words
                assert kind in ("string", "date", "int", "double", "hex", "color"), line
                fields.append((name, kind))
            continue
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
        name, fields = definitions[words[0]]
        assert len(words) == len(fields) + 1, line
        event = {field: word for (field, _), word in zip(fields, words[1:])}
        if "Time" in event:
            time = float(event["Time"])
            assert time >= last, f"time goes backwards: {line}"
            last = time
        match name:
            case "PajeDefineContainerType" | "PajeDefineStateType":
                assert event["Type"] in types and event["Alias"] not in types
                types[event["Alias"]] = event["Type"]
            case "PajeDefineLinkType":
                assert {event["Type"], event["StartContainerType"], event["EndContainerType"]} <= set(types)
                types[event["Alias"]] = event["Type"]
            case "PajeDefineEntityValue":
                assert event["Type"] in types and event["Alias"] not in values
                assert all(0 <= float(part) <= 1 for part in event["Color"].split())
                values[event["Alias"]] = event["Type"]
            case "PajeCreateContainer":
                assert types[event["Type"]] == containers[event["Container"]] and event["Alias"] not in containers
                containers[event["Alias"]] = event["Type"]
                threads += event["Type"] == "Thread"
            case "PajeDestroyContainer":
                assert containers.pop(event["Name"]) == event["Type"]
            case "PajeSetState":
                assert values[event["Value"]] == event["Type"] and types[event["Type"]] == containers[event["Container"]]
                calls += event["Value"].startswith("MPI_")
                assert state.get(event["Container"], "Outside") == "Outside" or event["Value"] == "Outside", line
                state[event["Container"]] = event["Value"]
            case "PajeStartLink":
                assert event["StartContainer"] in containers and event["Key"] not in links
                links[event["Key"]] = time
            case "PajeEndLink":
                assert event["EndContainer"] in containers and links.pop(event["Key"]) <= time
                messages += 1
            case other:
                raise AssertionError(other)
    assert not links, "a message has one end only"
    assert list(containers) == ["0"], "a container is not destroyed"
    return calls, messages, threads


MPI = {50000001, 50000002, 50000003, 50000004, 50000005}


def paraver(path):
    base = path.removesuffix(".prv")
    assert base != path
    pcf = open(base + ".pcf").read()
    states = set(map(int, re.findall(r"^(\d+)\s+\S", re.search(r"^STATES\n(.*?)\n\n", pcf, re.S | re.M)[1], re.M)))
    meanings = {}
    for block in re.findall(r"^EVENT_TYPE\n(.*?)(?:\n\n|\Z)", pcf, re.S | re.M):
        head, _, tail = block.partition("VALUES\n")
        values = {int(line.split()[0]) for line in tail.splitlines()}
        for line in head.splitlines():
            colour, kind, label = line.split(None, 2)
            meanings[int(kind)] = values
    lines = open(path).read().splitlines()
    head = re.fullmatch(
        r"#Paraver \((\d\d)/(\d\d)/(\d{2,4}) at (\d\d):(\d\d)\):(\d+)_ns:(\d+)\(([\d,]+)\):1:(\d+)\(([\d:,]+)\),(\d+)", lines[0]
    )
    assert head, lines[0]
    end, nodes, cpus = int(head[6]), int(head[7]), list(map(int, head[8].split(",")))
    tasks = [tuple(map(int, task.split(":"))) for task in head[10].split(",")]
    assert len(cpus) == nodes and len(tasks) == int(head[9])
    assert all(1 <= node <= nodes for _, node in tasks)
    threads = sum(count for count, _ in tasks)
    assert threads == sum(cpus)
    communicators = [line for line in lines[1:] if line.startswith("c:")]
    assert len(communicators) == int(head[11])
    for line in communicators:
        _, application, _, count, *members = map(str, line.split(":"))
        assert application == "1" and len(members) == int(count)
    body = lines[1 + len(communicators):]
    assert not any(line.startswith(("c", "#")) for line in body)

    def place(words):
        cpu, application, task, thread = words
        assert 1 <= cpu <= sum(cpus) and application == 1 and 1 <= thread <= tasks[task - 1][0], words
        return task, thread

    last, calls, messages = 0, 0, 0
    reached, inside = Counter(), {}
    for line in body:
        kind, *words = map(int, line.split(":"))
        match kind:
            case 1:
                who, (start, stop, state) = place(words[:4]), words[4:]
                assert state in states and reached[who] <= start < stop <= end, line
                reached[who] = stop
                time = start
            case 2:
                who, time, pairs = place(words[:4]), words[4], words[5:]
                assert len(pairs) % 2 == 0 and time <= end
                for event, value in zip(pairs[::2], pairs[1::2]):
                    if event in MPI:
                        assert value in meanings[event], line
                        if value == 0:
                            assert inside.pop(who) == event, line
                        else:
                            assert who not in inside, line
                            inside[who] = event
                            calls += 1
                    else:
                        assert event in meanings, line
            case 3:
                place(words[:4]), place(words[6:10])
                logical_send, physical_send, logical_receive, physical_receive = words[4], words[5], words[10], words[11]
                assert len(words) == 14 and words[12] >= 0, line
                assert logical_send <= physical_send <= physical_receive <= end and logical_receive <= physical_receive, line
                messages += 1
                time = logical_send
            case _:
                raise AssertionError(line)
        assert time >= last, f"records are not in order: {line}"
        last = time
    assert not inside, "a call does not end"
    row = open(base + ".row").read()
    for level, count in (("CPU", sum(cpus)), ("NODE", nodes), ("THREAD", threads)):
        block = re.search(rf"^LEVEL {level} SIZE (\d+)\n(.*?)(?:\n\n|\Z)", row, re.S | re.M)
        assert int(block[1]) == count == len(block[2].splitlines()), level
    return calls, messages, threads


if __name__ == "__main__":
    read = {"chrome": chrome, "perfetto": perfetto, "paje": paje, "paraver": paraver}[sys.argv[1]]
    calls, messages, threads = read(sys.argv[2])
    print(json.dumps({"calls": calls, "messages": messages, "threads": threads}))
