"""The language of engines that give no tree of their own: sqlglot reads, and what runs is written from its tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.engines.rendering import write_texts
from almanaq.errors import (
    DatabaseError,
    QuerySyntaxError,
    RefusedQueryError,
    UnknownNameError,
    UnsupportedError,
    first_line,
)
from almanaq.suql.catalog.reading import narrow
from almanaq.suql.catalog.relations import Catalog, Relation, fold, unique_names
from almanaq.suql.catalog.sources import find_cte, is_aggregate, is_of_window
from almanaq.suql.language import WORK_SCHEMA, Parameters, Part, SplitStatement, Statement, parameters_of
from almanaq.suql.names import MISREAD
from almanaq.suql.syntax.limits import as_query, check_length, check_tokens, single_statement
from almanaq.suql.syntax.nodes import in_parentheses, nodes, nodes_of
from almanaq.suql.text_functions import TEXT_FUNCTIONS, check_arity, declared, has_text, is_text_call, own_nodes

_CLAUSES = (
    *(exp.Condition, exp.Query, exp.Alias, exp.Aliases, exp.Cluster, exp.CTE, exp.Cube, exp.DataType),
    *(exp.DataTypeParam, exp.Distinct, exp.Distribute, exp.Fetch, exp.Filter, exp.From, exp.Group, exp.GroupingSets),
    *(exp.Identifier, exp.IgnoreNulls, exp.Interval, exp.IntervalSpan, exp.Join, exp.JSONKeyValue, exp.JSONPath),
    *(exp.JSONPathPart, exp.Kwarg, exp.Lambda, exp.Lateral, exp.Limit, exp.LimitOptions, exp.Offset, exp.Order),
    *(exp.Ordered, exp.Pivot, exp.PropertyEQ, exp.Qualify, exp.RespectNulls, exp.Rollup, exp.Sort, exp.Star, exp.Table),
    *(exp.TableAlias, exp.TableSample, exp.Tuple, exp.UnpivotColumns, exp.Values, exp.Var, exp.Where, exp.WindowSpec),
    *(exp.Having, exp.With, exp.WithinGroup),
)
"""Classes of what a query that reads is made of; with DML, DDL, commands, INTO and locks, which are none of it."""
_WRITING = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.SessionParameter)
_REFUSED_CLAUSES = ("for_", "format", "hint", "into", "locks", "operation_modifiers", "options", "settings")
"""Clauses of a query that change how a server works, or what it does beside giving rows."""
_SYNTAX = frozenset(
    """
    all and any array as between by case cast contains cross cube distinct else except exists extract fetch filter from
    full group grouping having ilike in inner intersect interval is join lateral left like limit map materialized
    not offset on or order outer over partition pivot qualify right rlike rollup select sets some struct tablesample
    then try_cast union unnest unpivot using values when where with within
    """.split()
)
"""Words that a parenthesis may follow and that call no function."""
_NULL_HAS_NO_TYPE = ("databricks", "spark")
"""Where NULL has a type of its own, which is not taken for any other."""
_NO_BOOLEANS = ("clickhouse", "mysql")
_CONSTRUCTORS = ("ARRAY", "LIST")
"""Of these sqlglot takes a call that it does not know, with a subscript behind it, for an array of the subscript."""
_LITERALS = (TokenType.NUMBER, TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING)
_MEMBER = re.compile(r"AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\(", re.IGNORECASE)
_HARMLESS = re.compile(r"[\w .:%$,+/\[\]-]{0,60}")
"""Texts that a printer makes itself: units, paths of JSON, templates of dates."""


class FunctionRules(Protocol):
    """Which functions a query may call, by the engine's own catalog."""

    @property
    def aggregates(self) -> frozenset[str]:
        """Names of the functions that aggregate, in lower case."""

    def check(self, name: str, *, in_from: bool, allowed: frozenset[str], **place: Any) -> None:
        """Raise UnknownNameError or RefusedQueryError unless a query may call a function.

        Args:
            in_from: whether it is called as an item of FROM.
            allowed: names that the user vouches for, in lower case.
            place: where the call is written, for the error.
        """


class TreeLanguage:
    """What an engine makes of a text, as far as sqlglot knows its dialect.

    Args:
        dialect: sqlglot's name of it.
        catalog: the relations that queries may name.
        functions: the functions that they may call.
        describe: gives the names of the columns of a query's result, as the engine calls them.
        describe_text: gives the names of a text as it was given, where the engine makes them of how it is spelled.
    """

    def __init__(
        self,
        dialect: str,
        catalog: Catalog,
        functions: FunctionRules,
        describe: Callable[[str, Parameters], Sequence[str]],
        describe_text: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self.dialect, self.binds_texts = dialect, False
        self._catalog, self._functions, self._describe = catalog, functions, describe
        self._describe_text = describe_text
        self._reader = read_dialect(dialect)
        self.returns: Mapping[str, str] = {}

    @property
    def aggregates(self) -> frozenset[str]:
        return self._functions.aggregates

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        check_length(text)
        tree = self._parse(text)
        check_reads(tree)
        relations = self._place_relations(tree, text)
        sql = self._write(tree)
        before, after = (Counter(_literals(self._reader.tokenize(each), self.dialect)) for each in (text, sql))
        if lost := before - after:
            raise UnsupportedError(
                f"sqlglot does not read a form of {self.dialect} as it is: {next(iter(lost))!r} is lost"
            )
        for name, in_from in called_names(sql, tree, self._reader):
            if name.lower() not in TEXT_FUNCTIONS:
                self._functions.check(name, in_from=in_from, allowed=allowed, **_place(name, text))
        parameters = tuple(dict.fromkeys(_parameters(self._reader.tokenize(text))))
        has_calls, narrowed = has_text(tree), [r for _, r in relations if r.is_narrowed]
        if narrowed:
            for table, relation in relations:
                if relation.is_narrowed:
                    narrow(table, relation, self.dialect)
        shown = self._write(tree) if narrowed else sql
        named = tuple(dict.fromkeys(r.name for _, r in relations))
        labels = () if has_calls or parameters or narrowed else self._labels(text, tree)
        return Statement(text, sql, shown, has_calls, named, parameters, labels=labels)

    def _labels(self, text: str, tree: exp.Expr) -> tuple[str, ...]:
        """Return what the engine calls the columns of a text, where it is to be asked; () where it does not tell.

        Nothing runs: the text was checked as far as it is the same as what is written of its tree.
        """
        first = next(nodes_of(tree, exp.Select).__iter__(), None)
        computed = first is not None and any(
            not isinstance(n, exp.Alias | exp.Column | exp.Star) for n in first.expressions
        )
        if self._describe_text is None or not computed or re.search("--|/\\*", text):
            return ()
        try:
            return tuple(self._describe_text(text))
        except DatabaseError:  # the text names relations by what they are called here, not there
            return ()

    def tree(self, statement: Statement, width: int) -> exp.Expr:  # noqa: ARG002
        """Return sqlglot's tree of a statement, in which it knows those functions that it writes back as they are."""
        tree = self._parse(statement.sql).transform(self._know_function)
        for join in nodes_of(tree, exp.Join):
            if join.args.get("kind") in ("SEMI", "ANTI"):
                join.set("side", None)  # LEFT says nothing there, and no row without a match is kept
        for block in nodes_of(tree, exp.Select):
            self._write_keys(block)
        return tree

    def _write_keys(self, block: exp.Select) -> None:
        """Write GROUP BY ALL out: the outputs that hold no aggregate."""
        group = block.args.get("group")
        if group is None or not group.args.get("all") or any(item.is_star for item in block.expressions):
            return
        named = [item.unalias() for item in block.expressions]
        over = [any(self._aggregates(node) for node in own_nodes(item)) for item in named]
        keys = [item for item, aggregated in zip(named, over, strict=True) if not aggregated]
        keys = [key.copy() for key in keys if not isinstance(key, exp.Literal) and not key.find(exp.Window)]
        if keys:
            block.set("group", exp.Group(expressions=keys))
        elif any(over):
            block.set("group", None)

    def _aggregates(self, node: exp.Expr) -> bool:
        named = isinstance(node, exp.Anonymous) and node.name.lower() in self.aggregates
        return (named or is_aggregate(node)) and not is_of_window(node)

    def split(self, statement: Statement, prefix: str, parameters: Parameters = ()) -> Iterator[SplitStatement]:
        """Yield a statement whose derived tables with text functions become tables; nothing where others are left."""
        tree = self._parse(statement.sql)
        with_ = tree.args.get("with_")
        parts: list[Part] = []
        for derived in nodes_of(tree, exp.Subquery):
            if not isinstance(derived.this, exp.Query) or not isinstance(derived.parent, exp.From | exp.Join):
                continue  # what sees something around it is no table by itself
            if not has_text(derived):
                continue
            query = derived.this.copy()
            if with_ is not None and not has_text(with_):
                query.set("with_", with_.copy())
            part = self._part(f"{prefix}{len(parts)}", query, statement, parameters)
            made = exp.Table(this=exp.to_identifier(part.name), db=exp.to_identifier(WORK_SCHEMA))
            derived.set("this", exp.select("*").from_(made))
            parts.append(part)
        if not parts or has_text(tree):
            return
        left = tuple(dict.fromkeys(_parameters(self._reader.tokenize(self._write(tree)))))
        yield SplitStatement(tuple(parts), self._write(tree), left)

    def _part(self, name: str, query: exp.Query, whole: Statement, parameters: Parameters) -> Part:
        sql = self._write(query)
        used = tuple(dict.fromkeys(_parameters(self._reader.tokenize(sql))))
        statement = Statement(whole.text, sql, sql, True, whole.relations, used)
        names = unique_names(self.names(statement, parameters_of(used, parameters)))
        read = [r for r in map(self._catalog.find, whole.relations) if r is not None]
        private = tuple(f"{r.name}.{c.name}" for r in read for c in r.columns if c.private)
        return Part(name, statement, tuple((label, "unknown") for label in names), private)

    def names(self, statement: Statement, parameters: Parameters = ()) -> tuple[str, ...]:
        """Return what the engine calls the columns of a statement's result; raises its error where it does not bind."""
        if not statement.has_text:
            return tuple(self._describe(statement.shown, parameters))
        stubbed = stub_text_calls(self._parse(statement.shown), self.dialect)
        return tuple(self._describe(self._write(stubbed), parameters))

    def check_types(self, tree: exp.Query) -> None:
        """Check nothing: these engines take texts for numbers, or tell what they do not take as they run."""

    def _parse(self, text: str) -> exp.Expr:
        return read_tree(text, self._reader)

    def _know_function(self, node: exp.Expr) -> exp.Expr:
        """Return sqlglot's node of a function where it writes the call back as it is; another node as it is."""
        if not isinstance(node, exp.Anonymous) or isinstance(node.parent, exp.WithinGroup) or is_text_call(node):
            return node
        build = self._reader.parser_class.FUNCTIONS.get(node.name.upper())
        if build is None:
            return node
        arguments = [argument.copy() for argument in node.expressions]
        try:
            try:
                known = build(arguments)
            except TypeError:
                known = build(arguments, dialect=self._reader)
            same = _call_parts(self._write(known)) == _call_parts(self._write(node))
        except (UnsupportedError, *MISREAD):
            return node
        return known if same else node

    def _write(self, tree: exp.Expr) -> str:
        return write_tree(tree, self._reader)

    def _place_relations(self, tree: exp.Expr, text: str) -> list[tuple[exp.Table, Relation]]:
        def folded(identifier: exp.Expr) -> str:
            return fold(identifier.name, self.dialect, quoted=bool(identifier.args.get("quoted")))

        found = []
        for table in nodes_of(tree, exp.Table):
            if not isinstance(table.this, exp.Identifier) or find_cte(table, folded) is not None:
                continue
            name = ".".join(part.name for part in table.parts)
            relation = self._catalog.find(name)
            if relation is None:
                place = {key: table.this.meta.get(key) for key in ("start", "end")}
                raise UnknownNameError(self._catalog.unknown(name), query=text, **place)
            if confused := self._catalog.confused(relation):
                raise UnsupportedError(confused)
            if table.args.get("version") or table.args.get("when"):
                raise UnsupportedError("tables are read as they are: leave out the version")
            if table.args.get("alias") is None:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            elif table.args["alias"].this is None:
                table.args["alias"].set("this", table.this.copy())
            for part, place_ in zip(("catalog", "db", "this"), ["", "", *relation.location][-3:], strict=True):
                table.set(part, exp.to_identifier(place_, quoted=True) if place_ else None)
            found.append((table, relation))
        return found


def _call_parts(call: str) -> tuple[str, str]:
    name, _, rest = call.partition("(")
    return name.upper(), rest


def read_dialect(dialect: Dialect | str) -> Dialect:
    """Return sqlglot's dialect of a name, corrected where it reads texts otherwise than the engine."""
    if dialect in ("databricks", "spark"):
        import_module("almanaq.suql.syntax.spark")  # which takes time that other engines need not take
    return Dialect.get_or_raise(dialect)


def read_tree(text: str, dialect: Dialect | str) -> exp.Expr:
    """Return the tree of the one statement that a text holds, with calls as they are written: no function is known."""
    reader = read_dialect(dialect)
    try:
        tokens = list(name_placeholders(reader.tokenize(text)))
        check_tokens(tokens)
        _keep_calls(tokens)
        _check_numbers(tokens, text)
        trees = [tree for tree in reader.parser().parse(tokens, text) if tree is not None]
    except ParseError as error:
        raise _syntax_error(error, text) from error
    except (SqlglotError, *MISREAD) as error:
        raise QuerySyntaxError(f"the query cannot be read: {first_line(error)}") from error
    tree = single_statement(trees)
    for node in nodes(tree):
        node.comments = None  # equal expressions are to be written alike
    return tree


def name_placeholders(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield tokens in which each `?` has a name, `:_1`: a tree does not tell in which order they were written."""
    count = 0
    for token in tokens:
        if token.token_type != TokenType.PLACEHOLDER or token.text != "?":
            yield token
            continue
        count += 1
        place = (token.line, token.col, token.start, token.end)
        yield Token(TokenType.COLON, ":", *place)
        yield Token(TokenType.VAR, f"_{count}", *place)


def _keep_calls(tokens: Sequence[Token]) -> None:
    """Tell sqlglot, by the comment that it knows, to leave calls as they are written."""
    opened = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type == TokenType.L_PAREN:
            opened.append(before.text.upper() if before is not None else "")
        elif token.token_type == TokenType.R_PAREN and opened and opened.pop() not in _CONSTRUCTORS:
            token.comments = [exp.SQLGLOT_ANONYMOUS]


def _check_numbers(tokens: Sequence[Token], text: str) -> None:
    """Refuse `2.5BD`, from which sqlglot makes a decimal without decimals."""
    for token in tokens:
        if token.token_type == TokenType.DECIMAL and token.text.upper() == "BD":
            written = text[token.start : token.end + 1]
            raise UnsupportedError(f"{written} is not supported: write {written[:-2]}, which is a decimal too")


def write_tree(tree: exp.Expr, dialect: Dialect | str) -> str:
    writer = Dialect.get_or_raise(dialect)
    options: dict[str, Any] = {"comments": False, "normalize_functions": False}
    try:
        written = write_texts(tree.copy(), type(writer).__name__.lower())
        return written.sql(writer, unsupported_level=ErrorLevel.RAISE, **options)
    except (SqlglotError, *MISREAD) as error:
        name = type(writer).__name__.lower()
        raise UnsupportedError(f"the query cannot be written for {name}: {first_line(error)}") from error


def called_names(sql: str, tree: exp.Expr, dialect: Dialect | str) -> Iterator[tuple[str, bool]]:
    """Yield the names that are called in what was written of a tree, and whether as items of FROM."""
    reader = Dialect.get_or_raise(dialect)
    in_from = {_find_called_name(table.this, reader) for table in nodes_of(tree, exp.Table, exp.Lateral)}
    tokens = reader.tokenize(sql)
    types = reader.parser_class.TYPE_TOKENS
    literals = {node.this for node in nodes_of(tree, exp.Literal, exp.ByteString, exp.RawString)}
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        kind = token.token_type
        if token.comments or kind == TokenType.SEMICOLON:
            raise RefusedQueryError("a query holds no comments or semicolons where it is written again")
        if kind == TokenType.STRING and token.text not in literals and not _HARMLESS.fullmatch(token.text):
            raise RefusedQueryError("a text that the query does not have is not sent to a database")
        if after is None or after.token_type != TokenType.L_PAREN or not re.match(r'["`\[\w]', sql[token.start :]):
            continue
        word = sql[token.start : token.end + 1].upper()
        of_pivot = before is not None and (
            (word == "NULLS" and before.text.upper() in ("INCLUDE", "EXCLUDE"))
            or (word == "FOR" and before.token_type in (TokenType.R_PAREN, TokenType.VAR))
        )
        named = before is not None and before.token_type in (TokenType.ALIAS, TokenType.WITH, TokenType.DCOLON)
        if (
            named
            or of_pivot
            or token.text.lower() in _SYNTAX
            or (" " in token.text and sql[token.start] not in "`\"['")  # GROUP BY, GROUPING SETS
            or (kind in types and kind != TokenType.VAR)
        ):
            continue
        if before is not None and before.token_type == TokenType.DOT:
            raise RefusedQueryError(f"call {token.text}() without the name of a schema")
        if not _is_member_list(tokens, after, sql):
            yield token.text, token.text.lower() in in_from


def check_reads(tree: exp.Expr) -> None:
    for node in nodes(as_query(tree)):
        if isinstance(node, _WRITING) or not isinstance(node, _CLAUSES):
            raise RefusedQueryError(f"{node.key.upper()} is not allowed in a query")
        if isinstance(node, exp.Query) and (clause := next((c for c in _REFUSED_CLAUSES if node.args.get(c)), None)):
            raise RefusedQueryError(f"{clause.strip('_').upper()} is not allowed in a query")
        if isinstance(node, exp.Parameter) and not re.fullmatch(r"\w+", node.name):
            raise RefusedQueryError("a parameter is a name or a number")
        if isinstance(node, exp.Window) and is_text_call(node.this):
            raise UnsupportedError(f"{node.this.name}() is no window function: it reads one document of each row")
        if isinstance(node, exp.Anonymous) and is_text_call(node):
            check_arity(node.name, len(node.expressions))


def stub_text_calls(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Return a tree with NULL for each text call, which still mentions its arguments; columns keep their names."""
    for block in nodes_of(tree, exp.Select):
        for shown in block.expressions:
            if not isinstance(shown, exp.Alias) and has_text(shown):
                inner = shown.this if isinstance(shown, exp.Cast) else shown
                name = inner.name if is_text_call(inner) else shown.sql(dialect)
                shown.replace(exp.alias_(shown.copy(), name, quoted=True))

    def stub(node: exp.Expr) -> exp.Expr:
        if not is_text_call(node):
            return node
        null: exp.Expr = exp.null()
        if dialect not in _NO_BOOLEANS and _is_condition(node):
            null = exp.cast(null, "boolean")
        elif declared(node).type != "text" or dialect in _NULL_HAS_NO_TYPE:
            null = exp.cast(null, declared(node).type)
        case = exp.Case(default=null.copy())
        for argument in node.expressions:
            case.append("ifs", exp.If(this=argument.transform(stub).is_(exp.null()), true=null.copy()))
        return case

    return tree.transform(stub)


def _is_condition(node: exp.Expr) -> bool:
    node = in_parentheses(node)
    above = node.parent
    if isinstance(above, exp.If):
        return above.this is node and not (isinstance(above.parent, exp.Case) and above.parent.this is not None)
    if isinstance(above, exp.Join):
        return above.args.get("on") is node
    return isinstance(above, exp.And | exp.Or | exp.Not | exp.Where | exp.Having | exp.Qualify)


def _literals(tokens: Sequence[Token], dialect: str) -> Iterator[str]:
    """Yield the literals of a query as they are written back: `.5` is `0.5`.

    Spark looks at the length of VARCHAR and CHAR in definitions of tables alone, and it is not written.
    """
    none = Token(TokenType.SEMICOLON, "")
    unlimited = (TokenType.VARCHAR, TokenType.CHAR) if dialect in ("databricks", "spark") else ()
    for earlier, before, token in zip([none, none, *tokens], [none, *tokens], tokens, strict=False):
        is_length = before.token_type == TokenType.L_PAREN and earlier.token_type in unlimited
        if token.token_type not in _LITERALS or is_length:
            continue
        is_fraction = before.token_type == TokenType.DOT and token.token_type == TokenType.NUMBER
        yield f"0.{token.text}" if is_fraction and before.end + 1 == token.start else token.text


def _place(name: str, text: str) -> dict[str, Any]:
    found = re.search(rf"\b{re.escape(name)}\s*\(", text, re.IGNORECASE)
    return {} if found is None else {"query": text, "start": found.start(), "end": found.start() + len(name) - 1}


def _find_called_name(node: exp.Expr | None, dialect: Dialect) -> str:
    if not isinstance(node, exp.Func):
        return ""
    return node.sql(dialect, unsupported_level=ErrorLevel.IGNORE).partition("(")[0].strip().lower()


def _is_member_list(tokens: Sequence[Token], opening: Token, sql: str) -> bool:
    """Return whether a parenthesis holds the columns of a member of WITH: `AS (` follows it and a query."""
    depth = 0
    for token in tokens:
        if token.start < opening.start:
            continue
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            after = _MEMBER.match(sql[token.end + 1 :].lstrip())
            rest = sql[token.end + 1 :].lstrip()[after.end() :].lstrip() if after is not None else ""
            return re.match(r"\(|SELECT\b|WITH\b|VALUES\b|TABLE\b|FROM\b", rest, re.IGNORECASE) is not None
    return False


def _parameters(tokens: Sequence[Token]) -> Iterator[str]:
    count = 0
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.token_type == TokenType.PLACEHOLDER and token.text == "?":
            count += 1
            yield str(count)
        elif token.token_type in (TokenType.PARAMETER, TokenType.COLON) and after is not None:
            if token.end + 1 == after.start and after.token_type in (TokenType.VAR, TokenType.NUMBER):
                yield after.text.removeprefix("_") if re.fullmatch(r"_\d+", after.text) else after.text


def _syntax_error(error: ParseError, text: str) -> QuerySyntaxError:
    details = error.errors[0] if error.errors else {}
    message = str(details.get("description") or first_line(error)).partition(" but got <Token")[0].rstrip(".")
    highlight, line, column = details.get("highlight"), details.get("line"), details.get("col")
    if not (highlight and isinstance(line, int) and isinstance(column, int)):
        return QuerySyntaxError(f"the query cannot be read: {message}")
    # sqlglot counts the column at the end of the token.
    start = max(0, sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - len(str(highlight)))
    end = start + len(str(highlight)) - 1
    return QuerySyntaxError(f"{message} near {highlight!r}", query=text, start=start, end=end)
