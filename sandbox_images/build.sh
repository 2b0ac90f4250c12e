#!/usr/bin/env bash
# Builds the image that every call runs in, proofbox-sandbox:TAG. TAG has the hash of our files in it, so that two versions on one
# engine do not take each other's image away. Returns at once when nothing that goes into it changed.
#
#   build.sh                   builds what is missing: an engine, the base image, the sandbox image
#   build.sh --fresh           builds base and image anew, which takes in Debian's security updates
#   build.sh --newest          builds proofbox-sandbox:newest, with the newest pandas, numpy and matplotlib in place of those models know
#   build.sh --clean           removes from the engine every image that these scripts made, the base image included
#   build.sh --print-inputs    prints the hash of everything that goes into the image, as its label proofbox.inputs has it
#   build.sh --print-reference prints the name of the image, which the service uses unless PROOFBOX_IMAGE names another
#
# proofbox-sandbox:latest is the image that was built last, for people; nothing of ours uses it.
#
# Package indexes, proxies and certificates of this machine serve the build and stay out of the image: they are only given to
# stages that the last stage copies finished files from.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=progress.sh
. "$here/progress.sh"
# shellcheck source=build_settings.sh
. "$here/build_settings.sh"

NAME=proofbox-sandbox
BASE=proofbox-base:trixie
LOG=$(log_file image)
# Our own programs: each a folder with a __main__.py that ends up below /opt/proofbox.
PROGRAMS=(runner inspector render page_text inventory)
# What --newest takes, whatever requirements.in says.
NEWEST='matplotlib>=3.11 numpy>=2.4 pandas>=3'
# What the runner has in common with the service.
PROTOCOL=runner_protocol

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

input_files() {
  local found=(Dockerfile requirements.txt data.txt data.py slim.sh sbom.py paths.c fonts site skel) program
  for program in "${PROGRAMS[@]}"; do
    [ -d "$here/$program" ] && found+=("$program")
  done
  [ -d "$here/$PROTOCOL" ] && found+=("$PROTOCOL")
  (cd "$here" && find "${found[@]}" -type f -not -path '*/__pycache__/*' -not -path '*/.*_cache/*' -not -name '*.pyc' | LC_ALL=C sort)
}

print_inputs() {
  (cd "$here" && input_files | hash_inputs "$BASE")
}

print_sources() { # as service/app/own_image.py computes it
  (cd "$here" && input_files | hash_files)
}

reference() {
  printf '%s:%s\n' "$NAME" "$(print_sources | cut -c 1-12)"
}

prepare_context() { # FOLDER: exactly the hashed files, and beside them what this machine lends to the build
  local context=$1 file target
  mkdir -p "$context/programs" "$context/skel"
  while IFS= read -r file; do
    target=$context/$file
    case ${file%%/*} in
      runner | runner_protocol | inspector | render | page_text | inventory) target=$context/programs/$file ;;
    esac
    mkdir -p "$(dirname "$target")"
    cp "$here/$file" "$target"
  done < <(input_files)
  lend_settings "$context/host"
  lend_npm_settings "$context/host"
  # A checkout under a strict umask must not make files that the sandbox's user cannot read.
  chmod -R u=rwX,go=rX "$context"
}

take_newest() { # CONTEXT
  local uv index
  uv=$(command -v "$here/../.venv/bin/uv" uv | head -n 1) || fail "--newest needs uv: pip install uv"
  index=$(pip_setting index-url "${PIP_INDEX_URL:-}")
  (cd "$here" && "$uv" pip compile --quiet --upgrade --python-version 3.13 --python-platform x86_64-manylinux_2_28 --generate-hashes \
    --no-header --no-emit-index-url ${index:+--index-url "$index"} --override <(printf '%s\n' $NEWEST) requirements.in) \
    >"$1/requirements.txt" || fail "no set of packages has the newest ones"
}

docker_build() { # CONTEXT FLAG...
  local context=$1
  shift
  # The classic builder is in every client and every engine; BuildKit needs a plug-in that Debian does not ship.
  # shellcheck disable=SC2046 # one argument a word
  DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "BASE=$BASE" $(proxy_arguments) "$@" "$context"
}

build_part() { # CONTEXT STAGES FLAG...: stages that need no others; their lines in the log begin with the first one's name
  local context=$1 stages=$2 part=${2%% *}
  shift 2
  awk -v stages=" $stages " '/^ARG / { print } /^FROM / { inside = / AS / && index(stages, " " $NF " ") } inside' "$context/Dockerfile" \
    >"$context/Dockerfile.$part"
  docker_build "$context" --file "$context/Dockerfile.$part" "$@" 2>&1 |
    awk -v part="$part" '{ print part ": " $0; fflush() }'
}

build() { # CONTEXT INPUTS FLAG...
  local context=$1 inputs=$2 stages pid pids=()
  shift 2
  # The classic builder makes one stage after the other. The long ones are made side by side; then it finds them in its cache.
  for stages in venv 'rootfs system'; do
    build_part "$context" "$stages" "$@" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || { kill "${pids[@]}" 2>/dev/null; return 1; }
  done
  docker_build "$context" --label "proofbox.inputs=$inputs" --label "proofbox.sources=$(print_sources)" \
    --tag "$image" $([ "$image" = "$NAME:newest" ] || printf -- '--tag %s:latest' "$NAME")
}

clean() { # what a container still uses stays, with the engine's own words for it
  local images
  images=$(docker image ls --quiet --no-trunc --filter "reference=$NAME" | sort -u)
  # shellcheck disable=SC2086 # one id a word
  [ -z "$images" ] || docker image rm --force $images >/dev/null || true
  docker image prune --force --filter label=proofbox.stage >/dev/null
  if docker image inspect "$BASE" >/dev/null 2>&1; then docker image rm "$BASE" >/dev/null || true; fi
  rm -f "$LOG"
  printf 'image: removed\n'
}

short_id() {
  docker image inspect --format '{{slice .Id 7 19}}' "$image"
}

fresh=''
case ${1:-} in
  '' | --print-inputs | --clean | --newest) ;;
  --fresh) fresh=--no-cache ;;
  --print-reference)
    reference
    exit 0
    ;;
  *) fail "unknown argument $1: use no argument, --fresh, --newest, --clean, --print-inputs or --print-reference" ;;
esac

if [ "${1:-}" = --clean ] && ! "$here/engine.sh" --print-host >/dev/null 2>&1; then
  printf 'image: no engine answers, so there is nothing to remove\n'
  exit 0
fi
if [ "${1:-}" != --print-inputs ] && ! DOCKER_HOST=$("$here/engine.sh" --print-host 2>/dev/null); then
  "$here/engine.sh"
fi
DOCKER_HOST=$("$here/engine.sh" --print-host) || exit 1
export DOCKER_HOST
case ${1:-} in
  --print-inputs)
    print_inputs
    exit 0
    ;;
  --clean)
    clean
    exit 0
    ;;
esac

if [ -n "$fresh" ]; then "$here/base.sh" --fresh; fi
docker image inspect "$BASE" >/dev/null 2>&1 || "$here/base.sh"
inputs=$(print_inputs)
image=$(reference)
built=$(docker image inspect --format '{{index .Config.Labels "proofbox.inputs"}}' "$image" 2>/dev/null || true)
if [ -z "$fresh" ] && [ "${1:-}" != --newest ] && [ "$built" = "$inputs" ]; then
  printf 'image: %s %s up to date\n' "$image" "$(short_id)"
  exit 0
fi

context=$(mktemp -d "${TMPDIR:-/tmp}/proofbox-image.XXXXXX")
trap 'rm -rf "$context"' EXIT
prepare_context "$context"
if [ "${1:-}" = --newest ]; then
  image=$NAME:newest
  take_newest "$context"
fi
progress_run 'sandbox image' "$LOG" steps build "$context" "$inputs" $fresh || fail "the build failed: see $LOG"
# The SBOM is made inside the build; an image that cannot show it is not finished.
docker run --rm --network none --entrypoint cat "$image" /opt/proofbox/sbom.cdx.json >"$LOG.sbom" ||
  fail "the image has no bill of materials"
size=$(docker image inspect --format '{{.Size}}' "$image")
printf 'image: %s %s built, %d MB, %d components in /opt/proofbox/sbom.cdx.json\n' "$image" "$(short_id)" \
  "$((size / 1000000))" "$(grep -c '"bom-ref": "pkg:' "$LOG.sbom")"
rm -f "$LOG.sbom"
