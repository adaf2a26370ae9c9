"""Importing almanaq is quick, quiet and has no effects."""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from pathlib import Path

HEAVY = (
    "duckdb",
    "pyarrow",
    "numpy",
    "pandas",
    "torch",
    "openai",
    "aiohttp",
    "pydantic",
    "sqlglot",
    "bm25s",
    "transformers",
)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def seconds(code: str) -> float:
    """Return the least work that a piece of code was for a processor: how long it took is the
    other processes' doing.
    """
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        python(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def test_import_takes_less_than_three_tenths_of_a_second():
    python("import almanaq")  # writes bytecode, warms the disk
    assert seconds("import almanaq; almanaq.connect; almanaq.Options") - seconds("pass") < 0.3


def test_import_loads_no_library():
    loaded = python(f"import sys, almanaq; print(*[m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded.split() == []


def test_the_command_line_starts_without_libraries_it_does_not_need():
    heavy = tuple(m for m in HEAVY if m not in ("pydantic", "sqlglot"))
    loaded = python(f"import sys, almanaq.cli.app; print(*[m for m in {heavy!r} if m in sys.modules])")
    assert loaded.split() == []


def test_a_query_over_a_small_file_needs_few_libraries(tmp_path):
    (tmp_path / "small.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    heavy = ("pandas", "torch", "aiohttp", "openai", "jinja2", "pyarrow.compute", "polars", "transformers", "openvino")
    code = (
        "import sys; from almanaq.cli import main\n"
        f"sys.argv = ['almanaq', 'sql', 'SELECT count(*) FROM small', '--db', {str(tmp_path / 'small.csv')!r}]\n"
        f"main(); print('loaded:', *[m for m in {heavy!r} if m in sys.modules])"
    )
    assert python(code).splitlines()[-1].split() == ["loaded:"]


def test_importing_every_module_prints_nothing():
    code = (
        "import importlib, itertools, pkgutil, almanaq, almanaq_bench\n"
        "ours = (pkgutil.walk_packages(each.__path__, f'{each.__name__}.') for each in (almanaq, almanaq_bench))\n"
        "for m in itertools.chain.from_iterable(ours):\n"
        "    if m.name.endswith('__main__'): continue\n"
        "    try: importlib.import_module(m.name)\n"
        "    except ModuleNotFoundError as e:\n"
        "        if e.name.startswith('almanaq'): raise\n"  # another package: one of an extra that is not installed
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_public_names_are_there_for_type_checkers_too():
    import almanaq

    tree = ast.parse(Path(almanaq.__file__).read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {(i.module, name.name) for i in guarded.body if isinstance(i, ast.ImportFrom) for name in i.names}
    assert imported == {(home, name) for name, home in almanaq._HOME.items()}
    assert all(getattr(almanaq, name) is not None for name in almanaq.__all__)


def test_optional_packages_are_not_needed(tmp_path):
    """A file is queried, and tables are found, where pandas, polars and the like are not installed."""
    (tmp_path / "places.csv").write_text("id,name\n1,Alba\n2,Brio\n", encoding="utf-8")
    absent = ("pandas", "polars", "sqlalchemy", "bm25s", "ibis", "psycopg", "torch", "sentence_transformers")
    code = (
        "import importlib.util, sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {absent!r}: raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "known = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, package=None: None if name in {absent!r} else known(name, package)\n"
        "import almanaq\n"
        "from almanaq.cli.app import app\n"
        f"print(almanaq.connect({str(tmp_path)!r}).sql('SELECT name FROM places WHERE id = 2').rows)\n"
        f"app(['find', 'Alba places', '--corpus', {str(tmp_path)!r}, '--json'], standalone_mode=False)\n"
    )
    printed = python(code).splitlines()
    assert printed[0] == "[('Brio',)]"
    assert '"places"' in "".join(printed[1:])


WITHOUT_BENCH = (
    "import importlib.util, sys\n"
    "class Absent:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name.partition('.')[0] == 'almanaq_bench': raise ModuleNotFoundError(name, name='almanaq_bench')\n"
    "sys.meta_path.insert(0, Absent())\n"
    "import importlib.metadata as metadata\n"
    "of_all = metadata.entry_points\n"
    "ours = lambda point: point.dist is None or point.dist.name != 'almanaq-bench'\n"
    "metadata.entry_points = lambda **kw: metadata.EntryPoints(filter(ours, of_all(**kw)))\n"
    "known = importlib.util.find_spec\n"
    "importlib.util.find_spec = lambda name, package=None: (\n"
    "    None if name == 'almanaq_bench' else known(name, package))\n"
    "import almanaq\n"
    "from almanaq.cli import main\n"
)
"""What makes a process one in which almanaq-bench is not installed."""


def told(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_BENCH + code], capture_output=True, text=True, check=False)


def test_without_the_benchmark_every_way_to_it_says_what_to_install(tmp_path):
    (tmp_path / "corpus.parquet").touch()
    commands = (
        ["bench", "list"],
        ["serve", "sample:restaurants", "--bench", str(tmp_path)],
        ["find", "Alba", "--corpus", str(tmp_path)],
        ["find", "Alba", "sample:restaurants", "--retriever", "rerank:openai:x"],
        ["index", "sample:restaurants", "--out", str(tmp_path), "--spark", "sc://127.0.0.1"],
    )
    for command in commands:
        done = told(f"sys.argv = ['almanaq', *{command}]\nsys.exit(main())")
        assert done.returncode == 1, done.stderr
        assert "needs the package 'almanaq-bench': install it with  pip install ./bench" in done.stderr
        assert done.stdout == ""
    for line in ("from almanaq.benchmark import TARGET", "from almanaq.target.evaluators import TARGET"):
        done = told(f"try:\n    {line}\nexcept almanaq.MissingExtraError as error: print(error)")
        assert done.stdout.endswith("pip install ./bench\n"), done.stderr
    shown = told("sys.argv = ['almanaq', '--help']\nsys.exit(main())")
    assert shown.returncode == 0
    assert "bench" not in shown.stdout
    done = told("almanaq.tables({'a': {'x': [1]}}, retriever='target-bm25')")
    assert "unknown retriever 'target-bm25'" in done.stderr
    assert "pip install ./bench" in done.stderr


def test_the_benchmark_has_one_identity_under_its_former_names():
    import almanaq.target.retrievers

    import almanaq.benchmark
    import almanaq_bench.target.retrievers

    assert almanaq.benchmark.TARGET is almanaq_bench.TARGET
    former, own = almanaq.target.retrievers, almanaq_bench.target.retrievers
    assert former.AbsCustomEmbeddingRetriever is own.AbsCustomEmbeddingRetriever
    assert almanaq.target.AbsTask is almanaq_bench.target.AbsTask
