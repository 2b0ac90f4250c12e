#!/usr/bin/env bash
# Makes proofbox-base:trixie, the Debian 13 that the sandbox image is built on. Does nothing when it is there.
#
#   base.sh                 debian:trixie-slim, pinned by its digest, from a registry; without one, bootstrapped from Debian's packages
#   base.sh --fresh         the same, also when it is there: takes in Debian's updates
#   base.sh --print-sources prints the apt sources for Debian 13 at this machine's own mirror, nothing if it has none
#
# PROOFBOX_BASE_IMAGE names another image to pull, such as the same one in a private registry.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=progress.sh
. "$here/progress.sh"

SUITE=trixie
TAG=proofbox-base:$SUITE
# The index, for all machines, of debian:trixie-slim as it was for Debian 13.7. docs/image.md describes how to take a newer one.
DIGEST=sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f
PULLED=${PROOFBOX_BASE_IMAGE:-debian@$DIGEST}
SETUP_LOG=$(log_file base)
# How long a registry may take to name the image; the download itself may take as long as it needs.
REGISTRY_SECONDS=10

fail() {
  printf 'base: %s\n' "$*" >&2
  exit 1
}

mirror() { # LABEL: the mirror that this machine's apt uses for that part of Debian's archive
  if command -v apt-get >/dev/null; then
    # awk reads to the end, or apt-get would die of a closed pipe. The $(…) are apt's own placeholders.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
      awk -F'|' -v label="$1" '$1 == "Debian" && $2 == label && $3 ~ /^https?:/ && !uri { uri = $3 } END { printf "%s", uri }'
  fi
}

print_sources() {
  local main security
  main=$(mirror Debian)
  security=$(mirror Debian-Security)
  [ -z "$main" ] || printf 'deb %s %s main\n' "$main" "$SUITE" "$main" "$SUITE-updates"
  [ -z "$security" ] || printf 'deb %s %s main\n' "$security" "$SUITE-security"
}

pull() {
  local started=$SECONDS pid status=0
  docker pull "$PULLED" >"$SETUP_LOG.pull" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    # The engine prints this line as soon as the registry has answered with the manifest.
    if ! grep -q 'Pulling from' "$SETUP_LOG.pull" && [ $((SECONDS - started)) -ge "$REGISTRY_SECONDS" ]; then
      kill "$pid"
    fi
    sleep 0.2
  done
  wait "$pid" || status=$?
  cat "$SETUP_LOG.pull"
  rm -f "$SETUP_LOG.pull"
  [ "$status" -eq 0 ] && docker tag "$PULLED" "$TAG"
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update || true
  dpkg --configure -a
  apt-get -q -y -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 --no-install-recommends install \
    mmdebstrap gpg gpgv debian-archive-keyring ca-certificates 3>&1
}

bootstrap() { # apt inside checks every signature against Debian's keyring; nothing is taken unauthenticated
  local sources=()
  # On a machine that is not Debian (Ubuntu), mmdebstrap knows Debian's mirror itself.
  [ -z "$(print_sources)" ] || sources=(-)
  print_sources |
    mmdebstrap --variant=minbase --mode=root --format=tar \
      --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
      --aptopt='Acquire::Languages "none"' \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
      --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --dpkgopt='path-exclude=/usr/share/info/*' \
      "$SUITE" - ${sources[@]+"${sources[@]}"} |
    docker import --message "Debian $SUITE, minbase, bootstrapped" - "$TAG"
}

install_bootstrap() {
  [ "$(id -u)" -eq 0 ] || fail "no registry answers for $PULLED: run this as root on Debian or Ubuntu, or set PROOFBOX_BASE_IMAGE"
  command -v apt-get >/dev/null || fail "no registry answers for $PULLED: set PROOFBOX_BASE_IMAGE to a Debian 13 image that can be pulled"
  if ! command -v mmdebstrap >/dev/null || ! command -v gpg >/dev/null ||
    ! [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
    progress_run 'mmdebstrap' "$SETUP_LOG" apt apt_install || fail "mmdebstrap could not be installed"
  fi
  progress_run 'base image' "$SETUP_LOG" time:35 bootstrap || fail "the bootstrap failed: see $SETUP_LOG"
}

fresh=''
case ${1:-} in
  '') ;;
  --fresh) fresh=yes ;;
  --print-sources)
    print_sources
    exit 0
    ;;
  *) fail "unknown argument $1: use no argument, --fresh or --print-sources" ;;
esac

DOCKER_HOST=$("$here/engine.sh" --print-host) || exit 1
export DOCKER_HOST
how='is there'
if [ -n "$fresh" ] || ! docker image inspect "$TAG" >/dev/null 2>&1; then
  printf 'base: looking for %s in a registry\n' "$PULLED"
  if pull >"$SETUP_LOG"; then
    how="from $PULLED"
  else
    printf 'base: no registry answers; bootstrapping Debian %s from its packages\n' "$SUITE"
    install_bootstrap
    how='bootstrapped'
  fi
fi
printf 'base: %s %s %s\n' "$TAG" "$(docker image inspect --format '{{slice .Id 7 19}}' "$TAG")" "$how"
