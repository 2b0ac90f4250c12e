#!/usr/bin/env bash
# Builds proofbox-sandbox:latest, the image that every call runs in. Returns at once when nothing that goes into it changed.
#
#   build.sh                builds what is missing: an engine, the base image, the sandbox image
#   build.sh --fresh        builds base and image anew, which takes in Debian's security updates
#   build.sh --clean        removes from the engine every image that these scripts made, the base image included
#   build.sh --print-inputs prints the hash of everything that goes into the image, as its label proofbox.inputs has it
#
# Package indexes, proxies and certificates of this machine serve the build and stay out of the image: they are only given to
# stages that the last stage copies finished files from.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=progress.sh
. "$here/progress.sh"

NAME=proofbox-sandbox
BASE=proofbox-base:trixie
LOG=$(log_file image)
# Our own programs: each a folder with a __main__.py that ends up below /opt/proofbox.
PROGRAMS=(runner inspector render)

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

input_files() {
  local found=(Dockerfile requirements.txt sbom.py fonts skel) program
  for program in "${PROGRAMS[@]}"; do
    [ -d "$here/$program" ] && found+=("$program")
  done
  (cd "$here" && find "${found[@]}" -type f -not -path '*/__pycache__/*' -not -name '*.pyc' | LC_ALL=C sort)
}

print_inputs() { # the files by name and content, and the base image by its id
  local base sha256=(sha256sum)
  command -v sha256sum >/dev/null || sha256=(shasum -a 256)
  base=$(docker image inspect --format '{{.Id}}' "$BASE" 2>/dev/null) || base=missing
  {
    printf '%s\n' "$base"
    cd "$here"
    input_files | tr '\n' '\0' | xargs -0 "${sha256[@]}"
  } | "${sha256[@]}" | cut -c 1-64
}

pip_setting() { # NAME ENVIRONMENT_VALUE: as pip itself decides, the environment before the configuration files
  if [ -n "$2" ]; then printf '%s' "$2"; else python3 -m pip config get "global.$1" 2>/dev/null || true; fi
}

certificates() { # the bundle that this machine's tools trust, if it names or has one
  local candidate
  for candidate in "${PIP_CERT:-}" "${SSL_CERT_FILE:-}" "${REQUESTS_CA_BUNDLE:-}" "${CURL_CA_BUNDLE:-}" \
    "$(pip_setting cert '')" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    if [ -n "$candidate" ] && [ -f "$candidate" ]; then
      cat "$candidate"
      return
    fi
  done
}

write_pip_settings() { # FOLDER
  local index extra trusted url kept=''
  index=$(pip_setting index-url "${PIP_INDEX_URL:-}")
  extra=$(pip_setting extra-index-url "${PIP_EXTRA_INDEX_URL:-}")
  trusted=$(pip_setting trusted-host "${PIP_TRUSTED_HOST:-}")
  # A folder of this machine means nothing inside the build.
  for url in $extra; do
    case $url in http://* | https://*) kept="$kept $url" ;; esac
  done
  {
    printf '[global]\ntimeout = 60\nretries = 5\ndisable-pip-version-check = true\n'
    case $index in http://* | https://*) printf 'index-url = %s\n' "$index" ;; esac
    [ -z "$kept" ] || printf 'extra-index-url =%s\n' "$kept"
    [ -z "$trusted" ] || printf 'trusted-host = %s\n' "$trusted"
  } >"$1/pip.conf"
}

prepare_context() { # FOLDER: exactly the hashed files, and beside them what this machine lends to the build
  local context=$1 file target
  mkdir -p "$context/host/apt" "$context/host/pip" "$context/programs" "$context/skel"
  while IFS= read -r file; do
    target=$context/$file
    case ${file%%/*} in runner | inspector | render) target=$context/programs/$file ;; esac
    mkdir -p "$(dirname "$target")"
    cp "$here/$file" "$target"
  done < <(input_files)
  "$here/base.sh" --print-sources >"$context/host/apt/sources.list"
  certificates >"$context/host/apt/ca.pem"
  cp "$context/host/apt/ca.pem" "$context/host/pip/ca.pem"
  write_pip_settings "$context/host/pip"
  # A checkout under a strict umask must not make files that the sandbox's user cannot read.
  chmod -R u=rwX,go=rX "$context"
}

build() { # CONTEXT INPUTS FLAG...
  local context=$1 inputs=$2 name arguments=()
  shift 2
  # Docker knows these names: it hands them to every step and keeps them out of the history.
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || arguments+=(--build-arg "$name")
  done
  # The classic builder is in every client and every engine; BuildKit needs a plug-in that Debian does not ship.
  DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "BASE=$BASE" --label "proofbox.inputs=$inputs" \
    --tag "$NAME:latest" --tag "$NAME:${inputs:0:12}" ${arguments[@]+"${arguments[@]}"} "$@" "$context"
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
  docker image inspect --format '{{slice .Id 7 19}}' "$NAME:latest"
}

fresh=''
case ${1:-} in
  '' | --print-inputs | --clean) ;;
  --fresh) fresh=--no-cache ;;
  *) fail "unknown argument $1: use no argument, --fresh, --clean or --print-inputs" ;;
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
built=$(docker image inspect --format '{{index .Config.Labels "proofbox.inputs"}}' "$NAME:latest" 2>/dev/null || true)
if [ -z "$fresh" ] && [ "$built" = "$inputs" ]; then
  printf 'image: %s:latest %s up to date\n' "$NAME" "$(short_id)"
  exit 0
fi

context=$(mktemp -d "${TMPDIR:-/tmp}/proofbox-image.XXXXXX")
trap 'rm -rf "$context"' EXIT
prepare_context "$context"
progress_run 'sandbox image' "$LOG" steps build "$context" "$inputs" $fresh || fail "the build failed: see $LOG"
# The SBOM is made inside the build; an image that cannot show it is not finished.
docker run --rm --network none --entrypoint cat "$NAME:latest" /opt/proofbox/sbom.cdx.json >"$LOG.sbom" ||
  fail "the image has no bill of materials"
size=$(docker image inspect --format '{{.Size}}' "$NAME:latest")
printf 'image: %s:latest %s built, %d MB, %d components in /opt/proofbox/sbom.cdx.json\n' "$NAME" "$(short_id)" \
  "$((size / 1000000))" "$(grep -c '"bom-ref": "pkg:' "$LOG.sbom")"
rm -f "$LOG.sbom"
