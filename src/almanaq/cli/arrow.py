"""pyarrow as the command line needs it: without pandas, which it would import with the first array it makes."""

from __future__ import annotations

import sys


class _Absent:
    """Makes a package look as if it was not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, *_: object) -> None:
        """Raise ModuleNotFoundError for the package; leave others to those who can find them."""
        if name == self._package:
            raise ModuleNotFoundError(name, name=name)


def load_arrow() -> None:
    """Import pyarrow, which looks for pandas once: half a second of work where that is installed.

    Where its tables are turned into pandas' it looks again, and finds it.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    absent = _Absent("pandas")
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)
