#!/usr/bin/env bash
# Builds proofbox-peers:latest, the image of the programs that `make bench-render` measures ours against.
# Returns at once when nothing that goes into it changed. Needs the sandbox image, whose fonts it takes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
images=$here/../../sandbox_images
# shellcheck source=../../sandbox_images/progress.sh
. "$images/progress.sh"
# shellcheck source=../../sandbox_images/build_settings.sh
. "$images/build_settings.sh"

NAME=proofbox-peers
BASE=proofbox-base:trixie
LOG=$(log_file peers)
FILES=(Dockerfile requirements.txt package.json package-lock.json)

fail() {
  printf 'peers: %s\n' "$*" >&2
  exit 1
}

npm_settings() { # FOLDER: the registry of this machine's npm, if it has one, and the certificates that it trusts
  local registry=''
  mkdir -p "$1"
  if command -v npm >/dev/null; then registry=$(npm config get registry 2>/dev/null || true); fi
  case $registry in http://* | https://*) printf 'registry=%s\n' "$registry" ;; esac >"$1/npmrc"
}

build() { # CONTEXT INPUTS
  local proxies
  mapfile -t proxies < <(proxy_arguments)
  DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "BASE=$BASE" --label "proofbox.inputs=$2" \
    --tag "$NAME:latest" ${proxies[@]+"${proxies[@]}"} "$1"
}

DOCKER_HOST=$("$images/engine.sh" --print-host) || exit 1
export DOCKER_HOST
docker image inspect proofbox-sandbox:latest >/dev/null 2>&1 || fail "build the sandbox image first: make images"
# The fonts and their rules come from the sandbox image; its Dockerfile and rules stand for them.
inputs=$(cd "$here" && printf '%s\n' "${FILES[@]}" ../../sandbox_images/Dockerfile ../../sandbox_images/fonts/*.conf |
  hash_inputs "$BASE")
built=$(docker image inspect --format '{{index .Config.Labels "proofbox.inputs"}}' "$NAME:latest" 2>/dev/null || true)
if [ "$built" = "$inputs" ]; then
  printf 'peers: %s:latest up to date\n' "$NAME"
  exit 0
fi
context=$(mktemp -d "${TMPDIR:-/tmp}/proofbox-peers.XXXXXX")
trap 'rm -rf "$context"' EXIT
for file in "${FILES[@]}"; do cp "$here/$file" "$context/"; done
lend_settings "$context/host"
npm_settings "$context/host/npm"
chmod -R u=rwX,go=rX "$context"
progress_run 'peers image' "$LOG" steps build "$context" "$inputs" || fail "the build failed: see $LOG"
size=$(docker image inspect --format '{{.Size}}' "$NAME:latest")
printf 'peers: %s:latest built, %d MB\n' "$NAME" "$((size / 1000000))"
