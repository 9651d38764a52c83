"""Questions from a table or query of a database: SQLite, or any that SQLAlchemy can reach (extra ``sql``).

Nothing is written: SQLite is opened read-only, and a query must be one that reads.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.questions.files import similar_file
from pytest_ragbench.questions.rows import Row, Source, repeated

_URL = re.compile(r"[a-zA-Z][\w+.-]*://")
_VARIABLE = re.compile(r"env:(\w+)")
_SQLITE = "sqlite:///"
# The database is opened read-only where possible; this refuses the rest before it is sent.
_READS = ("select", "with", "values", "table")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def is_database(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a database URL, or ``env:NAME`` for a variable that holds one."""
    text = str(path)
    return bool(_URL.match(text) or _VARIABLE.match(text))


def seen_from(directory: Path, path: str | os.PathLike[str]) -> str | Path:
    """A file or database named in a file of ``directory``: relative ones made absolute."""
    url = str(path)
    if not is_database(url):
        return directory / Path(url).expanduser()
    if not url.startswith(_SQLITE) or url.startswith(_SQLITE + "/"):
        return url
    return f"{_SQLITE}{directory.absolute() / url[len(_SQLITE) :]}"


@dataclass(frozen=True, slots=True)
class Database:
    """What to read, and how messages call it. ``url`` may hold a password; ``shown`` doesn't."""

    url: str
    shown: str
    table: str | None = None
    query: str | None = None

    @property
    def name(self) -> str:
        """``support.db#question_answer``, or ``support.db#query``."""
        return f"{self.shown}#{self.table or 'query'}"


def database(path: str, *, table: str | None = None, query: str | None = None) -> Database:
    """Check what the caller gave: a URL (``URL#table`` names the table, too), and a table or a query.

    Raises
    ------
    UsageError
        Neither or both of table and query, an unset variable, or a query that doesn't read.
    """
    url, mark, named = path.partition("#")
    if variable := _VARIABLE.fullmatch(url):
        url = os.environ.get(variable[1], "")
        if not _URL.match(url):
            state = "holds no database URL" if url else "is not set"
            raise UsageError(f"{path}: the variable {variable[1]} {state}; as sqlite:///support.db")
    shown = _masked(url)
    if mark:
        if table is not None and table != named:
            raise UsageError(f"{shown}: two tables are named, {named!r} and {table!r}")
        table = named
    if bool(table) == bool(query):
        raise UsageError(
            f"{shown}: name the table (table='question_answer', or #question_answer after the URL), "
            "or give a query (query='SELECT ...')" + (", not both" if table else "")
        )
    if query is not None:
        words = _COMMENT.sub(" ", query).replace("(", " ").split()
        if not words or words[0].lower() not in _READS:
            raise UsageError(f"{shown}: the query must begin with SELECT or WITH, got {query[:60]!r}")
    return Database(url, shown, table, query)


def _masked(url: str) -> str:
    """For messages: SQLite by its file name, others without password and parameters."""
    if url.startswith(_SQLITE):
        return Path(url[len(_SQLITE) :]).name or url
    return re.sub(r"(://[^/@:]*):.*@", r"\1:***@", url.partition("?")[0])


@dataclass(frozen=True, slots=True)
class _Result:
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    key: tuple[str, ...] = ()
    """The primary key of the table."""


class Sql:
    """Reads the rows of one table or query; NULL is "not given", an empty string is empty."""

    suffixes = ()

    def read(self, source: Source) -> Iterable[Row]:
        """A row for each row of the result, its number (from 1) in the place of a line.

        The order is that of the primary key or of ORDER BY; without either, rows are sorted by their values, so
        that every worker has the same list.

        Raises
        ------
        UsageError
            ``format="sql"`` for a file.
        QuestionFileError
            The database can't be reached, or there is no such table or column.
        """
        wanted = source.database
        if wanted is None:
            raise UsageError(f"{source.name}: a database is named by a URL, as sqlite:///support.db")
        result = _result(wanted)
        if twice := repeated(result.columns):
            source.stop(0, f"the result has two columns called {twice[0]}; rename one: AS ...")
        source.key = result.key[0] if len(result.key) == 1 else None
        rows = [[_cell(value) for value in row] for row in result.rows]
        # Databases return rows in any order, but every worker must have the same list.
        if not _is_ordered(wanted, result):
            rows.sort(key=repr)
        return [
            Row(number, dict(zip(result.columns, row, strict=True))) for number, row in enumerate(rows, 1)
        ]


def _is_ordered(wanted: Database, result: _Result) -> bool:
    if wanted.table:
        return bool(result.key)
    return bool(re.search(r"\border\s+by\b", _COMMENT.sub(" ", str(wanted.query)), re.IGNORECASE))


def _result(wanted: Database) -> _Result:
    try:
        url = wanted.url
        connection = _Sqlite(url) if url.startswith("sqlite://") else _Alchemy(url)
        if wanted.query:
            return connection.query(wanted.query)
        table = str(wanted.table)
        if not connection.has(table):
            hint = did_you_mean(table, connection.tables(), "tables")
            raise QuestionFileError(f"{wanted.shown}: there is no table {table!r}; {hint}")
        return connection.table(table)
    except (UsageError, KeyboardInterrupt):
        raise
    except Exception as error:  # drivers have their own classes
        said = str(getattr(error, "orig", None) or error).splitlines()
        shown = (said[0] if said else type(error).__name__).replace(wanted.url, wanted.shown)
        raise QuestionFileError(f"{wanted.name}: {_without_password(shown, wanted.url)}") from None


def _without_password(text: str, url: str) -> str:
    found = re.search(r"://[^/@:]*:(.*)@", url)
    for secret in {found[1], unquote(found[1])} if found and found[1] else ():
        text = text.replace(secret, "***")
    return text


def _cell(value: Any) -> Any:
    """What a driver returned, as question files hold it."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if value is None or isinstance(value, (str, bool, int, float, list, dict)):
        return value
    return list(value) if isinstance(value, (tuple, set, frozenset)) else str(value)  # Decimal, UUID ...


class _Sqlite:
    """The standard library's SQLite."""

    def __init__(self, url: str) -> None:
        file = Path(url.partition("?")[0][len(_SQLITE) :])
        if not url.startswith(_SQLITE) or not file.name:
            raise UsageError(f"{url}: a database in memory has no questions; write sqlite:///FILE")
        if not file.is_file():
            raise QuestionFileError(f"{file}: there is no such database{similar_file(file)}")
        self.uri = f"{file.absolute().as_uri()}?mode=ro"

    def tables(self) -> list[str]:
        found = self.query("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [str(name) for (name,) in found.rows]

    def has(self, name: str) -> bool:
        return name in self.tables()

    def table(self, name: str) -> _Result:
        quoted = _quoted(name)
        info = self.query(f"PRAGMA table_info({quoted})").rows
        key = tuple(str(row[1]) for row in sorted(info, key=lambda row: row[5]) if row[5])
        order = f" ORDER BY {', '.join(map(_quoted, key))}" if key else ""
        found = self.query(f"SELECT * FROM {quoted}{order}")  # noqa: S608 - a quoted name that exists
        return _Result(found.columns, found.rows, key)

    def query(self, text: str) -> _Result:
        connection = sqlite3.connect(self.uri, uri=True)
        try:
            cursor = connection.execute(text)
            return _Result(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())
        finally:
            connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Alchemy:
    """Any other database, by SQLAlchemy and the driver that the URL names."""

    def __init__(self, url: str) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise UsageError(
                f"{_masked(url)}: this database needs the extra 'sql': pip install 'pytest-ragbench[sql]', "
                "and the driver of your database"
            ) from None
        try:
            # Without a pool, since the connection is used once.
            self.engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
        except ImportError as error:  # the driver
            raise UsageError(f"{_masked(url)}: the driver is not installed: {error}") from None
        self.sqlalchemy = sqlalchemy

    def tables(self) -> list[str]:
        inspector = self.sqlalchemy.inspect(self.engine)
        return sorted([*inspector.get_table_names(), *inspector.get_view_names()])

    def has(self, name: str) -> bool:
        schema, _, own = name.rpartition(".")
        return bool(self.sqlalchemy.inspect(self.engine).has_table(own, schema or None))

    def table(self, name: str) -> _Result:
        schema, _, own = name.rpartition(".")
        metadata = self.sqlalchemy.MetaData()
        table = self.sqlalchemy.Table(own, metadata, schema=schema or None, autoload_with=self.engine)
        key = tuple(column.name for column in table.primary_key.columns)
        statement = self.sqlalchemy.select(table).order_by(*table.primary_key.columns)
        with self.engine.connect() as connection:
            return _rows(connection.execute(statement), key)

    def query(self, text: str) -> _Result:
        with self.engine.connect() as connection:  # never committed
            # Past SQLAlchemy's own syntax: a colon in a query doesn't name a parameter.
            return _rows(connection.exec_driver_sql(text))


def _rows(cursor: Any, key: tuple[str, ...] = ()) -> _Result:
    return _Result(tuple(cursor.keys()), [tuple(row) for row in cursor.fetchall()], key)
