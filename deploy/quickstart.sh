#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 or 13 machine to real embeddings: installs what is missing, builds, fetches a model, serves
# it, asks it, shows the metrics, and keeps serving until Ctrl-C. Run again, it is there in seconds.
#
#   deploy/quickstart.sh [--once] [--listen=HOST:PORT] [--http_listen=HOST:PORT]
#     --once         end after showing it; the exit code is the server's
#     --listen       where gRPC listens, default 127.0.0.1:8001; port 0 picks a free one
#     --http_listen  where HTTP listens: protocols, metrics and the console; default 127.0.0.1:8002
set -euo pipefail
readonly SCRIPT=quickstart
here=$(dirname "$(readlink -f "$0")")
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

readonly BIN="$root/build/release/bin"
readonly SENTENCES=("A man is eating pasta in a restaurant." "Someone has lunch at a small Italian place."
                    "The stock market fell by three percent on Tuesday." "Share prices went down sharply."
                    "A cat sleeps on the sofa.")
once=""
listen=127.0.0.1:8001
http_listen=127.0.0.1:8002
run_dir=""
server=""

parse() {
  while [ $# -gt 0 ]; do
    case "$1" in
      --once) once=1 ;;
      --listen | --http_listen) set -- "$1=${2:?$1 needs HOST:PORT}" "${@:3}"; continue ;;
      --listen=*:*) listen=${1#*=} ;;
      --http_listen=*:*) http_listen=${1#*=} ;;
      -h | --help) show_help ;;
      *) die "unknown argument '$1'; --help tells more" ;;
    esac
    shift
  done
}

check_port() {  # check_port FLAG HOST:PORT
  if [[ ! ${2##*:} =~ ^[0-9]{1,5}$ ]] || [ $((10#${2##*:})) -gt 65535 ]; then
    die "--$1=$2: a port is a number from 0 to 65535"
  fi
}

# The host by which this machine reaches what listens on HOST:PORT; an IPv6 address is in brackets.
host_of() {
  case "${1%:*}" in
    0.0.0.0 | "[::]") echo 127.0.0.1 ;;
    *) echo "${1%:*}" ;;
  esac
}

check_free() {  # check_free FLAG HOST:PORT
  local host port=${2##*:}
  [ "$port" != 0 ] || return 0
  host=$(host_of "$2" | tr -d '[]')
  # shellcheck disable=SC2016
  if timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>/dev/null; then
    die "port $port is taken by another program; choose another one with --$1=${2%:*}:PORT (0: any free one)"
  fi
}

# Quiet when it goes well.
run_quietly() {
  local log="$run_dir/log"
  "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "this failed: $*"; }
}

build() {
  local log="$run_dir/log"
  run_quietly configure "$root" release
  with_progress "server" "$log" cmake --build "$root/build/release" --target attendant-server attendant ||
    { tail -n 40 "$log" >&2; die "the build failed"; }
}

port() { sed -n "s/^$1=//p" "$run_dir/ports"; }

serving() {
  kill -0 "$server" 2>/dev/null || { cat "$run_dir/server.log" >&2; die "the server ended: $run_dir/server.log"; }
  [ -s "$run_dir/ports" ] && "$BIN/attendant" health --server="$(host_of "$listen"):$(port grpc)" >"$run_dir/health" 2>&1
}

# In a session of its own, so that Ctrl-C reaches this script only, which then lets the server drain.
start_server() {  # start_server MODEL
  say "starting the server with all-MiniLM-L6-v2 as the model 'minilm'"
  setsid "$BIN/attendant-server" --model="minilm=$1" --listen="$listen" --http_listen="$http_listen" \
    --port_file="$run_dir/ports" >"$run_dir/server.log" 2>&1 &
  server=$!
  wait_until 120 serving || die "the server is not ready after 120 s: $run_dir/server.log"
}

show() {
  local grpc=$1 http=$2
  say "embedding ${#SENTENCES[@]} sentences: attendant embed --similarity ..."
  "$BIN/attendant" embed --server="$grpc" --similarity --top=2 "${SENTENCES[@]}"
  say "what the server counted: curl http://$http/metrics"
  curl -fsS "http://$http/metrics" |
    grep -E '^attendant_(requests_total|tokens_total|batches_total|request_duration_seconds_(count|sum))' |
    { grep 'model="minilm".* [0-9.e-]*[1-9]' || die "the metrics do not show the request"; }
}

go_on() {
  cat <<END

It serves gRPC on $1; protocols over HTTP, metrics and the console on $2. To go on, in another terminal:
  $BIN/attendant embed --server=$1 "Any text you like"
  $BIN/attendant models --server=$1
  $BIN/attendant load --server=$1 --help
  curl http://$2/metrics
END
}

# The logs stay where something failed.
on_exit() {
  local code=$?
  trap - EXIT INT TERM
  end_running  # where a package is being installed, after that
  if [ -n "$server" ] && kill -TERM "$server" 2>/dev/null; then wait "$server" || true; fi
  case $code in
    0 | 130 | 143) rm -rf "$run_dir" ;;
    *) rmdir "$run_dir" 2>/dev/null || say "the logs of this run are in $run_dir" >&2 ;;
  esac
  exit $code
}

# Lets the server finish what it has admitted, and passes its exit code on; CODE where there is no server yet.
stop() {  # stop CODE
  local code=0
  if [ -z "$server" ]; then
    say "stopped before there was a server; run again, it goes on from here"
    exit "$1"
  fi
  say "stopping the server"
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" || code=$?
  server=""
  [ $code = 0 ] || say "the server ended with exit code $code"
  exit $code
}

main() {
  local model grpc http
  parse "$@"
  check_port listen "$listen"
  check_port http_listen "$http_listen"
  check_free listen "$listen"
  check_free http_listen "$http_listen"
  run_dir=$(mktemp -d)
  trap on_exit EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
  interruptible "$here/install-deps.sh" build quickstart
  say "building the server and the command line, without tests (minutes the first time)"
  with_lock "$root/build/release" build
  interruptible "$here/fetch-model.sh" >"$run_dir/model"
  model=$(cat "$run_dir/model")
  start_server "$model"
  grpc=$(host_of "$listen"):$(port grpc)
  http=$(host_of "$http_listen"):$(port http)
  show "$grpc" "$http"
  [ -z "$once" ] || stop 0
  go_on "$grpc" "$http"
  say "serving; Ctrl-C ends it"
  wait "$server" || die "the server ended with exit code $?"
}

main "$@"
