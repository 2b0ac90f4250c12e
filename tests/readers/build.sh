#!/usr/bin/env bash
# Builds proofbox-readers:latest, the programs that open rendered files after us. Returns at once when nothing that goes into it
# changed.
#
#   build.sh                builds what is missing: an engine, the base image, the readers
#   build.sh --clean        removes the readers' images from the engine
#   build.sh --print-inputs prints the hash of everything that goes into the image, as its label proofbox.inputs has it
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
images=$(cd "$here/../../sandbox_images" && pwd)
# shellcheck source=../../sandbox_images/progress.sh
. "$images/progress.sh"
# shellcheck source=../../sandbox_images/build_settings.sh
. "$images/build_settings.sh"

NAME=proofbox-readers
BASE=proofbox-base:trixie
LOG=$(log_file readers)

fail() {
  printf 'readers: %s\n' "$*" >&2
  exit 1
}

input_files() { # relative to this folder; our fontconfig rules are those of the sandbox image
  (cd "$here" && find Dockerfile requirements.txt package.json package-lock.json readers ../../sandbox_images/fonts -type f \
    -not -path '*/__pycache__/*' | LC_ALL=C sort)
}

print_inputs() {
  (cd "$here" && input_files | hash_inputs "$BASE")
}

prepare_context() { # FOLDER
  local context=$1
  (cd "$here" && cp -R Dockerfile requirements.txt package.json package-lock.json readers "$images/fonts" "$context")
  find "$context" -name __pycache__ -prune -exec rm -rf {} +
  lend_settings "$context/host"
  lend_npm_settings "$context/host"
  # A checkout under a strict umask must not make files that the readers' user cannot read.
  chmod -R u=rwX,go=rX "$context"
}

build() { # CONTEXT INPUTS
  # shellcheck disable=SC2046 # one argument a word
  DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "BASE=$BASE" --label "proofbox.inputs=$2" \
    --tag "$NAME:latest" $(proxy_arguments) "$1"
}

case ${1:-} in
  '' | --print-inputs | --clean) ;;
  *) fail "unknown argument $1: use no argument, --clean or --print-inputs" ;;
esac

if [ "${1:-}" = --clean ]; then
  DOCKER_HOST=$("$images/engine.sh" --print-host 2>/dev/null) || exit 0
  export DOCKER_HOST
  if docker image inspect "$NAME:latest" >/dev/null 2>&1; then docker image rm --force "$NAME:latest" >/dev/null || true; fi
  docker image prune --force --filter label=proofbox.stage >/dev/null
  rm -f "$LOG"
  exit 0
fi
if [ -z "${1:-}" ] && ! "$images/engine.sh" --print-host >/dev/null 2>&1; then "$images/engine.sh"; fi
DOCKER_HOST=$("$images/engine.sh" --print-host) || exit 1
export DOCKER_HOST
if [ "${1:-}" = --print-inputs ]; then
  print_inputs
  exit 0
fi

docker image inspect "$BASE" >/dev/null 2>&1 || "$images/base.sh"
inputs=$(print_inputs)
built=$(docker image inspect --format '{{index .Config.Labels "proofbox.inputs"}}' "$NAME:latest" 2>/dev/null || true)
if [ "$built" = "$inputs" ]; then
  printf 'readers: %s:latest up to date\n' "$NAME"
  exit 0
fi
context=$(mktemp -d "${TMPDIR:-/tmp}/proofbox-readers.XXXXXX")
trap 'rm -rf "$context"' EXIT
prepare_context "$context"
progress_run 'readers image' "$LOG" steps build "$context" "$inputs" || fail "the build failed: see $LOG"
size=$(docker image inspect --format '{{.Size}}' "$NAME:latest")
printf 'readers: %s:latest built, %d MB\n' "$NAME" "$((size / 1000000))"
