#!/usr/bin/env bash
# Finds a container engine, or installs and starts one.
#
#   engine.sh               makes sure that an engine answers and names it
#   engine.sh --print-host  prints the DOCKER_HOST value of the engine that answers; starts nothing
#   engine.sh --stop        stops the daemon that this script started, and no other
#
# Order: DOCKER_HOST, Docker's default socket, the docker command's current context, Podman's sockets. Only when none
# answers, on Debian or Ubuntu and as root, is docker.io installed and dockerd started.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=progress.sh
. "$here/progress.sh"

DAEMON_LOG=/var/log/proofbox-dockerd.log
# Our own pid file: dockerd writes it, and --stop believes nothing else.
DAEMON_PID=/run/proofbox-dockerd.pid
SETUP_LOG=$(log_file engine)
ANSWER_SECONDS=5
START_SECONDS=60

fail() {
  printf 'engine: %s\n' "$*" >&2
  exit 1
}

limited() { # SECONDS COMMAND...: macOS has no timeout(1), and there a socket that exists but hangs is not our case
  local seconds=$1
  shift
  if command -v timeout >/dev/null; then timeout "$seconds" "$@"; else "$@"; fi
}

version_at() { # HOST -> the engine's version, or a failure
  command -v docker >/dev/null || return 1
  DOCKER_HOST=$1 limited "$ANSWER_SECONDS" docker version --format '{{.Server.Version}}' 2>/dev/null
}

candidates() {
  local runtime_dir=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
  printf '%s\n' /var/run/docker.sock
  printf '%s\n' "$runtime_dir/docker.sock" "$HOME/.docker/run/docker.sock"
  printf '%s\n' /run/podman/podman.sock "$runtime_dir/podman/podman.sock"
}

HOST='' VERSION=''
find_engine() { # sets HOST and VERSION
  local socket
  if [ -n "${DOCKER_HOST:-}" ]; then
    HOST=$DOCKER_HOST
    VERSION=$(version_at "$HOST") && [ -n "$VERSION" ] && return 0
    command -v docker >/dev/null || fail "the docker command is missing: install Docker's or Podman's command-line client"
    fail "DOCKER_HOST is set to $DOCKER_HOST, but no engine answers there: start it or unset DOCKER_HOST"
  fi
  while IFS= read -r socket; do
    [ -S "$socket" ] || continue
    HOST=unix://$socket
    VERSION=$(version_at "$HOST") && [ -n "$VERSION" ] && return 0
  done < <(candidates)
  return 1
}

report() {
  local kind=Docker
  case $HOST in *podman*) kind=Podman ;; esac
  printf 'engine: %s %s at %s\n' "$kind" "$VERSION" "$HOST"
}

is_alive() { # PID NAME: a pid file outlives its process, pids are given out again, and a zombie still has its name
  [ -n "$1" ] && grep -qsE "^[0-9]+ \($2\) [^Z]" "/proc/$1/stat"
}

listens() { # SOCKET: a killed daemon leaves its socket file behind, but the kernel lists only real listeners
  grep -qE "[[:space:]](/var)?${1}(\.ttrpc)?\$" /proc/net/unix
}

remove_leftovers() {
  local file
  for file in /run/docker.pid "$DAEMON_PID"; do
    is_alive "$(cat "$file" 2>/dev/null)" dockerd || rm -f "$file"
  done
  # dockerd trusts a containerd socket that merely exists, and then waits for it until it gives up.
  if ! is_alive "$(cat /run/docker/containerd/containerd.pid 2>/dev/null)" containerd; then
    rm -f /run/docker/containerd/*.pid /run/docker/containerd/*.sock /run/docker/containerd/*.sock.ttrpc
  fi
  if [ -S /run/containerd/containerd.sock ] && ! listens /run/containerd/containerd.sock; then
    rm -f /run/containerd/containerd.sock /run/containerd/containerd.sock.ttrpc
  fi
}

apt_install() { # what the engine needs, without a question and without recommended extras
  export DEBIAN_FRONTEND=noninteractive
  local packages=(docker.io ca-certificates)
  # A package list of some other vendor that fails to load is not our concern: install decides.
  apt-get -q update || true
  # From Debian 13 on the client is a package of its own.
  if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then packages+=(docker-cli); fi
  mountpoint -q /sys/fs/cgroup || packages+=(cgroupfs-mount)
  # An installation that was cut off half-way blocks every later one.
  dpkg --configure -a
  # Not descriptor 1: apt closes the status descriptor in the packages' own scripts.
  apt-get -q -y -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 --no-install-recommends install "${packages[@]}" 3>&1
}

is_half_installed() {
  local state
  state=$(dpkg-query -W -f '${db:Status-Status}' docker.io 2>/dev/null || true)
  [ -n "$state" ] && [ "$state" != installed ] && [ "$state" != not-installed ] && [ "$state" != config-files ]
}

flags_of_attempt() { # NUMBER: what the first attempt asks for is dropped where the machine cannot give it
  local configured=/etc/docker/daemon.json
  # dockerd refuses an option that its configuration file sets too.
  if [ "$1" -eq 1 ] && ! grep -qs storage-driver "$configured"; then printf '%s\n' --storage-driver=overlay2; fi
  # Kernels without iptables still run sandboxes, which have no network anyway.
  if [ "$1" -eq 2 ] && ! grep -qsE '"(iptables|bridge|ip6tables)"' "$configured"; then
    printf '%s\n' --iptables=false --bridge=none
  fi
}

wait_for_answer() { # PID
  local deadline=$((SECONDS + START_SECONDS))
  while [ "$SECONDS" -lt "$deadline" ]; do
    [ -n "$(version_at unix:///var/run/docker.sock)" ] && return 0
    kill -0 "$1" 2>/dev/null || return 1
    sleep 0.2
  done
  return 1
}

start_dockerd() {
  local attempt flags flag pid
  mountpoint -q /sys/fs/cgroup || { command -v cgroupfs-mount >/dev/null && cgroupfs-mount; }
  for attempt in 1 2; do
    remove_leftovers
    flags=(--pidfile "$DAEMON_PID")
    while IFS= read -r flag; do flags+=("$flag"); done < <(flags_of_attempt "$attempt")
    printf '%s start of dockerd %s\n' "$(date -u +%FT%TZ)" "${flags[*]}" >>"$DAEMON_LOG"
    # 9 is the lock of this script: a daemon that inherits it would hold it for ever.
    setsid nohup dockerd "${flags[@]}" >>"$DAEMON_LOG" 2>&1 </dev/null 9>&- &
    pid=$!
    wait_for_answer "$pid" && return 0
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  tail -n 20 "$DAEMON_LOG"
  return 1
}

start_with_systemd() {
  systemctl start docker && wait_for_answer $$
}

install_and_start() {
  [ "$(uname -s)" = Linux ] || fail "no container engine answers: install Docker Desktop or Podman and start it"
  [ "$(id -u)" -eq 0 ] || fail "no container engine answers: start Docker or Podman, install one (docker.io), or run this as root"
  exec 9>/run/proofbox-engine.lock
  if command -v flock >/dev/null; then flock 9; fi
  find_engine && return 0
  if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null || is_half_installed; then
    if ! command -v apt-get >/dev/null || ! grep -qE '^(ID|ID_LIKE)=.*(debian|ubuntu)' /etc/os-release; then
      fail "no container engine answers: install Docker or Podman from this distribution's packages and start it"
    fi
    printf 'engine: no container engine answers; installing docker.io\n'
    progress_run 'docker.io' "$SETUP_LOG" apt apt_install || fail "docker.io could not be installed"
    # The package itself may have started the daemon.
    find_engine && return 0
  fi
  if [ -d /run/systemd/system ]; then
    printf 'engine: starting docker with systemd\n'
    progress_run 'dockerd' "$SETUP_LOG" time:8 start_with_systemd || fail "systemd could not start docker: see journalctl -u docker"
  else
    printf 'engine: starting dockerd, log in %s\n' "$DAEMON_LOG"
    progress_run 'dockerd' "$SETUP_LOG" time:8 start_dockerd || fail "dockerd did not start: see $DAEMON_LOG"
  fi
  find_engine || fail "the daemon was started, but the docker command cannot reach it"
}

stop() {
  local pid tries
  pid=$(cat "$DAEMON_PID" 2>/dev/null || true)
  if ! is_alive "$pid" dockerd; then
    printf 'engine: nothing to stop, no daemon of ours runs\n'
    return 0
  fi
  kill "$pid"
  for tries in $(seq 150); do
    is_alive "$pid" dockerd || break
    sleep 0.2
  done
  is_alive "$pid" dockerd && fail "dockerd (pid $pid) did not stop within $((tries / 5)) s"
  rm -f "$DAEMON_PID"
  printf 'engine: stopped\n'
}

case ${1:-} in
  '')
    find_engine || install_and_start
    report
    ;;
  --print-host)
    find_engine || fail "no container engine answers: run engine.sh first"
    printf '%s\n' "$HOST"
    ;;
  --stop) stop ;;
  *) fail "unknown argument $1: use no argument, --print-host or --stop" ;;
esac
