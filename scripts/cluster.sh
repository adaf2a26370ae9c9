#!/usr/bin/env bash
# cluster.sh FOLDER PYTHON: puts Spark, for the processes of a cluster alone, into an environment of its own.
# The client in PYTHON's environment has pyspark-client. Exit 3, and a line that says why, where Java or Spark are not
# to be had. Debian's Java is installed where it is missing and this is root.
set -euo pipefail
folder=$1 python=$2
spark="pyspark[connect]==4.0.5"

unavailable() {
  echo "no $1 here: $2" >&2
  exit 3
}

if ! command -v java > /dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "installing Java 17 for the cluster's processes"
    { timeout 60 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 180 apt-get install -y -qq --no-install-recommends \
      openjdk-17-jre-headless; } > /dev/null < /dev/null || true
  fi
  command -v java > /dev/null || unavailable Java "install Java 17 (Debian: openjdk-17-jre-headless)"
fi
if [ ! -e "$folder/.installed" ] || [ "$0" -nt "$folder/.installed" ]; then
  echo "installing Spark into $folder (a minute or two)"
  test -x "$folder/bin/python" || "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --retries 1 "$spark" ||
    unavailable Spark "$spark cannot be fetched from the package index"
  # The tasks of an index in shards run almanaq as it is here.
  packages=$("$folder/bin/python" -c "import site; print(site.getsitepackages()[0])")
  "$python" -c "import sys, site; print(sys.argv[1] + '/src', sys.argv[1] + '/bench/src', *site.getsitepackages(), sep='\n')" "$PWD" \
    > "$packages/almanaq_for_workers.pth"
  touch "$folder/.installed"
fi
