#!/usr/bin/env bash
# What sets the clock of one process, for the tests: libfaketime.
#
#   faketime.sh --start   makes sure that it is there; installs it if it is missing (Debian, as root)
#   faketime.sh --stop    nothing runs
#   faketime.sh --clean   it stays: it is a package of the machine
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../sandbox_images/progress.sh
. "$root/sandbox_images/progress.sh"

fail() {
  printf 'faketime: %s\n' "$*" >&2
  exit 1
}

is_there() { compgen -G '/usr/lib*/faketime/libfaketime.so.1' >/dev/null || compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null; }

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update || true
  dpkg --configure -a
  # Not descriptor 1: apt closes the status descriptor in the packages' own scripts.
  apt-get -q -y -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 --no-install-recommends install libfaketime 3>&1
}

case ${1:-} in
  --start)
    is_there && exit 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
      fail "libfaketime is missing: install it (libfaketime), or run this as root"
    fi
    printf 'faketime: installing libfaketime\n'
    progress_run 'libfaketime' "$(log_file faketime)" apt apt_install || fail "libfaketime could not be installed"
    is_there || fail "libfaketime was installed, but its library is not there"
    ;;
  --stop | --clean) ;;
  *) fail "unknown argument ${1:-}: use --start, --stop or --clean" ;;
esac
