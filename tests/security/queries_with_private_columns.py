"""Random queries over tables with private columns, each expression with whether a private column is in its value.

The generator keeps its own account while it writes, in no way that the product's own decision could share.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

CANARY = "canary-7731"
SCHEMA = """
[people.columns.ssn]
private = true
[people.columns.bio]
kind = "free_text"
[people.columns.codes]
private = true
[people.columns.grade]
kind = "enum"
private = true
[visits.columns.note]
kind = "free_text"
"""
TABLES = {
    "people": pa.table(
        {
            "id": [1, 2, 3, 4],
            "name": ["Ada", "Bo", "Cy", "Zed"],
            "ssn": [CANARY + "-1", CANARY + "-2", "x", "z"],
            "bio": ["Swims a lot.", "Reads.", None, "Sings."],
            "codes": [[CANARY + "-3"], [], ["y"], []],
            "grade": [CANARY + "-4", "low", CANARY + "-4", "low"],
        }
    ),
    "visits": pa.table({"id": [1, 2], "person": [1, 2], "note": ["Came late.", "Left early."]}),
}
COLUMNS = {  # the columns of text, and whether they are private; codes is an array
    "people": (("name", False), ("ssn", True), ("bio", False), ("grade", True)),
    "visits": (("note", False),),
}
ALL = {"people": ("id", "name", "ssn", "bio", "codes", "grade"), "visits": ("id", "person", "note")}


@dataclass(frozen=True)
class Text:
    """An expression of text, and whether its value holds that of a private column."""

    sql: str
    private: bool


@dataclass
class Item:
    """An item of FROM under an alias, with its columns of text."""

    sql: str
    alias: str
    columns: list[tuple[str, bool]]
    row_private: bool
    rowed: bool = True
    """Whether its row may be written as a value: `alias::text`."""


@dataclass
class Writer:
    """Writes one query; `made` counts aliases, `with_` holds the members of WITH."""

    random: random.Random
    with_: list[str] = field(default_factory=list)
    made: int = 0

    def alias(self) -> str:
        self.made += 1
        return f"a{self.made}"

    def pick(self, *choices: object) -> object:
        return self.random.choice(choices)

    # --- items of FROM -----------------------------------------------------------------------------------------------

    def item(self, depth: int) -> Item:
        """Write an item that stands alone in a FROM."""
        kinds = [self.base, self.base, self.renamed]
        if depth > 0:
            kinds += [self.derived, self.starred, self.union, self.member, self.grouped, self.using]
        return self.random.choice(kinds)(depth)

    def base(self, depth: int) -> Item:
        table, alias = str(self.pick("people", "people", "visits")), self.alias()
        return Item(f"{table} AS {alias}", alias, list(COLUMNS[table]), table == "people")

    def renamed(self, depth: int) -> Item:
        """`people AS z(a, b, …)`, where a name may be one that another column has."""
        table, alias = str(self.pick("people", "people", "visits")), self.alias()
        own = ALL[table]
        private = dict(COLUMNS[table])
        texts = self.random.sample(list(private), len(private)) if self.random.random() < 0.4 else []
        names = [texts.pop() if name in private and texts else f"c{i}" for i, name in enumerate(own)]
        columns = [(new, private[old]) for new, old in zip(names, own, strict=True) if old in private]
        return Item(f"{table} AS {alias}({', '.join(names)})", alias, columns, table == "people")

    def derived(self, depth: int) -> Item:
        inner, alias = self.sources(depth - 1), self.alias()
        shown = [self.text(inner, 1) for _ in range(self.random.randint(1, 2))]
        listed = ", ".join(f"{each.sql} AS x{i}" for i, each in enumerate(shown))
        columns = [(f"x{i}", each.private) for i, each in enumerate(shown)]
        sql = f"(SELECT {listed} FROM {self.joined(inner)}{self.where(inner)})"
        names, columns = self.names(columns)
        return Item(f"{sql} AS {alias}{names}", alias, columns, any(p for _, p in columns))

    def starred(self, depth: int) -> Item:
        inner, alias = self.item(depth - 1), self.alias()
        return Item(f"(SELECT * FROM {inner.sql}) AS {alias}", alias, inner.columns, inner.row_private)

    def union(self, depth: int) -> Item:
        sides, alias = [self.sources(depth - 1) for _ in range(2)], self.alias()
        shown = [self.text(side, 1) for side in sides]
        selects = [f"SELECT {each.sql} AS x0 FROM {self.joined(side)}" for each, side in zip(shown, sides, strict=True)]
        private = any(each.private for each in shown)
        word = self.pick("UNION ALL", "UNION", "EXCEPT ALL")
        names, columns = self.names([("x0", private)])
        return Item(f"({selects[0]} {word} {selects[1]}) AS {alias}{names}", alias, columns, private)

    def member(self, depth: int) -> Item:
        """A member of WITH, sometimes under the name of the table that it reads."""
        inner, name, alias = self.sources(depth - 1), self.alias(), self.alias()
        shown = self.text(inner, 1)
        self.with_.append(f"{name}(y0) AS (SELECT {shown.sql} FROM {self.joined(inner)})")
        return Item(f"{name} AS {alias}", alias, [("y0", shown.private)], shown.private)

    def grouped(self, depth: int) -> Item:
        inner, alias = self.item(depth - 1), self.alias()
        shown = self.text([inner], 1)
        made = self.pick("max({})", "string_agg({}, ',')", "array_agg({})::text", "min({})")
        sql = f"(SELECT {str(made).format(shown.sql)} AS g FROM {inner.sql})"
        return Item(f"{sql} AS {alias}", alias, [("g", shown.private)], shown.private)

    def using(self, depth: int) -> Item:
        alias = self.alias()
        word = self.pick(
            "people JOIN visits USING (id)", "people NATURAL JOIN visits", "visits LEFT JOIN people USING (id)"
        )
        shown = self.pick(("note", False), ("ssn", True), ("bio", False), ("name", False))
        return Item(f"(SELECT {shown[0]} AS u, id FROM {word}) AS {alias}", alias, [("u", shown[1])], shown[1])

    def names(self, columns: list[tuple[str, bool]]) -> tuple[str, list[tuple[str, bool]]]:
        """Return new names to a derived table's columns, sometimes."""
        if self.random.random() < 0.5:
            return "", columns
        new = [(f"n{i}", private) for i, (_, private) in enumerate(columns)]
        return f"({', '.join(name for name, _ in new)})", new

    def sources(self, depth: int) -> list[Item]:
        """Write one to three items of a FROM; a later one may read the earlier."""
        items = [self.item(depth)]
        if self.random.random() < 0.4:
            items.append(self.item(0))
        if self.random.random() < 0.5:
            items.append(self.lateral(items))
        return items

    def lateral(self, before: list[Item]) -> Item:
        shown, alias = self.text(before, 1), self.alias()
        other = self.text(before, 0)
        forms = {
            f"LATERAL (SELECT {shown.sql} AS x) AS {alias}": shown.private,
            f"LATERAL (SELECT {shown.sql} AS q) AS {alias}(x)": shown.private,
            f"unnest(ARRAY[{shown.sql}, {other.sql}]) AS {alias}(x)": shown.private or other.private,
        }
        sql = self.random.choice(list(forms))
        return Item(sql, alias, [("x", forms[sql])], forms[sql], rowed=False)

    def joined(self, items: list[Item]) -> str:
        return ", ".join(item.sql for item in items)

    def where(self, items: list[Item]) -> str:
        """Conditions make no value: they may read what is private."""
        if self.random.random() < 0.5:
            return ""
        return f" WHERE {self.text(items, 0).sql} IS NOT NULL"

    # --- expressions -------------------------------------------------------------------------------------------------

    def text(self, items: list[Item], depth: int) -> Text:
        item = self.random.choice(items)
        name, private = self.random.choice(item.columns)
        column = Text(f"{item.alias}.{name}", private)
        if depth == 0 or self.random.random() < 0.4:
            return column
        other = self.text(items, depth - 1)
        both = column.private or other.private
        forms = [
            Text(f"upper({column.sql})", column.private),
            Text(f"({column.sql} || ' ' || {other.sql})", both),
            Text(f"coalesce({column.sql}, {other.sql})", both),
            Text(f"CASE WHEN {column.sql} IS NULL THEN {other.sql} ELSE 'none' END", both),
        ]
        if item.rowed:
            row = self.pick(f"{item.alias}::text", f"({item.alias})::text")
            forms.append(Text(str(row), item.row_private))
            forms.append(Text(f"({item.alias}).{name}", private))
        if "people AS" in item.sql and item.sql.endswith(f"people AS {item.alias}"):
            forms.append(Text(f"{item.alias}.codes[1]", True))
        inner = self.item(0)
        scalar = self.text([inner], 0)
        forms.append(Text(f"(SELECT max({scalar.sql}) FROM {inner.sql})", scalar.private))
        return self.random.choice(forms)

    # --- whole queries -----------------------------------------------------------------------------------------------

    def whole(self, select: str, items: list[Item], rest: str = "") -> str:
        with_ = f"WITH {', '.join(self.with_)} " if self.with_ else ""
        return f"{with_}SELECT {select} FROM {self.joined(items)}{rest}"

    def asking(self) -> Text:
        """Write a query with a text function, and whether that is given what is private."""
        items = self.sources(2)
        shown, asked = self.text(items, 2), self.text(items, 0)
        call, private = self.random.choice(
            [
                (f"answer({shown.sql}, 'is it long?')", shown.private),
                (f"summary({shown.sql})", shown.private),
                (f"answer({shown.sql}, 'does it speak of ' || {asked.sql})", shown.private or asked.private),
            ]
        )
        if self.random.random() < 0.5:
            return Text(self.whole(f"{call} AS said", items, self.where(items)), private)
        return Text(self.whole("1 AS one", items, f" WHERE {call} = 'Yes'"), private)

    def showing(self) -> Text:
        """Write a query without a text function, and whether its rows show what is private."""
        items = self.sources(2)
        shown = [self.text(items, 2) for _ in range(2)]
        listed = ", ".join(f"{each.sql} AS s{i}" for i, each in enumerate(shown))
        return Text(self.whole(listed, items, self.where(items)), any(each.private for each in shown))
