"""The handbook's questions in SQL, asked of a table as DuckDB, and the table as Polars and pandas see it.

usage: questions.py formats.md STATS.json FOLDER (with app.parquet and app.csv in it)
"""

import json
import os
import re
import sys

import duckdb
import polars

chapter, stats, folder = sys.argv[1:]
with open(stats, encoding="utf-8") as file:
    stats = json.load(file)
with open(chapter, encoding="utf-8") as file:
    questions = re.findall(r"duckdb\.sql\('''(.*?)'''", file.read(), re.S)
questions = [question.replace("\\\n", " ").replace("stencil2d.parquet", "app.parquet") for question in questions]
os.chdir(folder)
answers = [duckdb.sql(question).fetchall() for question in questions]
assert len(questions) == 3 and all(answers), answers

# What stats says, function by function.
counted = {row["function"]: (row["calls"], row.get("payload")) for row in stats["functions"]}
summed = duckdb.sql("select call, count(*), sum(bytes) from 'app.parquet' group by call").fetchall()
assert {call: (calls, None if total is None else int(total)) for call, calls, total in summed} == counted, (
    summed,
    counted,
)
# The slowest function first, all of them there.
assert {row[0] for row in answers[1]} == set(counted)
assert [row[2] for row in answers[1]] == sorted((row[2] for row in answers[1]), reverse=True)

# The same rows as text.
table = polars.read_parquet("app.parquet")
text = duckdb.sql("select rank, number, call, bytes, dest, start_ns from 'app.csv'").fetchall()
assert text == table.select("rank", "number", "call", "bytes", "dest", "start_ns").rows()
print(json.dumps({"rows": table.height, "sent by rank 3": answers[0]}))
