#!/usr/bin/env bash
# Installs the system packages that the tests need, where they are missing and this is root on Debian.
# Elsewhere the tests that need them say so and are skipped.
set -euo pipefail
if compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null || command -v initdb > /dev/null; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "installing PostgreSQL, which the tests start on a port of their own"
  apt-get update -qq
  # The package would start a server of its own; the tests make theirs.
  mkdir -p /etc/postgresql-common
  grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf ||
    echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql > /dev/null
else
  echo "no PostgreSQL here: the tests that need a server will be skipped"
fi
