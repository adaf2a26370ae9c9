#!/usr/bin/env bash
# Print the Python that makes .venv: the first on PATH that is 3.11 or newer and has venv and pip.
# 3.11 is tried first: it is what the pinned versions were tried with.
set -euo pipefail

usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; }

find_python() {
  local name
  for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3.14 python3 python /usr/bin/python3; do
    if [ -n "$name" ] && usable "$name"; then
      command -v "$name"
      return 0
    fi
  done
  return 1
}

if find_python; then exit 0; fi

# Debian keeps venv in a package of its own.
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv
  } >&2 < /dev/null
  if find_python; then exit 0; fi
fi

echo "no Python 3.11 or newer with venv and pip on PATH; install one, or name it: make PYTHON=/path/to/python …" >&2
exit 1
