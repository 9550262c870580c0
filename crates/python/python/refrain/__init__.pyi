import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, SupportsIndex, Union

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

__version__: str
__all__: list[str]

_Numbers = Union[SupportsIndex, str, Iterable[SupportsIndex], None]
_Only = Union[str, Iterable[str], None]
_Positions = Union[SupportsIndex, str, range, tuple[Optional[int], Optional[int]], None]
_Between = Union[str, tuple[Optional[float], Optional[float]], None]

class Error(Exception):
    """A trace that cannot be read, or a question that it has no answer to."""

class Site:
    """Where a call was made: a place in the program."""

    @property
    def function(self) -> Optional[str]: ...
    @property
    def file(self) -> Optional[str]: ...
    @property
    def line(self) -> Optional[int]: ...
    @property
    def module(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def text(self) -> str: ...

class Call:
    """One call of one rank."""

    @property
    def rank(self) -> int: ...
    @property
    def thread(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> dict[str, Any]: ...
    @property
    def facts(self) -> dict[str, Any]: ...
    @property
    def start(self) -> Optional[int]: ...
    @property
    def end(self) -> Optional[int]: ...
    @property
    def errors(self) -> Optional[tuple[int, int]]: ...
    @property
    def result(self) -> Union[int, float, str, None]: ...
    @property
    def site(self) -> Optional[Site]: ...
    @property
    def stack(self) -> list[Site]: ...

class Calls(Iterator[Call]):
    """An iterator over calls."""

    def __iter__(self) -> Calls: ...
    def __next__(self) -> Call: ...

class Table:
    """Calls as rows, for whoever takes `__arrow_c_stream__`."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class Trace:
    """A trace file, as `refrain.open` gives it."""

    def __init__(self, path: Union[str, os.PathLike[str]], modules: list[str] = ..., elements: Optional[int] = ...) -> None: ...
    @property
    def path(self) -> Path: ...
    @property
    def ranks(self) -> int: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def stats(
        self, per: Optional[Literal["function", "rank", "size", "peer", "signature", "site", "path"]] = None
    ) -> dict[str, Any]: ...
    def waits(self) -> dict[str, Any]: ...
    def loops(self, rank: _Numbers = None) -> dict[str, Any]: ...
    def calls(
        self,
        rank: _Numbers = None,
        *,
        thread: _Numbers = None,
        only: _Only = None,
        calls: _Positions = None,
        between: _Between = None,
    ) -> Calls: ...
    def table(self, rank: _Numbers = None, *, only: _Only = None, between: _Between = None) -> Table: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def to_arrow(
        self, rank: _Numbers = None, *, only: _Only = None, between: _Between = None
    ) -> pyarrow.Table: ...
    def to_pandas(
        self, rank: _Numbers = None, *, only: _Only = None, between: _Between = None
    ) -> pandas.DataFrame: ...
    def to_polars(
        self, rank: _Numbers = None, *, only: _Only = None, between: _Between = None
    ) -> polars.DataFrame: ...
    def matrix(self, what: Literal["bytes", "messages"] = "bytes") -> numpy.ndarray: ...

def open(
    path: Union[str, os.PathLike[str]],
    *,
    modules: Iterable[Union[str, os.PathLike[str]]] = (),
    elements: Optional[int] = None,
) -> Trace: ...
