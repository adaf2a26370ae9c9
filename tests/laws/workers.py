"""Seeds on processes that may die: the seed that ends its process, or holds it too long, is told; the rest go on."""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from multiprocessing.connection import Connection, wait

from .check import Failure, Outcome, without_threads
from .generator import generate

AHEAD = 10
"""How many seeds a process is given before it said what became of them."""

DIED = "the process died"
"""The kind of failure of a seed that ended its process."""

One = Callable[[int], Outcome]


def outcomes(one: One, seed: int, jobs: int, *, patience: float = 300) -> Generator[Outcome]:
    """Yield what becomes of each seed from one on, in their order, without end.

    Args:
        one: compares one seed; it must be picklable.
        jobs: number of processes.
        patience: seconds after which a process that started is ended if it says nothing.
    """
    todo, order = itertools.count(seed), itertools.count(seed)
    found: dict[int, Outcome] = {}
    workers = [_Worker(one) for _ in range(jobs)]
    try:
        for wanted in order:
            while wanted not in found:
                for worker in workers:
                    worker.give(todo)
                wait([worker.pipe for worker in workers], timeout=1)
                workers = [_heard(worker, one, found, patience) for worker in workers]
            yield found.pop(wanted)
    finally:
        for worker in workers:
            worker.end()


def _heard(worker: _Worker, one: One, found: dict[int, Outcome], patience: float) -> _Worker:
    """Collect what a process says; give the process that goes on, another one where it died."""
    try:
        while worker.pipe.poll():
            outcome = worker.hear()
            if outcome is not None:
                found[outcome.seed] = outcome
        if not worker.started or not worker.waiting or time.monotonic() - worker.heard < patience:
            return worker
        reason = f"it said nothing for {patience:.0f} s"
    except (EOFError, OSError):
        reason = worker.exit()
    worker.end()
    lost, *rest = worker.waiting
    failure = Failure(lost, DIED, reason, generate(lost).sql)
    found[lost] = Outcome(lost, None, failure)
    another = _Worker(one)
    another.give(iter(rest))
    return another


class _Worker:
    """A process, and the seeds that it was given and said nothing about."""

    def __init__(self, one: One) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.waiting: deque[int] = deque()
        self.heard, self.started = time.monotonic(), False
        self._process = context.Process(target=_work, args=(one, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, seeds: Iterator[int]) -> None:
        """Give the process seeds up to `AHEAD`; a process that died is found out when it is heard."""
        for seed in itertools.islice(seeds, AHEAD - len(self.waiting)):
            self.heard = self.heard if self.waiting else time.monotonic()
            self.waiting.append(seed)
            try:
                self.pipe.send(seed)
            except OSError:
                continue

    def hear(self) -> Outcome | None:
        """Return what became of the first seed that is waiting; None where the process only says that it started."""
        outcome: Outcome | None = self.pipe.recv()
        self.heard, self.started = time.monotonic(), True
        if outcome is not None:
            self.waiting.popleft()
        return outcome

    def exit(self) -> str:
        """Say how the process ended."""
        self._process.join(5)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"exit {code}"
        name = signal.Signals(-code).name
        return f"{name} (perhaps out of memory)" if name == "SIGKILL" else name

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(one: One, pipe: Connection) -> None:
    faulthandler.enable()
    without_threads()
    pipe.send(None)
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        try:
            outcome = one(seed)
        except Exception as error:  # of the referee itself; one of the compiler is a failure already
            text = f"{type(error).__name__}: {error}"
            outcome = Outcome(seed, None, Failure(seed, "the referee failed", text, generate(seed).sql))
        with contextlib.suppress(BrokenPipeError):  # the run was ended
            pipe.send(outcome)
