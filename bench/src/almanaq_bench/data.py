"""The data of a run, opened and checked: questions, tables with their distractors, and what identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from random import Random

from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.errors import BenchmarkError, SourceError, UsageError, suggest
from almanaq_bench.cards import DATASETS, Card, find_card, find_task
from almanaq_bench.config import RunRequest
from almanaq_bench.corpus_folder import find_shards, is_dataset_folder
from almanaq_bench.hub import read_source
from almanaq_bench.linked import DescribedByPassages, LinkedTables
from almanaq_bench.own_dataset import CARD_SUFFIXES, open_card
from almanaq_bench.question_sets import Dataset, DatasetFolder, Question, open_dataset
from almanaq_bench.records import TIMINGS, Appender, whole_lines
from almanaq_bench.restaurants.dataset import is_restaurants_folder, load_bundled_restaurants, open_restaurants
from almanaq_bench.sembench.dataset import SembenchData, is_sembench_folder

_PLACE = "data"  # the stage that notes where a run's data lie


@dataclass(frozen=True, slots=True)
class RunData:
    """What a run asks and searches.

    Attributes:
        ids: of all tables of the corpus; they are distinct and hold every gold table.
        corpus_split: the split whose tables are searched, or "all".
        distractors: how many tables of `distractors_from` are among them.
        counts: how the data differs from what is published; "" where it does not.
        hashes: sha256 of each file, by name; `revisions` of the repositories they were fetched from.
    """

    dataset: Dataset
    questions: tuple[Question, ...]
    corpus: Corpus
    ids: Set[TableId]
    corpus_split: str
    distractors: int
    distractors_from: str
    counts: str
    hashes: Mapping[str, str]
    revisions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Haystack:
    """A corpus with tables of another among its own, under that one's name, so that no two ids are the same."""

    corpus: Corpus
    others: Corpus
    chosen: frozenset[int]
    name: str

    def __len__(self) -> int:
        return len(self.corpus) + len(self.chosen)

    def __iter__(self) -> Iterator[Table]:
        yield from self.corpus
        for position, table in enumerate(self.others):
            if position in self.chosen:
                renamed = TableId(f"{self.name}/{table.id.database}", table.id.table)
                yield Table(
                    renamed, table.header, table.rows, table.title, table.section, table.description, table.keys,
                    table.context,
                )  # fmt: skip


def open_data(request: RunRequest) -> RunData:
    """Open the data of a run.

    Raises:
        UsageError: there is no such dataset or split, or fewer distractors than asked for.
        SourceError: the data cannot be read.
        BenchmarkError: a gold table is not in the corpus, or a table stands in it twice.
    """
    dataset = find_dataset(request.data_dir, request.dataset)
    every = dataset.questions(request.split)
    own = dataset.corpus(request.split)
    if find_task(request.task).name == "hybrid-qa":
        own = _describe_tables(dataset, request)
    corpus, others = _with_distractors(request, own)
    card = find_card(request.dataset)
    asked, drawn = _choose_questions(every, request)
    files = [*dataset.files(request.split), *(others.files if others else ())]
    if find_task(request.task).name == "hybrid-qa":
        files.append(_open_linked_folder(dataset, request).passages_file)
    return RunData(
        dataset,
        asked,
        corpus,
        _check_ids(asked, corpus, dataset.path),
        dataset.corpus_split(request.split),
        len(corpus) - len(own),
        others.name if others else "",
        "; ".join(note for note in (card.differs(request.split, len(own), len(every)) if card else "", drawn) if note),
        {_name(file, dataset.path): _sha256(file) for file in files},
        read_source(dataset.path).get("revisions", {}) if dataset.path.is_dir() else {},
    )


_DRAWN = "{:,} of {:,} questions, drawn by seed {}"


def _choose_questions(every: Sequence[Question], request: RunRequest) -> tuple[tuple[Question, ...], str]:
    """Return the questions to ask, in the order of the split, and how they were drawn; "" where they were not."""
    if request.sample is None or request.sample >= len(every):
        return tuple(every[: request.limit]), ""
    places = sorted(Random(request.seed).sample(range(len(every)), request.sample))
    return tuple(every[at] for at in places), _DRAWN.format(len(places), len(every), request.seed)


def find_dataset(data_dir: Path, name: str) -> Dataset:
    """Open a dataset of a folder: `NAME/` in one of the layouts, `NAME/card.yaml`, `NAME.yaml`, or copied repositories.

    `restaurants` comes with almanaq, and is opened where the folder holds no other of that name.

    Raises:
        UsageError: there is none of that name.
        SourceError: there is no such folder, or what is there is no dataset.
    """
    if not data_dir.is_dir():
        fetch = "; `almanaq bench fetch NAME --data-dir DIR` downloads a published dataset into one"
        raise SourceError(f"no such folder: {data_dir}: name the folder that holds the dataset {name!r}{fetch}")
    if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
        # The name may be that of a run folder, which may come from anybody.
        raise UsageError(f"dataset {name!r} names a place outside {data_dir}")
    card = find_card(name)
    for each in dict.fromkeys((name, card.name if card else name)):
        for file in (
            data_dir / each / f"card{CARD_SUFFIXES[0]}",
            *(data_dir / f"{each}{end}" for end in CARD_SUFFIXES),
        ):
            if file.is_file():
                return open_card(file, data_dir)
        if is_restaurants_folder(data_dir / each):
            return open_restaurants(data_dir / each)
        if each == "restaurants" and not is_dataset_folder(data_dir / each):
            return load_bundled_restaurants()
        if is_sembench_folder(data_dir / each):
            return SembenchData(data_dir / each)
        if is_dataset_folder(data_dir / each):
            return open_dataset(data_dir / each)
    copied = _find_copy(data_dir, card) if card else None
    if copied is not None:
        return copied  # beside it the folder NAME may hold its databases
    if (data_dir / name).is_dir():
        return open_dataset(data_dir / name)
    held = datasets_in(data_dir)
    known = [*held, *(each.name for each in DATASETS)]
    hint = suggest(name, held if card else known)
    if card is not None and card.source is not None:
        hint += f"; `almanaq bench fetch {card.name} --data-dir {data_dir}` downloads it"
    raise UsageError(f"dataset {name!r} {'is not in' if card else 'is unknown, and not in'} {data_dir}{hint}")


def keep_place(run: Path, data_dir: Path) -> None:
    """Note in a run folder where its data lie, beside what it took: two equal runs may have theirs in two places."""
    place = data_dir.resolve()
    if kept_place(run) != place:
        Appender(run / TIMINGS).add([json.dumps({"stage": _PLACE, "folder": str(place)})])


def kept_place(run: Path) -> Path | None:
    """Return the folder that a run's data lay in; None where that was not noted."""
    lines = [line for line in whole_lines(run / TIMINGS) if f'"{_PLACE}"'.encode() in line]
    return Path(json.loads(lines[-1])["folder"]) if lines else None


def is_unchanged(dataset: Dataset, split: str, hashes: Mapping[str, str]) -> bool:
    """Return whether a dataset's files are those whose hashes a run has kept."""
    return all(hashes.get(_name(file, dataset.path)) == _sha256(file) for file in dataset.files(split))


def datasets_in(data_dir: Path) -> list[str]:
    """Name the datasets of a folder. Raises SourceError when there is no such folder."""
    if not data_dir.is_dir():
        raise SourceError(f"no such folder: {data_dir}")
    cards = {entry.stem for entry in data_dir.iterdir() if entry.suffix in CARD_SUFFIXES}
    folders = (entry for entry in data_dir.iterdir() if entry.is_dir())
    copied = {card.name for card in DATASETS if _find_copy(data_dir, card) is not None}
    held = {each.name for each in folders if _holds_dataset(each) or (each / "card.yaml").is_file()}
    return sorted(cards | copied | held)


def _find_copy(data_dir: Path, card: Card) -> DatasetFolder | None:
    """Return a dataset whose repositories were copied from the hub as they are, as `fetaqa-corpus/data/…`."""
    if card.source is None:
        return None
    found = [_shards_of(data_dir, name) for name in (card.source.corpus, card.source.queries)]
    return DatasetFolder(data_dir / card.name, *found) if found[0] is not None else None


def _shards_of(data_dir: Path, repository: str) -> Path | None:
    """Return the folder with the shards of a copied repository; None where there is none."""
    if not repository:
        return None
    last = repository.split("/")[-1]
    places = [data_dir / name / part for name in (last, repository) for part in ("data", "")]
    return next((place for place in places if find_shards(place)), None)


def _holds_dataset(folder: Path) -> bool:
    return is_dataset_folder(folder) or is_restaurants_folder(folder) or is_sembench_folder(folder)


@dataclass(frozen=True, slots=True)
class _OtherDataset:
    name: str
    files: tuple[Path, ...]


def _with_distractors(request: RunRequest, own: Corpus) -> tuple[Corpus, _OtherDataset | None]:
    """Return the corpus with the distractors asked for: drawn by the seed, all where the task is to find needles."""
    needles = find_task(request.task).name == "needle-in-haystack"
    if not request.distractors and not (needles and request.distractors is None):
        return own, None
    dataset = find_dataset(request.data_dir, request.distractors_from)
    name = request.distractors_from
    others = dataset.corpus()
    wanted = len(others) if request.distractors is None else request.distractors
    if wanted > len(others):
        raise UsageError(f"--distractors {wanted}: {name} holds {len(others)} tables")
    chosen = frozenset(Random(f"{request.seed} {name}").sample(range(len(others)), wanted))
    files = tuple(file for split in dataset.splits or ("",) for file in _corpus_files(dataset, split))
    return Haystack(own, others, chosen, name), _OtherDataset(name, tuple(dict.fromkeys(files)))


def _corpus_files(dataset: Dataset, split: str) -> Sequence[Path]:
    if split:
        return dataset.files(split)
    return tuple(sorted(dataset.path.rglob("*.parquet"))) if dataset.path.is_dir() else (dataset.path,)


def _check_ids(questions: Sequence[Question], corpus: Corpus, where: Path) -> Set[TableId]:
    """Return the ids of the corpus, after checking that they are distinct and hold every gold table."""
    wanted = {table: question for question in questions for table in question.gold}
    ids: set[TableId] = set()
    for table in corpus:
        wanted.pop(table.id, None)
        if table.id in ids:
            raise BenchmarkError(f"{where}: table {table.id} occurs more than once")
        ids.add(table.id)
    if wanted:
        table_id, question = next(iter(wanted.items()))
        raise BenchmarkError(
            f"{len(wanted)} gold tables are not among the {len(corpus)} tables of {where} that were searched"
            f"; the first is {table_id} of question {question.id!r}: is this the corpus of the split?"
        )
    return frozenset(ids)


def _name(file: Path, dataset: Path) -> str:
    """Name a file by its place in its dataset's folder, or beside it."""
    for folder in (dataset, dataset.parent):
        if file.is_relative_to(folder):
            return file.relative_to(folder).as_posix()
    return file.name


def _describe_tables(dataset: Dataset, request: RunRequest) -> Corpus:
    """Return the tables with their cells' passages as description, for retrievers whose fields name it."""
    return DescribedByPassages(LinkedTables(_open_linked_folder(dataset, request), request.split))


def _open_linked_folder(dataset: Dataset, request: RunRequest) -> DatasetFolder:
    """Return a dataset that has the texts which cells link; raises UsageError for one that has none."""
    if isinstance(dataset, DatasetFolder) and dataset.passages_file.is_file():
        return dataset
    raise UsageError(
        f"hybrid-qa asks of passages that cells link, and {request.dataset} has no passages.parquet in its folder"
    )


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
