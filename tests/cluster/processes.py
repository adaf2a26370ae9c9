"""A Spark cluster of plain processes: a standalone master, two workers of one GiB, and a Connect server.

`python -m tests.cluster.processes FOLDER` keeps one up until it is stopped. Everything that the processes write lies in
the folder; every process is in a group of its own, which is killed at the end whatever happened.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_UP_SECONDS = 120.0
_SETTINGS = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.maxResultSize": "0",
    "spark.sql.shuffle.partitions": "4",
    "spark.worker.timeout": "10",
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "20s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
    "spark.network.timeoutInterval": "5s",
}


@dataclass
class Cluster:
    """The running processes.

    Attributes:
        home: where Spark lies.
        folder: where the processes write: logs, work, the warehouse, what sessions leave.
    """

    home: Path
    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the Connect server, with the folder for what sessions keep."""
        return f"sc://127.0.0.1:{self.ports['connect']}/;folder={self.sessions}"

    @property
    def sessions(self) -> Path:
        """The folder that sessions may write to."""
        return self.folder / "sessions"

    def start(self) -> None:
        """Start everything and wait until the server answers."""
        for name in ("warehouse", "sessions", "tables", "logs", "work", "local"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.start_master()
        for number in (1, 2):
            self.start_worker(number)
        self.start_connect()

    def start_master(self) -> None:
        """Start the master."""
        port = self.ports.setdefault("master", _free_port())
        kind = "org.apache.spark.deploy.master.Master"
        web = ["--webui-port", str(_free_port())]
        self._run("master", "spark-class", kind, "--host", "127.0.0.1", "--port", str(port), *web)
        _wait_for(port, self.processes["master"], self._log("master"))

    def start_worker(self, number: int) -> None:
        """Start a worker with one core and one GiB."""
        sizes = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work" / str(number))]
        place = ["--host", "127.0.0.1", "--webui-port", str(_free_port())]
        kind = "org.apache.spark.deploy.worker.Worker"
        self._run(f"worker{number}", "spark-class", kind, *sizes, *place, f"spark://127.0.0.1:{self.ports['master']}")

    def start_connect(self) -> None:
        """Start the Connect server on a port of its own and wait until it listens.

        A client waits longer and longer before it tries again what was not there: a new server has another port.
        """
        port = self.ports["connect"] = _free_port()
        settings = _SETTINGS | {
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.local.dir": str(self.folder / "local"),
        }
        conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
        master = f"spark://127.0.0.1:{self.ports['master']}"
        submit = "org.apache.spark.deploy.SparkSubmit"
        self._run(
            "connect", "spark-class", submit, "--master", master, "--driver-memory", "1g", *conf, "--class", kind,
            "spark-internal",
        )  # fmt: skip
        _wait_for(port, self.processes["connect"], self._log("connect"))

    def kill(self, name: str) -> None:
        """Kill a process by SIGKILL, those that it started with it, and wait for it."""
        process = self.processes.pop(name)
        _kill_group(process)

    def executors(self) -> list[int]:
        """Return the ids of the executors' processes."""
        groups = {process.pid for name, process in self.processes.items() if name.startswith("worker")}
        return [pid for pid, group, command in _running() if group in groups and "CoarseGrained" in command]

    def cpu_seconds(self, kind: str = "") -> float:
        """Return the seconds of a processor that one kind, or all, have used, with what they started and still runs."""
        groups = {process.pid for name, process in self.processes.items() if name.startswith(kind)}
        return sum(_cpu_seconds(pid) for pid, group, _ in _running() if group in groups)

    def stop(self) -> None:
        """Kill everything that was started."""
        for name in list(self.processes)[::-1]:
            self.kill(name)

    def _run(self, name: str, program: str, *arguments: str) -> None:
        environment = {
            "PATH": os.environ.get("ALMANAQ_JAVA_PATH") or os.environ["PATH"],
            "HOME": str(self.folder),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": str(self.home.parents[3] / "bin" / "python"),
            "SPARK_WORKER_MEMORY": "1g",
            "SPARK_DAEMON_MEMORY": "1g" if name == "connect" else "256m",
            "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={self.folder / 'local'}",
        }
        if java := os.environ.get("ALMANAQ_JAVA_HOME"):
            environment["JAVA_HOME"] = java
        with self._log(name).open("ab") as log:
            command = [str(self.home / "bin" / program), *arguments]
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder,
                start_new_session=True,
            )  # fmt: skip

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Keep a cluster up within the block, where nothing else finds Java; nothing of it is left afterwards."""
    cluster = Cluster(spark_home(), folder.resolve())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ctrl-C, it is to leave no process behind
    with _java_apart():
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@contextlib.contextmanager
def _java_apart() -> Iterator[None]:
    """Let the cluster's processes alone know where Java is."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "SPARK_HOME") if name in os.environ}
    folders = kept["PATH"].split(os.pathsep)
    without = [folder for folder in folders if shutil.which("java", path=folder) is None]
    for name in ("JAVA_HOME", "SPARK_HOME"):
        os.environ.pop(name, None)
    os.environ |= {"ALMANAQ_JAVA_PATH": kept["PATH"], "PATH": os.pathsep.join(without)}
    if "JAVA_HOME" in kept:
        os.environ["ALMANAQ_JAVA_HOME"] = kept["JAVA_HOME"]
    try:
        yield
    finally:
        os.environ |= kept


def spark_home() -> Path:
    """Return where Spark lies in the environment of the cluster; raises SystemExit where there is none."""
    if not (found := _jars()):
        raise SystemExit(f"no Spark in {_environment()}: run `make cluster-test`, which installs it there")
    return found[0].parent


def has_spark() -> bool:
    """Tell whether Spark is in the environment of the cluster."""
    return bool(_jars())


def _jars() -> list[Path]:
    return sorted(_environment().glob("lib/python*/site-packages/pyspark/jars"))


def _environment() -> Path:
    return Path(os.environ.get("ALMANAQ_CLUSTER_PYTHON", "build/cluster/bin/python")).absolute().parents[1]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"{log.name} ended at once:\n{log.read_text('utf-8', 'replace')[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port} after {_UP_SECONDS:.0f} s: see {log}")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all in its session: a worker puts its executors into groups of their own or not."""
    for pid, group, _ in _running():
        if group == process.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.wait()


def _cpu_seconds(pid: int) -> float:
    """Return what a process has used, with those of its children that have ended; 0 where it is gone."""
    with contextlib.suppress(OSError):
        told = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _running() -> list[tuple[int, int, str]]:
    """Return the id, the session and the command of every process."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(entry.name)
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            found.append((pid, os.getsid(pid), command))
    return found


if __name__ == "__main__":
    with running(Path(sys.argv[1])) as up:
        print(up.url, flush=True)
        signal.pause()
