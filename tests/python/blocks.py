"""Runs the Python blocks of a document one after the other, in one namespace, as a notebook does.

usage: blocks.py FILE.md
"""

import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
scope = {}
blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M))
for block in blocks:
    line = text[: block.start(1)].count("\n")
    exec(compile("\n" * line + block[1], sys.argv[1], "exec"), scope)
print(f"{len(blocks)} blocks ran")
