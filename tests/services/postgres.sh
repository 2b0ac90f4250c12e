#!/usr/bin/env bash
# A PostgreSQL server for the tests: a cluster of its own below .services/, never the machine's.
#
#   postgres.sh --start      makes sure that the server answers; installs PostgreSQL if it is missing (Debian, as root)
#   postgres.sh --stop       stops the server that this script started, and no other
#   postgres.sh --print-url  prints the URL of its database; starts nothing
#   postgres.sh --clean      stops it and removes the cluster
#   postgres.sh --print-bin  prints the folder of the server's programs; installs PostgreSQL if it is missing
#
# Its data is worthless, so nothing waits for the disk: fsync is off.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../sandbox_images/progress.sh
. "$root/sandbox_images/progress.sh"

SERVER_USER=postgres # the server refuses to run as root
START_SECONDS=60
SETUP_LOG=$(log_file postgres)
PORTS_FROM=54320

fail() {
  printf 'postgres: %s\n' "$*" >&2
  exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

as_server() { # COMMAND...: as the user of the server, in a folder that it may enter
  if is_root; then (cd / && runuser -u "$SERVER_USER" -- "$@"); else "$@"; fi
}

bin=''
find_bin() { # sets bin to the newest version's programs
  local found
  found=$(for each in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do [ -x "$each/initdb" ] && echo "$each"; done | sort -V | tail -n 1)
  if [ -z "$found" ] && command -v initdb >/dev/null; then found=$(dirname "$(command -v initdb)"); fi
  bin=$found
  [ -n "$bin" ]
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1
  apt-get -q update || true
  dpkg --configure -a
  # The package would make and start a cluster of the machine, which nobody has asked for.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  fi
  # Not descriptor 1: apt closes the status descriptor in the packages' own scripts.
  apt-get -q -y -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 --no-install-recommends install postgresql 3>&1
}

install() {
  find_bin && return 0
  is_root || fail "PostgreSQL is missing: install it (postgresql), or run this as root"
  command -v apt-get >/dev/null || fail "PostgreSQL is missing: install it from this distribution's packages"
  printf 'postgres: installing postgresql\n'
  progress_run 'postgresql' "$SETUP_LOG" apt apt_install || fail "postgresql could not be installed"
  find_bin || fail "postgresql was installed, but has no initdb"
}

folder=''
find_folder() { # sets folder: below the checkout, or where the server's user can go if it cannot go there
  local marked=$root/.services/postgres-elsewhere
  folder=$root/.services/postgres
  if [ -f "$marked" ]; then folder=$(cat "$marked"); fi
}

make_folder() {
  mkdir -p "$folder"
  is_root || return 0
  chown "$SERVER_USER" "$folder"
  as_server test -x "$folder" && return 0
  rmdir "$folder"
  folder=$(mktemp -d /var/tmp/proofbox-postgres.XXXXXX)
  chown "$SERVER_USER" "$folder"
  printf '%s\n' "$folder" >"$root/.services/postgres-elsewhere"
}

make_cluster() {
  [ -f "$folder/data/PG_VERSION" ] && [ -f "$folder/password" ] && return 0
  rm -rf "$folder/data"
  as_server sh -c "umask 077; od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >'$folder/password'"
  # The machine's language must not matter: a test orders by bytes and expects the service to say so.
  as_server "$bin/initdb" -D "$folder/data" -U proofbox --pwfile "$folder/password" --auth scram-sha-256 \
    --encoding UTF8 --locale C.UTF-8 --no-sync >"$folder/initdb.log" 2>&1 \
    || fail "the cluster could not be made: see $folder/initdb.log"
}

port() { cat "$folder/port" 2>/dev/null || true; }

url() { printf 'postgresql://proofbox:%s@127.0.0.1:%s/postgres\n' "$(cat "$folder/password")" "$(port)"; }

answers() { [ -n "$(port)" ] && [ -n "$(server_pid)" ] && "$bin/pg_isready" -q -h 127.0.0.1 -p "$(port)"; }

server_pid() { # the pid of the server of this cluster, if it lives: a pid file outlives its process, and pids are reused
  local pid
  pid=$(head -n 1 "$folder/data/postmaster.pid" 2>/dev/null || true)
  [ -n "$pid" ] && grep -qsE "^[0-9]+ \(postgres\) [^Z]" "/proc/$pid/stat" || return 0
  [ "$(readlink "/proc/$pid/cwd")" = "$(readlink -f "$folder/data")" ] && printf '%s\n' "$pid"
  return 0
}

is_free() { ! (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start_on() { # PORT
  as_server "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t "$START_SECONDS" start \
    -o "-p $1 -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200 \
        -c fsync=off -c full_page_writes=off -c synchronous_commit=off" >/dev/null 2>&1 9>&-
}

start() {
  mkdir -p "$root/.services"
  exec 9>"$root/.services/postgres.lock"
  if command -v flock >/dev/null; then flock 9; fi
  install
  find_folder
  if ! answers; then
    make_folder
    make_cluster
    [ -n "$(server_pid)" ] || rm -f "$folder/data/postmaster.pid"
    local each
    for each in $(port) $(seq "$PORTS_FROM" $((PORTS_FROM + 40))); do
      is_free "$each" || continue
      printf '%s\n' "$each" >"$folder/port"
      start_on "$each" && break
    done
    answers || fail "the server did not start: see $folder/log"
  fi
  printf 'postgres: PostgreSQL %s at 127.0.0.1:%s\n' "$(cat "$folder/data/PG_VERSION")" "$(port)"
}

stop() {
  find_folder
  if [ -z "$(server_pid)" ] || ! find_bin; then
    printf 'postgres: nothing to stop, no server of ours runs\n'
    return 0
  fi
  as_server "$bin/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null || fail "the server did not stop"
  printf 'postgres: stopped\n'
}

case ${1:-} in
  --start) start ;;
  --stop) stop ;;
  --clean)
    stop
    rm -rf "$folder" "$root/.services/postgres-elsewhere" "$root/.services/postgres.lock"
    ;;
  --print-url)
    find_folder
    { find_bin && answers; } || fail "no server of ours runs: run make services"
    url
    ;;
  --print-bin)
    install >&2
    printf '%s\n' "$bin"
    ;;
  *) fail "unknown argument ${1:-}: use --start, --stop, --clean, --print-url or --print-bin" ;;
esac
