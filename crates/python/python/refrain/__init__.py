"""Traces of MPI programs.

    trace = refrain.open("app.rfn")
    for call in trace.calls(rank=3, only="p2p"):
        print(call)

The command `refrain run -- mpiexec -n 4 ./app` makes such traces.
"""

from __future__ import annotations

import json as _json
import operator as _operator
import os as _os
import warnings as _warnings

from . import _refrain
from ._refrain import Call, Calls, Error, Site, Table, __version__

__all__ = ["Call", "Calls", "Error", "Site", "Table", "Trace", "open", "__version__"]


def _number(asked):
    """A whole number of any type, such as NumPy's, as the command line has it; None for what is no number."""
    # An array of NumPy has `__index__` too, and refuses it.
    try:
        return str(_operator.index(asked))
    except TypeError:
        return None


def _numbers(asked):
    """Ranks or threads as the command line has them: 3, "0,3-5" or [0, 3, 4, 5]; "" for none of them."""
    if asked is None or isinstance(asked, str):
        return asked
    return _number(asked) or ",".join(str(_operator.index(one)) for one in asked)


def _only(asked):
    """Functions and families: "p2p,MPI_Bcast" or ["p2p", "MPI_Bcast"]."""
    return asked if asked is None or isinstance(asked, str) else ",".join(asked)


def _span(asked):
    """A range as the command line has it: "10..20", (10, 20), (10, None), range(10, 20) or one number."""
    if asked is None or isinstance(asked, str):
        return asked
    number = _number(asked)
    if number is not None:
        return number
    if isinstance(asked, range):
        if asked.step != 1:
            raise Error(f"{asked} has gaps: a range of calls has none")
        asked = (asked.start, max(asked.start, asked.stop))
    first, end = asked
    return "..".join("" if one is None else f"{one}" for one in (first, end))


def _asked(rank, thread, calls, only, between):
    """Which calls, as the command line has it. Of no ranks, no threads or no functions there are no calls."""
    words = [_numbers(rank), _numbers(thread), _span(calls), _only(only), _span(between)]
    given = (rank, thread, None, only, None)
    for at, (word, value) in enumerate(zip(words, given)):
        if word == "" and not isinstance(value, str):
            words[at], words[2] = None, "0..0"
    return tuple(words)


class Trace(_refrain.Trace):
    """A trace file, as `refrain.open` gives it."""

    __slots__ = ()

    def __repr__(self):
        return f"<refrain.Trace {str(self.path)!r}, {self.ranks} ranks>"

    @property
    def info(self):
        """What ran, on which library, and what the trace keeps: the document of `refrain info --json`."""
        return _json.loads(self._info())

    def stats(self, per=None):
        """Calls, payload and time: the document of `refrain stats --json`.

        per: None (by function and by rank), "function", "rank", "size", "peer", "signature", "site" or "path".
        """
        return _json.loads(self._stats(per))

    def waits(self):
        """Who waits for whom, and the critical path: `refrain stats --waits --json`, of runs with `--time exact`."""
        return _json.loads(self._waits())

    def loops(self, rank=None):
        """The loops of the program: the document of `refrain loops --json`."""
        return _json.loads(self._loops(_numbers(rank)))

    def calls(self, rank=None, *, thread=None, only=None, calls=None, between=None):
        """An iterator over calls, rank by rank, thread by thread, in order. They are read as they are asked for.

        rank, thread: a number, several, or "0,3-5".
        only: functions and families: "p2p", "MPI_Send,coll", ["p2p", "MPI_Bcast"].
        calls: positions in the sequence of each thread: 99, (100, 200), "100..".
        between: only calls that overlap this time, in seconds: (1.5, 2), "1.5..2".
        """
        return self._calls(_asked(rank, thread, calls, only, between))

    def table(self, rank=None, *, only=None, between=None):
        """Calls as rows, with the columns of `refrain export --to parquet`.

        Anything that takes an object with `__arrow_c_stream__` reads it without a copy: PyArrow, Polars, DuckDB, pandas 3.
        """
        return self._table(_asked(rank, None, None, only, between))

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table().__arrow_c_stream__(requested_schema)

    def to_arrow(self, rank=None, *, only=None, between=None):
        """A `pyarrow.Table`: see `table`."""
        import pyarrow

        return pyarrow.table(self.table(rank, only=only, between=between))

    def to_pandas(self, rank=None, *, only=None, between=None):
        """A `pandas.DataFrame`, through PyArrow: see `table`."""
        return self.to_arrow(rank, only=only, between=between).to_pandas()

    def to_polars(self, rank=None, *, only=None, between=None):
        """A `polars.DataFrame`: see `table`."""
        import polars

        return polars.DataFrame(self.table(rank, only=only, between=between))

    def matrix(self, what="bytes"):
        """Who sends how much to whom: a NumPy array, one row for each sender, one column for each receiver.

        what: "bytes" or "messages". Messages between two ranks only: no collective and no one-sided calls. It is computed from the folded
        form; if some of it had to be estimated or left out, a warning says so.
        """
        import numpy

        if what not in ("bytes", "messages"):
            raise Error(f"'{what}' is none of: bytes, messages")
        runs, about, left_out = self._matrix()
        if about or left_out:
            _warnings.warn(f"{self.path}: not exact; {left_out} messages are left out", stacklevel=2)
        matrix = numpy.zeros((self.ranks, self.ranks), dtype=numpy.int64)
        for offset, first, last, messages, size in runs:
            senders = numpy.arange(first, last + 1)
            matrix[senders, senders + offset] += size if what == "bytes" else messages
        return matrix


def open(path, *, modules=(), elements=None):
    """Opens a trace file.

    modules: folders with the binaries that ran, if they are elsewhere now: for the names of call sites.
    elements: read calls whose arrays have up to so many elements together, about 50 bytes of memory each (1048576 unless
    it is said). Holds for all traces from then on.
    """
    return Trace(_os.fspath(path), [_os.fspath(folder) for folder in modules], elements)
