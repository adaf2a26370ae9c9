#!/usr/bin/env bash
# Installs the system packages that the tests need, where they are missing and this is root on Debian.
# Elsewhere the tests that need them say so and are skipped.
set -euo pipefail

postgresql_is_here() {
  compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null || command -v initdb > /dev/null
}

chromium_is_here() {
  command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null
}

wanted=()
postgresql_is_here || wanted+=(postgresql)
chromium_is_here || wanted+=(chromium)
if [ ${#wanted[@]} = 0 ]; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "installing ${wanted[*]}: servers that the tests start on ports of their own, a browser that opens reports"
  apt-get update -qq
  # The package would start a server of its own; the tests make theirs.
  mkdir -p /etc/postgresql-common
  grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf ||
    echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}" > /dev/null
else
  echo "not here: ${wanted[*]}; the tests that need them will be skipped"
fi
