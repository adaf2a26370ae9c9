"""No file imports one that, over any number of files, imports it: also not for the sake of types alone."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_imports_go_round_in_no_circle() -> None:
    graph = grimp.build_graph("almanaq", "almanaq_bench", cache_dir=None)
    assert len(graph.modules) > 300
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # a CycleError shows the circle
