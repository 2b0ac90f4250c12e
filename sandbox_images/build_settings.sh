# shellcheck shell=bash
# What this machine lends to an image build, and how inputs are hashed; sourced by the build scripts, never run.
#
#   lend_settings FOLDER      writes FOLDER/apt and FOLDER/pip: package sources, indexes and certificates of this machine
#   lend_npm_settings FOLDER  writes FOLDER/npm, for an image that takes something from npm
#   proxy_arguments           prints the proxies of this machine as arguments of `docker build`
#   hash_inputs IMAGE         reads names of files from standard input: prints the hash of IMAGE's id and of those files
#   hash_files                reads names of files from standard input: prints the hash of those files
settings_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

hash_inputs() { # IMAGE: the files by name and content, relative to the current folder, and the base image by its id
  local base
  base=$(docker image inspect --format '{{.Id}}' "$1" 2>/dev/null) || base=missing
  {
    printf '%s\n' "$base"
    sha256_of_files
  } | sha256 | cut -c 1-64
}

hash_files() { # the files by name and content, relative to the current folder
  sha256_of_files | sha256 | cut -c 1-64
}

sha256() { # of standard input, or with xargs in front of files
  if command -v sha256sum >/dev/null; then "$@" sha256sum; else "$@" shasum -a 256; fi
}

sha256_of_files() { # names on standard input
  tr '\n' '\0' | sha256 xargs -0
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

lend_settings() { # FOLDER
  mkdir -p "$1/apt" "$1/pip"
  "$settings_folder/base.sh" --print-sources >"$1/apt/sources.list"
  certificates >"$1/apt/ca.pem"
  cp "$1/apt/ca.pem" "$1/pip/ca.pem"
  write_pip_settings "$1/pip"
}

lend_npm_settings() { # FOLDER: the address only; a .npmrc may hold a token. Without npm here, npm's own default serves
  mkdir -p "$1/npm"
  local registry=${npm_config_registry:-${NPM_CONFIG_REGISTRY:-}}
  [ -n "$registry" ] || ! command -v npm >/dev/null || registry=$(npm config get registry 2>/dev/null) || registry=''
  {
    case $registry in http://* | https://*) printf 'registry=%s\n' "$registry" ;; esac
  } >"$1/npm/npmrc"
}

proxy_arguments() { # Docker knows these names: it hands them to every step and keeps them out of the history
  local name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || printf -- "--build-arg %s " "$name"
  done
}
