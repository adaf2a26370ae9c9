"""A Spark cluster as a Database, by its Connect server: the cluster filters, joins and sorts, the client calls models.

No code, no key and no question goes to the cluster; texts that a query has to read stream out of it, and answers go
back as a relation (docs/spark.md).
"""

from __future__ import annotations

import threading

from almanaq.engines.rules import ListedFunctions
from almanaq.engines.spark.functions import list_functions
from almanaq.engines.spark.statements import Allowed
from almanaq.errors import SourceError, engine_error, first_line
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.schema_file import Schema, apply_schema, check_keys
from almanaq.suql.databases.spark_catalog import SparkCatalogReader
from almanaq.suql.databases.spark_driver import Remote, is_fault
from almanaq.suql.databases.spark_folder import named, sweep
from almanaq.suql.databases.spark_session import SparkQuerySession
from almanaq.suql.databases.spark_url import read_spark_url
from almanaq.suql.language import Parameters
from almanaq.suql.tree_language import TreeLanguage


class SparkDatabase:
    """A Database on a Spark Connect server; sessions read, and write to the folder that the address names alone.

    Args:
        url: `sc://host:15002/;catalog=…;schema=…;folder=…`.
        schema: what a schema file says, applied over what the cluster says; its keys are checked.
    """

    dialect = "spark"
    typed = True
    groups_texts = True

    def __init__(self, url: str, *, schema: Schema | None = None) -> None:
        self._url, self._schema = read_spark_url(url), schema or Schema()
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._functions: ListedFunctions | None = None
        self.name = self._url.schemas[0] if self._url.schemas else "spark"
        self._remote = Remote(self._url)
        self._use_schema()
        if self._url.folder:
            try:
                sweep(self._remote, self._url.folder, "almanaq-sweep")
            except Exception as error:
                raise self._source_error("look through the folder", error) from None

    def catalog(self) -> Catalog:
        """Return the tables that the session sees, read once; raises SourceError when the schema file does not fit."""
        with self._lock:
            if self._catalog is None:
                self._catalog = self._read(SparkCatalogReader(self._remote, self._url))
            return self._catalog

    def session(self, deadline: float | None = None) -> SparkQuerySession:
        """Open a session whose work is interrupted `deadline` seconds from now (None: never)."""
        places = frozenset(
            tuple(part.lower() for part in relation.location[start:])
            for relation in self.catalog().relations
            for start in range(3)
        )
        return SparkQuerySession(self._remote, Allowed(places, self.functions()), self._url.folder, deadline)

    def language(self, catalog: Catalog) -> TreeLanguage:
        """Return Spark SQL over the relations of a catalog: this one's, or what is left of it."""
        return TreeLanguage(
            self.dialect, catalog, self.functions(), self._describe, lambda text: self._describe(text, ())
        )

    def functions(self) -> ListedFunctions:
        """Return the functions that the server lists, read once."""
        with self._lock:
            if self._functions is None:
                try:
                    self._functions = list_functions(*self._remote.functions())
                except Exception as error:
                    raise self._source_error("read the functions", error) from None
            return self._functions

    def _use_schema(self) -> None:
        """Let names mean on the server what they mean here, as far as it can know: in the first schema."""
        place = [part for part in (self._url.catalog, *self._url.schemas[:1]) if part]
        if not place:
            return
        try:
            self._remote.command(f"USE {named(*place)}", "almanaq-use")
        except Exception as error:
            raise self._source_error("use the schema", error) from None

    def _describe(self, sql: str, parameters: Parameters) -> tuple[str, ...]:
        try:
            return self._remote.names(sql, parameters)
        except Exception as error:
            if not is_fault(error):
                raise
            raise engine_error(first_line(error)[:600], type(error)) from error

    def close(self) -> None:
        """End the session on the server, and with it everything that it holds for this client."""
        self._remote.close()

    def _read(self, reader: SparkCatalogReader) -> Catalog:
        try:
            catalog = apply_schema(reader.read(), self._schema)
            check_keys(catalog, self._schema, reader.relations.key_holds)
            return Catalog(tuple(reader.relations.completed(relation) for relation in catalog.relations))
        except Exception as error:
            raise self._source_error("read the catalog", error) from None

    def _source_error(self, purpose: str, error: Exception) -> Exception:
        if not is_fault(error) or isinstance(error, SourceError):
            return error
        message = self._url.hide(first_line(error))
        return SourceError(f"cannot {purpose} of {self._url.shown}: {message[:300]}")
