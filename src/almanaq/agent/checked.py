"""Questions with the queries that a person called right or wrote: those that were checked, and files of examples."""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from almanaq.errors import QueryError, SourceError, first_line
from almanaq.models.private_files import default_cache_folder, make_private
from almanaq.suql.catalog.terms import write_toml
from almanaq.suql.text_functions import may_read_texts

if TYPE_CHECKING:  # to open a source takes neither
    from almanaq.agent.queries import QueryEngine
    from almanaq.agent.schema_text import Examples
    from almanaq.models.embedders.vector_store import VectorStore

NEAREST = 3
"""How many checked questions a prompt shows, those nearest to what is asked."""
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Checked:
    """A question whose query is right.

    Attributes:
        by: who said so, "" where nobody gave a name; `on` the day, as `2026-03-01`.
        rows: how many rows the query gave then, and `digest` a hash of them; None and "" where that was not kept.
    """

    question: str
    suql: str
    by: str = ""
    on: str = ""
    rows: int | None = None
    digest: str = ""

    def say(self) -> str:
        """Return the sentence that a reply which uses it gives."""
        return f"The query is the one for “{self.question}”, checked by {self.by or 'a person'} on {self.on}."


class CheckedAnswers:
    """What was checked over one source; the last word on a question counts.

    Args:
        file: lines of JSON that only their owner can read; None keeps them in memory.
        more: those of the source's file of examples, which are not kept again.
    """

    def __init__(self, file: Path | None = None, more: Iterable[Checked] = ()) -> None:
        self._file, self._more, self._held = file, tuple(more), ""

    @property
    def lasts(self) -> bool:
        """Whether they outlive the process."""
        return self._file is not None

    @classmethod
    def of(cls, source: object, more: Iterable[Checked] = (), *, keep: bool = True) -> CheckedAnswers:
        """Return those of a source that has a name; of any other, none that outlive the process."""
        named = keep and isinstance(source, str | Path)
        return cls(default_cache_folder() / "checked" / f"{source_id(str(source))}.jsonl" if named else None, more)

    def for_rights(self, rights: str) -> CheckedAnswers:
        """Return those of users who may see the same part of the source; they begin with none."""
        return CheckedAnswers(None if self._file is None else self._file.with_stem(f"{self._file.stem}-{rights}"))

    def all(self) -> tuple[Checked, ...]:
        """Return the checked questions, the oldest first; raises SourceError where the file is damaged."""
        found = {each.question: each for each in self._more}
        for line in self._read().splitlines()[-_MOST:]:
            try:
                entry = json.loads(line)
                found.pop(entry["question"], None)
                if entry["suql"] is not None:
                    found[entry["question"]] = Checked(**entry)
            except (ValueError, KeyError, TypeError) as error:
                raise SourceError(f"{self._file} is damaged: remove it, or the line {line[:60]!r}") from error
        return tuple(found.values())

    def put(self, checked: Checked) -> None:
        """Keep a checked question, in the place of what was kept of it before."""
        self._append(asdict(replace(checked, on=checked.on or time.strftime("%Y-%m-%d"))))

    def remove(self, question: str) -> None:
        """Take back what was kept of a question."""
        self._append({"question": question, "suql": None})

    def _read(self) -> str:
        if self._file is None:
            return self._held
        try:
            return self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        except OSError as error:
            raise SourceError(f"cannot read {self._file}: {error.strerror}") from error

    def _append(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry, ensure_ascii=False) + "\n"
        if self._file is None:
            self._held += line
            return
        try:
            make_private(self._file)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise SourceError(f"cannot keep the answer in {self._file}: {error.strerror}") from error


def source_id(source: str) -> str:
    """Return what two programs over one source have in common, without a password in it."""
    path = Path(source).expanduser()
    return hashlib.sha256((str(path.resolve()) if path.exists() else source).encode()).hexdigest()[:32]


def examples_path(source: str | Path) -> Path:
    """Return the path at which the examples of a source are looked for."""
    path = Path(source)
    return path.parent / f"{path.resolve().name if path.is_dir() else path.name}.examples.toml"


def examples_beside(source: object) -> Path | None:
    """Return the path of the examples of a source; None where it has none."""
    if not isinstance(source, str | Path):
        return None
    if str(source).startswith("sample:"):
        from almanaq.sample import examples_path as bundled

        return Path(bundled(str(source).removeprefix("sample:")))
    path = examples_path(Path(source).expanduser())
    return path if path.is_file() else None


CHECKED_KEYS = ("by", "on", "rows", "digest")
"""What a file of examples may say of one that a person checked: who, which day, and what it gave then."""


def read_examples(path: str | Path) -> tuple[Mapping[str, Any], ...]:
    """Return the entries of a file: `question`, `suql` where it needs data, and `CHECKED_KEYS`.

    Raises:
        SourceError: the file cannot be read, or an entry is at fault.
    """
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"cannot read the examples {str(path)!r}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path.name} is not TOML: {error}") from error
    entries = document.get("example", [])
    if set(document) - {"example"} or not isinstance(entries, list):
        raise SourceError(f"{path.name}: only [[example]] entries are expected, with `question` and `suql`")
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}, example {number}"
        if not isinstance(entry, dict) or set(entry) - {"question", "suql", *CHECKED_KEYS}:
            known = ", ".join(f"`{key}`" for key in CHECKED_KEYS)
            raise SourceError(f"{where}: only `question`, `suql`, {known} are expected")
        question, suql = entry.get("question"), entry.get("suql")
        if not isinstance(question, str) or not question.strip() or not isinstance(suql, str | None):
            raise SourceError(f"{where}: `question` must be text, and `suql` text or left out")
    return tuple(entries)


def write_checked(checked: Iterable[Checked], others: Examples = ()) -> str:
    """Return checked questions, and other examples, as a file of examples."""
    entries = []
    for each in (*(Checked(question, suql or "") for question, suql in others), *checked):
        fields = {name: value for name, value in asdict(each).items() if value not in ("", None)}
        entries.append("".join(f"{name} = {write_toml(value)}\n" for name, value in fields.items()))
    return "# Questions that people judged, with the right query of each.\n\n" + "\n".join(
        f"[[example]]\n{entry}" for entry in entries
    )


def is_usable(suql: str, engine: QueryEngine) -> bool:
    """Return whether a query could run now: its columns are there, and may be seen."""
    try:
        engine.check(suql)
    except QueryError:
        return False
    return True


def measure_checked(question: str, suql: str, by: str, engine: QueryEngine) -> Checked:
    """Return a question with its right query, and what the query gives now; raises QueryError where it cannot run.

    Nothing is kept of rows that are read off texts, as that may cost calls, or that show private columns.
    """
    engine.check(suql)
    made = Checked(question.strip(), suql, by, time.strftime("%Y-%m-%d"))
    if may_read_texts(suql) or engine.private_columns(suql):
        return made
    rows = engine.run(suql).rows
    digest = hashlib.sha256(repr(sorted(map(repr, rows))).encode()).hexdigest()[:16]
    return replace(made, rows=len(rows), digest=digest)


def compare_checked(checked: Checked, engine: QueryEngine) -> str:
    """Run a checked query again; return "same", or what changed: why it cannot run, or how many rows it gives now."""
    try:
        now = measure_checked(checked.question, checked.suql, checked.by, engine)
    except QueryError as error:
        return f"stale: {first_line(error)}"
    if checked.rows is None or now.digest == checked.digest:
        return "same"
    if now.rows == checked.rows:
        return f"changed: {now.rows} rows, with other values"
    return f"changed: {now.rows} rows, were {checked.rows}"


def sort_by_nearness(question: str, checked: Sequence[Checked], vectors: VectorStore) -> list[Checked]:
    """Return the checked questions, those nearest to a question first; each is embedded once."""
    if not checked:
        return []
    known = vectors.question_vectors([each.question for each in checked])
    nearness = known @ vectors.embedder.embed_questions([question])[0]
    return [checked[i] for i in (-nearness).argsort(kind="stable")]
