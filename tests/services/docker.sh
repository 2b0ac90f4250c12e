#!/usr/bin/env bash
# What the tests' own Docker engine needs; `private_docker.py` beside this starts it, for the tests that want it.
#
#   docker.sh --start   makes sure that the programs are there; installs them if they are missing (Debian, as root)
#   docker.sh --stop    ends the engines that tests have left running
#   docker.sh --clean   ends them and removes their data
#
# uidmap gives containers user ids that are nobody's outside, runsc is gVisor, crun the second runtime without a daemon.
# Who is not root cannot run these tests, and needs none of it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../sandbox_images/progress.sh
. "$root/sandbox_images/progress.sh"

# The program that shows that a package is there, and the package.
NEEDED=(dockerd:docker.io containerd:containerd newuidmap:uidmap runsc:runsc crun:crun)
SETUP_LOG=$(log_file docker)

fail() {
  printf 'docker: %s\n' "$*" >&2
  exit 1
}

missing=()
find_missing() { # sets missing
  local each
  missing=()
  for each in "${NEEDED[@]}"; do
    command -v "${each%%:*}" >/dev/null || missing+=("${each##*:}")
  done
  [ "${#missing[@]}" -gt 0 ]
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update || true
  dpkg --configure -a
  # Not descriptor 1: apt closes the status descriptor in the packages' own scripts.
  apt-get -q -y -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 --no-install-recommends install "${missing[@]}" 3>&1
}

start() {
  [ "$(uname -s)" = Linux ] && [ "$(id -u)" -eq 0 ] || return 0
  mkdir -p "$root/.services"
  exec 9>"$root/.services/docker.lock"
  flock 9
  find_missing || return 0
  command -v apt-get >/dev/null || fail "the tests need ${missing[*]}: install them from this distribution's packages"
  printf 'docker: installing %s\n' "${missing[*]}"
  progress_run "${missing[*]}" "$SETUP_LOG" apt apt_install || fail "${missing[*]} could not be installed"
  ! find_missing || fail "${missing[*]} was installed, but its program is not there"
}

engines() { # MODE
  local python=$root/.venv/bin/python
  [ "$(id -u)" -eq 0 ] && [ -x "$python" ] || return 0
  (cd "$root" && "$python" -m tests.services.private_docker "$1")
}

case ${1:-} in
  --start) start ;;
  --stop) engines --stop ;;
  --clean)
    engines --clean
    rm -f "$root/.services/docker.lock"
    ;;
  *) fail "unknown argument ${1:-}: use --start, --stop or --clean" ;;
esac
