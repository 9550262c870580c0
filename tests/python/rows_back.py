"""Turns the rows of a Parquet file back into what `refrain dump --json` prints, and compares.

usage: rows_back.py (A.parquet A.json)...
"""

import json
import math
import sys

import duckdb
import polars


def scalar(number, name):
    return number if name is None else name


def status(fields):
    if fields is None:
        return None
    return {
        "source": scalar(fields["source"], fields["source_name"]),
        "tag": scalar(fields["tag"], fields["tag_name"]),
        "bytes": fields["bytes"],
        "cancelled": fields["cancelled"],
        "error": fields["error"],
    }


def value(cells):
    """One value from the cells that it may be in, by form."""
    there = {form: cell for form, cell in cells.items() if cell is not None}
    if not there:
        return None
    if set(there) == {"numbers", "names"}:
        return [scalar(number, name) for number, name in zip(there["numbers"], there["names"])]
    ((form, cell),) = there.items()
    if form == "status":
        return status(cell)
    if form == "statuses":
        return [status(one) for one in cell]
    if form == "json":
        return json.loads(cell)
    if form == "seconds" and not math.isfinite(cell):
        return {"nan": "NaN", "inf": "inf", "-inf": "-inf"}[str(cell)]
    return cell


class Back:
    def __init__(self, path):
        self.table = polars.read_parquet(path)
        said = polars.read_parquet_metadata(path)
        self.parameters = json.loads(said["refrain.parameters"])
        self.ranks = int(said["refrain.ranks"])
        # What is said where: ("parameter", name, side), ("fact", name), ("result",) -> [(form, column)].
        self.where = {}
        for column, of in json.loads(said["refrain.columns"]).items():
            if "parameter" in of:
                key = ("parameter", of["parameter"], of.get("side", "in"))
            elif "fact" in of:
                key = ("fact", of["fact"])
            else:
                key = ("result",)
            self.where.setdefault(key, []).append((of["form"], column))

    def read(self, row, key):
        return value({form: row[column] for form, column in self.where.get(key, [])})

    def argument(self, row, name):
        before, after = (self.read(row, ("parameter", name, side)) for side in ("in", "out"))
        return before if after is None else {"in": before, "out": after}

    def calls(self):
        facts = [key for key in self.where if key[0] == "fact"]
        for row in self.table.iter_rows(named=True):
            call = {name: row[name] for name in ("rank", "thread", "number")}
            if row["start_ns"] is not None:
                call |= {"start": row["start_ns"], "end": row["end_ns"]}
                if "start_error_ns" in row:
                    call |= {"start_error": row["start_error_ns"], "end_error": row["end_error_ns"]}
            call["call"] = row["call"]
            call["args"] = {name: self.argument(row, name) for name in self.parameters[row["call"]]}
            call["result"] = self.read(row, ("result",))
            said = {key[1]: self.read(row, key) for key in facts}
            said = {name: fact for name, fact in said.items() if fact is not None}
            if said:
                call["facts"] = said
            yield call


def check(parquet, dumped):
    back = Back(parquet)
    calls = 0
    with open(dumped, encoding="utf-8") as lines:
        for call, line in zip(back.calls(), lines, strict=True):
            # As JSON, so that 1 is not true and 1.0 is not 1.
            now, then = (json.dumps(one, sort_keys=True) for one in (call, json.loads(line)))
            if now != then:
                sys.exit(f"{parquet}: call {calls}\n dump: {then}\n  row: {now}")
            calls += 1
    counted = duckdb.execute("select count(*) from read_parquet($1)", [parquet]).fetchone()[0]
    groups = duckdb.execute(
        "select stats_min, stats_max from parquet_metadata($1) where path_in_schema = 'rank'", [parquet]
    ).fetchall()
    if counted != calls or any(first != last for first, last in groups):
        sys.exit(f"{parquet}: {counted} rows of {calls} calls, groups of ranks {groups}")
    if len({first for first, _ in groups}) > back.ranks:
        sys.exit(f"{parquet}: more ranks than there were")
    return calls


if __name__ == "__main__":
    files = sys.argv[1:]
    total = sum(check(parquet, dumped) for parquet, dumped in zip(files[::2], files[1::2], strict=True))
    print(f"{len(files) // 2} tables, {total} calls: equal")
