# shellcheck shell=bash
# One progress bar and one place for logs for the set-up scripts; sourced, never run. The bar goes to standard error.
#
#   progress_run LABEL LOG METER COMMAND...
#
# runs COMMAND with its output in LOG and answers its exit status. METER says where the percentage comes from:
#   apt      the status lines of `apt-get -o APT::Status-Fd=3`
#   steps    the classic builder's "Step k/n", Podman's in capitals; builds side by side have their name in front
#   time:N   elapsed time against the usual N seconds (never over 99 before the command has ended)
# On a terminal it is one line that is painted over; elsewhere one line at the start and one at the end.

log_file() { # NAME: not in /tmp, where another user's file of that name would be in the way, or worse, a link
  local folder=/var/log
  if [ "$(id -u)" -ne 0 ]; then
    folder=${XDG_STATE_HOME:-$HOME/.local/state}/proofbox
    mkdir -p "$folder"
  fi
  printf '%s/proofbox-%s.log' "$folder" "$1"
}

progress_percent() { # METER LOG ELAPSED_S
  local percent
  case $1 in
    apt)
      percent=$(awk -F: '/^dlstatus:/ { p = $3 / 2 } /^pmstatus:/ { p = 50 + $3 / 2 } END { print int(p) }' "$2")
      ;;
    steps)
      # Lines with a name in front belong to parts, which the build without a name follows: it finds them done.
      percent=$(awk '/^([a-z]+: )?(Step|STEP) [0-9]+\/[0-9]+ ?:/ {
          name = $1 ~ /:$/ ? $1 : ""
          split($(name == "" ? 2 : 3), s, "/")
          if (name != "" && !(name in done)) parts++
          done[name] = (s[1] - 1) / s[2]
        }
        END {
          for (name in done) sum += name != "" && "" in done ? 1 : done[name]
          print int(100 * sum / (parts + 1))
        }' "$2")
      ;;
    time:*) percent=$((100 * $3 / ${1#time:})) ;;
  esac
  printf '%d' "$((percent > 99 ? 99 : percent))"
}

progress_paint() { # LABEL PERCENT ELAPSED_S
  local width=30 filled
  filled=$((width * $2 / 100))
  printf '\r\033[K%-14s [%s%s] %3d%% %4ds' "$1" \
    "$(printf '%*s' "$filled" '' | tr ' ' '#')" "$(printf '%*s' "$((width - filled))" '' | tr ' ' '.')" "$2" "$3" >&2
}

progress_run() {
  local label=$1 log=$2 meter=$3 pid status=0 started=$SECONDS elapsed
  shift 3
  : >"$log"
  # A process group of its own: an interrupted set-up must not leave its download or build running behind the prompt.
  set -m
  "$@" >>"$log" 2>&1 </dev/null &
  pid=$!
  set +m
  trap 'kill -- "-$pid" 2>/dev/null; exit 130' INT TERM
  if [ -t 2 ]; then
    while kill -0 "$pid" 2>/dev/null; do
      elapsed=$((SECONDS - started))
      progress_paint "$label" "$(progress_percent "$meter" "$log" "$elapsed")" "$elapsed"
      sleep 0.2
    done
  else
    printf '%s: started\n' "$label" >&2
  fi
  wait "$pid" || status=$?
  trap - INT TERM
  elapsed=$((SECONDS - started))
  if [ "$status" -eq 0 ]; then
    [ -t 2 ] && progress_paint "$label" 100 "$elapsed" && printf '\n' >&2
    [ -t 2 ] || printf '%s: done in %d s\n' "$label" "$elapsed" >&2
  else
    [ -t 2 ] && printf '\n' >&2
    printf '%s: failed after %d s; the end of %s:\n' "$label" "$elapsed" "$log" >&2
    tail -n 30 "$log" | sed 's/^/    /' >&2
  fi
  return "$status"
}
