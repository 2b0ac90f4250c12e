#!/usr/bin/env bash
# Builds proofbox-peers:latest, the programs that `make bench-render` measures ours against, on top of the second readers.
# Returns at once when nothing that goes into it changed.
#
#   build.sh           builds what is missing, the readers' image included
#   build.sh --clean   removes the image
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=../../sandbox_images/progress.sh
. "$root/sandbox_images/progress.sh"
# shellcheck source=../../sandbox_images/build_settings.sh
. "$root/sandbox_images/build_settings.sh"

NAME=proofbox-peers
BASE=proofbox-readers:latest
LOG=$(log_file peers)
FILES=(Dockerfile requirements.txt package.json package-lock.json)

fail() {
  printf 'peers: %s\n' "$*" >&2
  exit 1
}

build() { # CONTEXT INPUTS
  # shellcheck disable=SC2046 # one argument a word
  DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "BASE=$BASE" --label "proofbox.inputs=$2" \
    --tag "$NAME:latest" $(proxy_arguments) "$1"
}

case ${1:-} in
  '') "$root/tests/readers/build.sh" ;;
  --clean) ;;
  *) fail "unknown argument $1: use no argument or --clean" ;;
esac
DOCKER_HOST=$("$root/sandbox_images/engine.sh" --print-host 2>/dev/null) || exit 0
export DOCKER_HOST
if [ "${1:-}" = --clean ]; then
  if docker image inspect "$NAME:latest" >/dev/null 2>&1; then docker image rm --force "$NAME:latest" >/dev/null || true; fi
  rm -f "$LOG"
  exit 0
fi

inputs=$(cd "$here" && printf '%s\n' "${FILES[@]}" | hash_inputs "$BASE")
built=$(docker image inspect --format '{{index .Config.Labels "proofbox.inputs"}}' "$NAME:latest" 2>/dev/null || true)
if [ "$built" = "$inputs" ]; then
  printf 'peers: %s:latest up to date\n' "$NAME"
  exit 0
fi
context=$(mktemp -d "${TMPDIR:-/tmp}/proofbox-peers.XXXXXX")
trap 'rm -rf "$context"' EXIT
(cd "$here" && cp "${FILES[@]}" "$context")
lend_settings "$context/host"
lend_npm_settings "$context/host"
# A checkout under a strict umask must not make files that the peers' user cannot read.
chmod -R u=rwX,go=rX "$context"
progress_run 'peers image' "$LOG" steps build "$context" "$inputs" || fail "the build failed: see $LOG"
size=$(docker image inspect --format '{{.Size}}' "$NAME:latest")
printf 'peers: %s:latest built, %d MB\n' "$NAME" "$((size / 1000000))"
